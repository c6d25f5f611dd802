import { each } from '../paths.ts'
import { type MacAlgorithm, overBody, type SignatureForm, standardWebhooks } from './form.ts'
import type { SchemeFacts } from './scheme.ts'

/*
 * Senders that programs are built on: storage, mail, identity, models, networks of people.
 */

const base64 = { ...overBody, encoding: 'base64' } as const

/** By Standard Webhooks under the headers of Svix. */
const bySvix = {
  forms: [standardWebhooks('svix'), standardWebhooks('webhook')],
  toleranceSeconds: 300,
  deliveryId: { headers: ['svix-id', 'webhook-id'] },
  event: { field: 'type' },
} as const

/** `t=…,v1=…` over the time, a full stop and the body. */
const inList = {
  ...overBody,
  list: 'commas-or-semicolons',
  param: 'v1',
  timestampParam: 't',
  signs: ['{timestamp}', '.', '{body}'],
} as const

const box = {
  ...base64,
  timestampHeader: 'box-delivery-timestamp',
  timestampUnit: 'iso',
  signs: ['{body}', '{timestamp}'],
} as const

const linkedin = {
  ...overBody,
  header: 'x-li-signature',
  signs: ['hmacsha256=', '{body}'],
} as const

/** A hub chooses the algorithm, and names it. */
const websub = (algorithm: MacAlgorithm) =>
  ({
    ...overBody,
    header: 'x-hub-signature',
    algorithm,
    prefix: `${algorithm}=`,
    byPrefix: true,
  }) as const satisfies SignatureForm

