import { businessPresets } from './business-presets.ts'
import { developerPresets } from './developer-presets.ts'
import { overBody, standardWebhooks } from './form.ts'
import type { SchemeFacts, SignatureScheme } from './scheme.ts'
import { servicePresets } from './service-presets.ts'
import { specialPresets } from './special-presets.ts'

/*
 * How each sender signs its webhooks, as data: the verifier (daemon/webhook) and `webhook send`
 * (cli/commands/webhook) use this table. `source` links to the documentation of the sender.
 */

/** The id headers of all known senders, for `hmac`. */
export const anyIdHeader = [
  'x-github-delivery',
  'webhook-id',
  'svix-id',
  'idempotency-key',
  'x-gitlab-event-uuid',
  'x-shopify-webhook-id',
  'linear-delivery',
  'request-id',
]

const presets = {
  github: {
    title: 'GitHub',
    secretIs: 'what is typed as Secret into the webhook',
    where: 'the repository, Settings, Webhooks, Add webhook; content type application/json',
    makesSecret: true,
    forms: [{ ...overBody, header: 'x-hub-signature-256', prefix: 'sha256=' }],
    deliveryId: { headers: ['x-github-delivery'] },
    handshake: 'github',
    event: { header: 'x-github-event', action: 'action' },
    hasUpdatedAt: true,
    source: 'https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries',
  },
  stripe: {
    title: 'Stripe',
    secretIs: 'the signing secret of the endpoint, whsec_ and all',
    where: 'Developers, Webhooks, Add endpoint',
    // The key is the whole secret, including `whsec_`.
    forms: [
      {
        ...overBody,
        header: 'stripe-signature',
        list: 'commas',
        param: 'v1',
        timestampParam: 't',
        signs: ['{timestamp}', '.', '{body}'],
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type' },
    source: 'https://docs.stripe.com/webhooks/signatures',
  },
  slack: {
    title: 'Slack',
    secretIs: 'the Signing Secret of the app (Basic Information), not a token',
    where: 'the app, Event Subscriptions, Request URL',
    forms: [
      {
        ...overBody,
        header: 'x-slack-signature',
        prefix: 'v0=',
        signs: ['v0:', '{timestamp}', ':', '{body}'],
        timestampHeader: 'x-slack-request-timestamp',
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'event_id' },
    handshake: 'slack',
    // Slack subscribes an app to message.im and message.channels, and sends both as message.
    event: { field: 'event.type', action: 'event.channel_type' },
    source: 'https://docs.slack.dev/authentication/verifying-requests-from-slack',
  },
  'standard-webhooks': {
    title: 'a sender by Standard Webhooks',
    secretIs: 'the secret of the endpoint, whsec_ and base64',
    where: 'its settings of webhooks or endpoints',
    forms: [standardWebhooks('svix'), standardWebhooks('webhook')],
    toleranceSeconds: 300,
    deliveryId: { headers: ['svix-id', 'webhook-id'] },
    event: { field: 'type' },
    source:
      'https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md',
  },
  gitlab: {
    title: 'GitLab',
    secretIs: 'the signing token of the webhook (whsec_...), or its secret token',
    where: 'the project, Settings, Webhooks, Add new webhook',
    // GitLab sends webhook-id and webhook-timestamp always, webhook-signature with a signing token only.
    forms: [
      { ...standardWebhooks('webhook'), secret: 'whsec' },
      { ...overBody, header: 'x-gitlab-token', check: 'token', secret: 'token' },
    ],
    toleranceSeconds: 300,
    // The event's UUID comes last: webhooks that trigger each other share it.
    deliveryId: { headers: ['webhook-id', 'idempotency-key', 'x-gitlab-event-uuid'] },
    hasUpdatedAt: true,
    event: {
      header: 'x-gitlab-event',
      field: 'object_kind',
      action: 'object_attributes.action',
    },
    source: 'https://docs.gitlab.com/user/project/integrations/webhooks/',
  },
  shopify: {
    title: 'Shopify',
    secretIs: 'the client secret of the app',
    where: 'the app, Webhooks',
    // The header of the newer Events API first, as Shopify's own library does.
    forms: [
      { ...overBody, header: 'shopify-hmac-sha256', encoding: 'base64' },
      { ...overBody, header: 'x-shopify-hmac-sha256', encoding: 'base64' },
    ],
    deliveryId: { headers: ['x-shopify-webhook-id', 'shopify-webhook-id'] },
    // The second are those of the Events API.
    event: { header: 'x-shopify-topic', headers: ['shopify-topic', 'shopify-action'] },
    source: 'https://shopify.dev/docs/apps/build/webhooks/subscribe/https',
  },
  linear: {
    title: 'Linear',
    secretIs: 'the signing secret of the webhook',
    where: 'Settings, API, Webhooks',
    forms: [{ ...overBody, header: 'linear-signature' }],
    // A header has the time too, but it is not signed: Linear's own library reads only the body.
    toleranceSeconds: 60,
    // It sends again after a minute, an hour and six hours.
    lateSeconds: 86_400,
    bodyTimestamp: 'webhookTimestamp',
    deliveryId: { headers: ['linear-delivery'] },
    emptyReply: true,
    event: { header: 'linear-event', field: 'type', action: 'action' },
    source: 'https://linear.app/developers/webhooks#securing-webhooks',
  },
  sentry: {
    title: 'Sentry',
    secretIs: 'the client secret of the integration',
    where: 'Settings, Developer Settings, the integration, Webhook URL',
    forms: [{ ...overBody, header: 'sentry-hook-signature' }],
    deliveryId: { headers: ['request-id'] },
    event: { header: 'sentry-hook-resource', action: 'action' },
    source: 'https://docs.sentry.io/organization/integrations/integration-platform/webhooks/',
  },
  ...developerPresets,
  ...businessPresets,
  ...servicePresets,
  ...specialPresets,
} as const satisfies Readonly<Record<string, SchemeFacts>>

type PresetName = keyof typeof presets
/** Those that their owner describes. */
export const describedNames = ['hmac', 'token', 'public-key', 'oidc'] as const
export type SchemeName = (typeof describedNames)[number] | PresetName

const presetNames = Object.keys(presets) as PresetName[]

export const schemeNames = [...describedNames, ...presetNames] as const

/** Other names of a scheme. */
export const schemeAliases = {
  svix: 'standard-webhooks',
  forgejo: 'gitea',
  gogs: 'gitea',
  whatsapp: 'meta',
} as const
export type SchemeAlias = keyof typeof schemeAliases

/** The scheme of a sender. */
export const presetScheme = <Name extends PresetName>(name: Name): SignatureScheme<Name> => ({
  name,
  ...presets[name],
})

/** Every scheme but those that their owner describes by fields in webhooks.yaml. */
export const presetSchemes: readonly SignatureScheme<PresetName>[] = presetNames.map(presetScheme)
