import type { SchemeName } from '../shared/signature-schemes.ts'

/** What `webhook add` knows of a sender, besides how it signs. */
export type WebhookPreset = {
  readonly scheme: SchemeName
  readonly title: string
  /** `ours`: a person types it at the sender, so it can be made here. `theirs`: the sender makes it. */
  readonly secret: 'ours' | 'theirs'
  /** What the secret is at the sender. */
  readonly secretIs: string
  /** Where the address goes at the sender. */
  readonly where: string
  readonly filter?: Readonly<Record<string, readonly string[]>>
  /** A line of YAML that could be its filter, for one that has none. */
  readonly filterExample?: string
  readonly prompt: string
  /** A built-in payload that the entry lets through. */
  readonly sample?: string
}

const anyEvent = (title: string) =>
  `This came from ${title}. Say in two sentences what happened, and whether somebody has to act.\n\n{{event}}\n`

/** By the name that is typed; `svix` is `standard-webhooks`. */
export const webhookPresets: Readonly<Record<string, WebhookPreset>> = {
  github: {
    scheme: 'github',
    title: 'GitHub',
    secret: 'ours',
    secretIs: 'what is typed as Secret into the webhook',
    where: 'the repository, Settings, Webhooks, Add webhook; content type application/json',
    filter: { action: ['opened', 'reopened'] },
    prompt: `Pull request #{{event.number}} in {{event.repository.full_name}}: {{event.pull_request.title}}
Author: {{event.pull_request.user.login}}

{{event.pull_request.body}}

Say in three sentences what a reviewer should look at first.
`,
    sample: 'github:pull_request.opened',
  },
  gitlab: {
    scheme: 'gitlab',
    title: 'GitLab',
    secret: 'theirs',
    secretIs: 'the signing token of the webhook (whsec_...), or its secret token',
    where: 'the project, Settings, Webhooks, Add new webhook',
    filterExample: 'object_kind: [issue, merge_request]',
    prompt: anyEvent('GitLab'),
  },
  stripe: {
    scheme: 'stripe',
    title: 'Stripe',
    secret: 'theirs',
    secretIs: 'the signing secret of the endpoint, whsec_ and all',
    where: 'Developers, Webhooks, Add endpoint',
    filterExample: 'type: [invoice.paid, invoice.payment_failed]',
    prompt: `Stripe says {{event.type}}:\n\n{{event.data.object}}\n\nSay in one sentence what happened, and whether somebody has to act.\n`,
    sample: 'stripe:invoice.paid',
  },
  slack: {
    scheme: 'slack',
    title: 'Slack',
    secret: 'theirs',
    secretIs: 'the Signing Secret of the app (Basic Information), not a token',
    where: 'the app, Event Subscriptions, Request URL',
    filter: { 'event.type': ['app_mention'] },
    prompt: `Somebody wrote this to you in Slack:\n\n{{event.event.text}}\n\nAnswer in a few sentences.\n`,
    sample: 'slack:app_mention',
  },
  shopify: {
    scheme: 'shopify',
    title: 'Shopify',
    secret: 'theirs',
    secretIs: 'the client secret of the app',
    where: 'the app, Webhooks',
    filterExample: 'financial_status: [paid]',
    prompt: anyEvent('Shopify'),
  },
  linear: {
    scheme: 'linear',
    title: 'Linear',
    secret: 'theirs',
    secretIs: 'the signing secret of the webhook',
    where: 'Settings, API, Webhooks',
    filterExample: 'type: [Issue, Comment]',
    prompt: anyEvent('Linear'),
  },
  sentry: {
    scheme: 'sentry',
    title: 'Sentry',
    secret: 'theirs',
    secretIs: 'the client secret of the integration',
    where: 'Settings, Developer Settings, the integration, Webhook URL',
    filterExample: 'action: [created, triggered]',
    prompt: anyEvent('Sentry'),
  },
  'standard-webhooks': {
    scheme: 'standard-webhooks',
    title: 'a sender by Standard Webhooks',
    secret: 'theirs',
    secretIs: 'the secret of the endpoint, whsec_ and base64',
    where: 'its settings of webhooks or endpoints',
    filterExample: 'type: [one, another]',
    prompt: anyEvent('a sender'),
  },
  hmac: {
    scheme: 'hmac',
    title: 'any sender with an HMAC',
    secret: 'ours',
    secretIs: 'the secret that both sides have',
    where:
      'its settings; it signs in the header x-hub-signature-256 as GitHub does, or as signature_header, signature_algo and signature_prefix say',
    filterExample: 'type: [one, another]',
    prompt: anyEvent('a sender'),
  },
}
