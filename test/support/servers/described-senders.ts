import { type BinaryLike, createHmac, randomUUID } from 'node:crypto'
import type { SchemeName } from '../../../shared/signatures/presets.ts'
import type { Headers } from './senders.ts'

/*
 * Senders without a package that signs, written from their documents with node:crypto alone: nothing here reads
 * the table of schemes.
 */

/** What is sent of a time, an id and the kind of event, and how a signature over it is written. */
export type DescribedSender = {
  readonly scheme: SchemeName
  readonly secret: string
  readonly otherSecret: string
  readonly body?: object
  /** Headers that come before the signature. */
  readonly before?: (nowMs: number) => Headers
  /** The headers with the signature or token. */
  readonly proof: (secret: string, body: string, given: Headers, more: Context) => Headers
}

type Context = {
  /** The public address of the webhook. */
  readonly url: string
  /** In seconds, for a sender that has it in its signature. */
  readonly time: string
}

const mac = (key: string, signed: BinaryLike, algorithm = 'sha256') =>
  createHmac(algorithm, key).update(signed)
const hex = (key: string, signed: string, algorithm?: string) =>
  mac(key, signed, algorithm).digest('hex')
const base64 = (key: string, signed: string, algorithm?: string) =>
  mac(key, signed, algorithm).digest('base64')
const seconds = (ms: number) => String(Math.floor(ms / 1000))

/** The HMAC of the body alone in one header. */
const overBody =
  (header: string, prefix = '', digest = hex, algorithm = 'sha256') =>
  (secret: string, body: string): Headers => ({
    [header]: prefix + digest(secret, body, algorithm),
  })

const plain = (
  scheme: SchemeName,
  proof: DescribedSender['proof'],
  secret?: string,
): DescribedSender => ({
  scheme,
  secret: secret ?? `secret of ${scheme}`,
  otherSecret:
    secret === undefined
      ? `another of ${scheme}`
      : secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
  proof,
})

const token = (scheme: SchemeName, header: string, secret: string): DescribedSender => ({
  ...plain(scheme, (given) => ({ [header]: given }), secret),
})