export const servicePresets = {
  websub: {
    title: 'a hub of WebSub, such as that of YouTube',
    secretIs: 'the hub.secret that the hub is given',
    where: 'the request to the hub: hub.callback and hub.secret',
    makesSecret: true,
    forms: [websub('sha512'), websub('sha256'), websub('sha1')],
    deliveryId: { headers: [] },
    handshake: 'websub',
    bodyType: 'xml',
    emptyReply: true,
    source: 'https://www.w3.org/TR/websub/',
  },
  x: {
    title: 'X',
    secretIs: 'the API Key Secret (consumer secret) of the app',
    where: 'its API: POST /2/webhooks, url; the secret is in the app, Keys and tokens',
    forms: [{ ...base64, header: 'x-twitter-webhooks-signature', prefix: 'sha256=' }],
    deliveryId: { headers: [] },
    challenge: {
      query: 'crc_token',
      hmac: 'sha256',
      encoding: 'base64',
      json: 'response_token',
      prefix: 'sha256=',
    },
    emptyReply: true,
    source: 'https://docs.x.com/x-api/webhooks/introduction',
  },
  okta: {
    title: 'Okta event hooks',
    secretIs: 'the Authentication secret, the whole value of the Authorization field',
    where: 'Admin Console, Workflow, Event Hooks, with Authentication field Authorization',
    makesSecret: true,
    forms: [{ ...overBody, check: 'token', header: 'authorization' }],
    deliveryId: { headers: [], body: 'eventId' },
    event: { field: 'eventType', items: ['data', 'events', each] },
    challenge: { header: 'x-okta-verification-challenge', json: 'verification' },
    emptyReply: true,
    source: 'https://developer.okta.com/docs/concepts/event-hooks/',
  },
  airtable: {
    title: 'Airtable',
    secretIs: 'the macSecretBase64 given when the webhook is created',
    where: 'its API: POST /v0/bases/{baseId}/webhooks, notificationUrl',
    forms: [
      {
        ...overBody,
        header: 'x-airtable-content-mac',
        prefix: 'hmac-sha256=',
        secret: 'base64',
      },
    ],
    deliveryId: { headers: [] },
    emptyReply: true,
    source: 'https://airtable.com/developers/web/api/webhooks-overview',
  },
  line: {
    title: 'LINE',
    secretIs: 'the Channel secret',
    secretForm: {
      pattern: /^[0-9a-f]{32}$/,
      fault: 'is not 32 hex digits, as channel secrets of LINE are',
    },
    where: 'the channel in the LINE Developers Console, Messaging API, Webhook URL',
    forms: [{ ...base64, header: 'x-line-signature' }],
    deliveryId: { headers: [], body: 'events.0.webhookEventId' },
    event: { field: 'type', items: ['events', each] },
    handshake: 'line',
    emptyReply: true,
    source: 'https://developers.line.biz/en/docs/messaging-api/verify-webhook-signature/',
  },
  linkedin: {
    title: 'LinkedIn',
    secretIs: 'the Client Secret of the app',
    where: 'the app in the Developer Portal, Webhooks; the secret is in Auth',
    // Its page says that the header is the digest; some apps report the prefix before it.
    forms: [{ ...linkedin, prefix: 'hmacsha256=', byPrefix: true }, linkedin],
    deliveryId: { headers: [] },
    event: { field: 'type' },
    challenge: {
      query: 'challengeCode',
      hmac: 'sha256',
      json: 'challengeResponse',
      echo: 'challengeCode',
    },
    emptyReply: true,
    source: 'https://learn.microsoft.com/en-us/linkedin/shared/api-guide/webhook-validation',
  },
  strava: {
    title: 'Strava',
    secretIs: 'the key in the address that Strava is given, as Strava signs nothing',
    where:
      'its API: POST /push_subscriptions, callback_url with ?key= and the secret at its end, and verify_token',
    makesSecret: true,
    forms: [{ ...overBody, check: 'token', header: '', in: 'query', query: 'key' }],
    deliveryId: { headers: [] },
    event: { field: 'object_type', action: 'aspect_type' },
    handshake: 'strava',
    emptyReply: true,
    source: 'https://developers.strava.com/docs/webhooks/',
  },
  nylas: {
    title: 'Nylas',
    secretIs: 'the webhook_secret given when the webhook is created',
    where: 'the application, Notifications, Webhooks',
    forms: [{ ...overBody, header: 'x-nylas-signature' }],
    gzip: true,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type' },
    challenge: { query: 'challenge' },
    emptyReply: true,
    source: 'https://developer.nylas.com/docs/v3/notifications/',
  },
  box: {
    title: 'Box',
    secretIs: 'the primary or the secondary signature key of the app',
    where: 'its API: POST /2.0/webhooks, address; the keys are in the app, Webhooks',
    forms: [
      { ...box, header: 'box-signature-primary' },
      { ...box, header: 'box-signature-secondary' },
    ],
    // Box asks to refuse what is older than ten minutes.
    toleranceSeconds: 600,
    deliveryId: { headers: ['box-delivery-id'] },
    event: { field: 'trigger' },
    source: 'https://developer.box.com/guides/webhooks/v2/signatures-v2/',
  },
  mux: {
    title: 'Mux',
    secretIs: 'the signing secret of the webhook',
    where: 'Settings, Webhooks, Create new webhook',
    forms: [{ ...inList, header: 'mux-signature' }],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'type' },
    source: 'https://www.mux.com/docs/core/verify-webhook-signatures',
  },
  workos: {
    title: 'WorkOS',
    secretIs: 'the signing secret of the endpoint',
    where: 'Developer, Webhooks, Create webhook',
    forms: [{ ...inList, header: 'workos-signature', timestampUnit: 'ms' }],
    toleranceSeconds: 300,
    deliveryId: { headers: [], body: 'id' },
    event: { field: 'event' },
    emptyReply: true,
    source: 'https://workos.com/docs/events/data-syncing/webhooks',
  },
  elevenlabs: {
    title: 'ElevenLabs',
    secretIs: 'the secret of the webhook, shown once when it is created',
    where: 'Developers, Webhooks, with HMAC authentication',
    forms: [{ ...inList, header: 'elevenlabs-signature', param: 'v0' }],
    // As its own library allows.
    toleranceSeconds: 1800,
    deliveryId: { headers: [] },
    event: { field: 'type' },
    emptyReply: true,
    source: 'https://elevenlabs.io/docs/overview/administration/webhooks',
  },
  sanity: {
    title: 'Sanity',
    secretIs: 'the Secret of the webhook',
    where: 'the project, API, Webhooks, Create webhook',
    makesSecret: true,
    forms: [
      {
        ...inList,
        header: 'sanity-webhook-signature',
        encoding: 'base64url',
        timestampUnit: 'ms',
      },
    ],
    toleranceSeconds: 300,
    deliveryId: { headers: ['idempotency-key'] },
    event: { header: 'sanity-operation' },
    source: 'https://www.sanity.io/docs/content-lake/webhook-best-practices',
  },
  clickup: {
    title: 'ClickUp',
    secretIs: 'the secret given when the webhook is created',
    where: 'its API: POST /api/v2/team/{team_id}/webhook, endpoint',
    forms: [{ ...overBody, header: 'x-signature' }],
    deliveryId: { headers: [], body: 'history_items.0.id' },
    event: { field: 'event' },
    source: 'https://developer.clickup.com/docs/webhooksignature',
  },
  figma: {
    title: 'Figma',
    secretIs: 'the passcode given when the webhook is created',
    where: 'its API: POST /v2/webhooks, endpoint and passcode',
    makesSecret: true,
    forms: [
      {
        ...overBody,
        check: 'token',
        header: '',
        in: 'field',
        field: ['passcode'],
        fieldText: 'passcode',
      },
    ],
    deliveryId: { headers: [] },
    event: { field: 'event_type' },
    handshake: 'figma',
    emptyReply: true,
    source: 'https://developers.figma.com/docs/rest-api/webhooks-security/',
  },
  cloudflare: {
    title: 'Cloudflare notifications',
    secretIs: 'the Secret of the webhook',
    where: 'Notifications, Destinations, Webhooks, Create',
    makesSecret: true,
    forms: [{ ...overBody, check: 'token', header: 'cf-webhook-auth' }],
    deliveryId: { headers: [] },
    event: { field: 'alert_type' },
    handshake: 'cloudflare',
    source: 'https://developers.cloudflare.com/notifications/get-started/configure-webhooks/',
  },
  resend: {
    title: 'Resend',
    secretIs: 'the signing secret of the webhook, whsec_ and all',
    where: 'Webhooks, Add Webhook',
    ...bySvix,
    source: 'https://resend.com/docs/dashboard/webhooks/verify-webhooks-requests',
  },
  clerk: {
    title: 'Clerk',
    secretIs: 'the Signing Secret of the endpoint, whsec_ and all',
    where: 'the application, Configure, Webhooks, Add Endpoint',
    ...bySvix,
    source: 'https://clerk.com/docs/guides/development/webhooks/syncing',
  },
  openai: {
    title: 'OpenAI',
    secretIs: 'the signing secret of the endpoint, whsec_ and all, shown once',
    where: 'the project, Settings, Webhooks, Create',
    ...bySvix,
    source: 'https://platform.openai.com/docs/guides/webhooks',
  },
  supabase: {
    title: 'Supabase auth hooks',
    secretIs: 'the secret of the hook, v1,whsec_ and all',
    where: 'the project, Authentication, Auth Hooks, Add hook, HTTPS',
    ...bySvix,
    event: { field: 'email_data.email_action_type' },
    // The hook waits for a JSON object, and an empty one changes nothing.
    answer: { status: 200, text: '{}' },
    source: 'https://supabase.com/docs/guides/auth/auth-hooks',
  },
} as const satisfies Readonly<Record<string, SchemeFacts>>