export const describedSenders: readonly DescribedSender[] = [
  {
    ...plain('gitea', overBody('x-gitea-signature')),
    before: () => ({
      'x-gitea-event': 'push',
      'x-gogs-event': 'push',
      'x-gitea-delivery': randomUUID(),
    }),
  },
  {
    ...plain('bitbucket', overBody('x-hub-signature', 'sha256=')),
    before: () => ({ 'x-event-key': 'repo:push', 'x-request-uuid': randomUUID() }),
  },
  {
    ...plain('jira', overBody('x-hub-signature', 'sha256=')),
    before: () => ({ 'x-atlassian-webhook-identifier': randomUUID() }),
  },
  plain('azure-devops', (secret) => ({
    authorization: `Basic ${Buffer.from(`doorward:${secret}`).toString('base64')}`,
  })),
  plain('pagerduty', overBody('x-pagerduty-signature', 'v1=')),
  plain('grafana', overBody('x-grafana-alerting-signature')),
  plain('alertmanager', (secret) => ({ authorization: `Bearer ${secret}` })),
  plain('vercel', overBody('x-vercel-signature', '', hex, 'sha1')),
  plain('circleci', overBody('circleci-signature', 'v1=')),
  {
    ...plain('buildkite', (secret, body, _given, { time }) => ({
      'x-buildkite-signature': `timestamp=${time},signature=${hex(secret, `${time}.${body}`)}`,
    })),
    before: () => ({ 'x-buildkite-event': 'build.finished' }),
  },
  plain('terraform', overBody('x-tfe-notification-signature', '', hex, 'sha512')),
  {
    ...plain('discourse', overBody('x-discourse-event-signature', 'sha256=')),
    before: () => ({ 'x-discourse-event': 'post_created', 'x-discourse-event-id': '7' }),
  },
  plain('cloudevents', (secret) => ({ authorization: `Bearer ${secret}` })),
  {
    ...plain('zoom', (secret, body, { 'x-zm-request-timestamp': time }) => ({
      'x-zm-signature': `v0=${hex(secret, `v0:${time}:${body}`)}`,
    })),
    before: (nowMs) => ({ 'x-zm-request-timestamp': seconds(nowMs) }),
  },
  plain('meta', overBody('x-hub-signature-256', 'sha256='), '0123456789abcdef0123456789abcde0'),
  plain('notion', overBody('x-notion-signature', 'sha256='), 'secret_of_notion_0'),
  plain('typeform', overBody('typeform-signature', 'sha256=', base64)),
  plain('calendly', (secret, body, _given, { time }) => ({
    'calendly-webhook-signature': `t=${time},v1=${hex(secret, `${time}.${body}`)}`,
  })),
  plain('cal-com', overBody('x-cal-signature-256')),
  plain('dropbox', overBody('x-dropbox-signature')),
  plain(
    'trello',
    (secret, body, _given, { url }) => ({ 'x-trello-webhook': base64(secret, body + url, 'sha1') }),
    `${'0123456789abcdef'.repeat(3)}0123456789abcde0`,
  ),
  plain('asana', overBody('x-hook-signature')),
  {
    ...plain('hubspot', (secret, body, { 'x-hubspot-request-timestamp': time }, { url }) => ({
      'x-hubspot-signature-v3': base64(secret, `POST${url}${body}${time}`),
    })),
    before: (nowMs) => ({ 'x-hubspot-request-timestamp': String(nowMs) }),
  },
  plain('lemon-squeezy', overBody('x-signature')),
  plain('docusign', overBody('x-docusign-signature-1', '', base64)),
  {
    ...plain(
      'todoist',
      overBody('x-todoist-hmac-sha256', '', base64),
      '0123456789abcdef0123456789abcd00',
    ),
    before: () => ({ 'x-todoist-delivery-id': randomUUID() }),
  },
  token('telegram', 'x-telegram-bot-api-secret-token', 'secret-of-telegram-0'),
  {
    ...plain('woocommerce', overBody('x-wc-webhook-signature', '', base64)),
    before: () => ({
      'x-wc-webhook-topic': 'order.created',
      'x-wc-webhook-delivery-id': randomUUID(),
    }),
  },
  {
    ...plain('zendesk', (secret, body, { 'x-zendesk-webhook-signature-timestamp': time }) => ({
      'x-zendesk-webhook-signature': base64(secret, `${time}${body}`),
    })),
    before: (nowMs) => ({
      'x-zendesk-webhook-signature-timestamp': new Date(nowMs).toISOString().replace(/\.\d+/, ''),
      'x-zendesk-webhook-invocation-id': randomUUID(),
    }),
  },
  plain('xero', overBody('x-xero-signature', '', base64)),
  plain('square', (secret, body, _given, { url }) => ({
    'x-square-hmacsha256-signature': base64(secret, url + body),
  })),
  plain('paystack', overBody('x-paystack-signature', '', hex, 'sha512'), 'sk_test_0'),
  plain('intercom', overBody('x-hub-signature', 'sha1=', hex, 'sha1')),
  {
    ...plain(
      'twitch',
      (
        secret,
        body,
        { 'twitch-eventsub-message-id': id, 'twitch-eventsub-message-timestamp': time },
      ) => ({
        'twitch-eventsub-message-signature': `sha256=${hex(secret, `${id}${time}${body}`)}`,
      }),
    ),
    before: (nowMs) => ({
      'twitch-eventsub-message-id': randomUUID(),
      'twitch-eventsub-message-timestamp': new Date(nowMs).toISOString().replace('Z', '123456Z'),
    }),
  },
  {
    ...token('google-calendar', 'x-goog-channel-token', 'secret of google-calendar 0'),
    before: () => ({ 'x-goog-resource-state': 'exists', 'x-goog-channel-id': 'c' }),
  },
]
