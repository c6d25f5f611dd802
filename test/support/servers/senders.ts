import { createHmac, randomUUID } from 'node:crypto'
import '@shopify/shopify-api/adapters/node'
import { Paddle } from '@paddle/paddle-node-sdk'
import Razorpay from 'razorpay'
import { LinearWebhookClient } from '@linear/sdk/webhooks'
import { sign as signLikeGitHub, verify as verifyLikeGitHub } from '@octokit/webhooks-methods'
import { type ApiVersion, shopifyApi } from '@shopify/shopify-api'
import { verifySlackRequest } from '@slack/bolt'
import { Webhook as StandardWebhook } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { Webhook as SvixWebhook } from 'svix'
import type { SchemeName } from '../../../shared/signatures/presets.ts'
import { type DescribedSender, describedSenders } from './described-senders.ts'

/** Headers by their lower-case names. */
export type Headers = Record<string, string>

export type SignedRequest = { readonly headers: Headers; readonly body: string }

/** A sender and its own judge, made of the sender's published package where there is one. */
export type Sender = {
  readonly name: string
  readonly scheme: SchemeName
  readonly secret: string
  /** Another secret of the same shape. */
  readonly otherSecret: string
  /** Signs at this moment, by the sender's package if it can sign. */
  readonly sign: (body: string, nowMs: number, secret?: string) => Promise<Headers>
  /** What the package of the sender that verifies says; left out where none is published. */
  readonly accepts?: (request: SignedRequest, nowMs: number) => Promise<boolean>
  /** True for headers that prove this body, with the time and id that they have; where `sign` draws them. */
  readonly proves?: (headers: Headers, body: string, secret: string) => boolean
  /** True when `accepts` looks at the real clock whatever `nowMs` is. */
  readonly usesRealClock?: boolean
  /** What the sender sends in the body at this moment. */
  readonly bodyAt: (nowMs: number) => string
}

const json = { 'content-type': 'application/json' }
const hmac = (secret: string, body: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', secret).update(body).digest(encoding)
const seconds = (ms: number) => Math.floor(ms / 1000)

const judged = async (judge: () => unknown): Promise<boolean> => {
  try {
    return (await judge()) !== false
  } catch {
    return false
  }
}

const plainBody = () => '{"action":"opened","text":"tür \\u00e9 ✓","list":[1,2]}'

/** A header as a client's package sees it: Node gives Latin-1, these hold ASCII only. */
const github: Sender = {
  name: 'GitHub by @octokit/webhooks-methods',
  scheme: 'github',
  secret: "It's a Secret to Everybody",
  otherSecret: 'another secret',
  bodyAt: () => '{"action":"opened","pull_request":{},"text":"tür \\u00e9 ✓","list":[1,2]}',
  sign: async (body, _nowMs, secret = github.secret) => ({
    ...json,
    'x-github-event': 'pull_request',
    'x-github-delivery': randomUUID(),
    'x-hub-signature-256': await signLikeGitHub(secret, body),
  }),
  accepts: async ({ headers, body }) =>
    judged(async () => verifyLikeGitHub(github.secret, body, headers['x-hub-signature-256'] ?? '')),
}

const stripe: Sender = {
  name: 'Stripe by stripe',
  scheme: 'stripe',
  secret: 'whsec_a2V5IG9mIHRoZSB0ZXN0IGFuZCBub3RoaW5n',
  otherSecret: 'whsec_b3RoZXIga2V5IG9mIHRoZSB0ZXN0IGFuZCBu',
  bodyAt: () => JSON.stringify({ id: 'evt_1', object: 'event', type: 'invoice.paid' }, null, 2),
  sign: async (payload, nowMs, secret = stripe.secret) => ({
    ...json,
    'stripe-signature': Stripe.webhooks.generateTestHeaderString({
      payload,
      secret,
      timestamp: seconds(nowMs),
    }),
  }),
  accepts: async ({ headers, body }, nowMs) =>
    judged(() =>
      Stripe.webhooks.constructEvent(
        body,
        headers['stripe-signature'] ?? '',
        stripe.secret,
        undefined,
        undefined,
        nowMs,
      ),
    ),
}

const slack: Sender = {
  name: 'Slack judged by @slack/bolt',
  scheme: 'slack',
  secret: '8f742231b10e8888abcd99yyyzzz85a5',
  otherSecret: '0123456789abcdef0123456789abcdef',
  bodyAt: () => '{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}',
  sign: async (body, nowMs, secret = slack.secret) => {
    const timestamp = String(seconds(nowMs))
    return {
      ...json,
      'x-slack-request-timestamp': timestamp,
      'x-slack-signature': `v0=${hmac(secret, `v0:${timestamp}:${body}`, 'hex')}`,
    }
  },
  accepts: async ({ headers, body }, nowMs) =>
    judged(() => {
      verifySlackRequest({
        signingSecret: slack.secret,
        body,
        headers: {
          'x-slack-signature': headers['x-slack-signature'] ?? '',
          // Bolt's own receiver hands the text of the header on in the same way.
          'x-slack-request-timestamp': headers['x-slack-request-timestamp'] as unknown as number,
        },
        nowMilliseconds: nowMs,
      })
    }),
}

const standardHeaders = (
  family: 'webhook' | 'svix',
  id: string,
  nowMs: number,
  signature: string,
): Headers => ({
  ...json,
  [`${family}-id`]: id,
  [`${family}-timestamp`]: String(seconds(nowMs)),
  [`${family}-signature`]: signature,
})

const standard: Sender = {
  name: 'Standard Webhooks by standardwebhooks',
  scheme: 'standard-webhooks',
  secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
  otherSecret: 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD',
  bodyAt: plainBody,
  usesRealClock: true,
  sign: async (body, nowMs, secret = standard.secret) => {
    const id = `msg_${randomUUID()}`
    const signature = new StandardWebhook(secret).sign(id, new Date(nowMs), body)
    return standardHeaders('webhook', id, nowMs, signature)
  },
  accepts: async ({ headers, body }) =>
    judged(() => {
      new StandardWebhook(standard.secret).verify(body, headers)
    }),
}

const svix: Sender = {
  ...standard,
  name: 'Svix by svix',
  sign: async (body, nowMs, secret = standard.secret) => {
    const id = `msg_${randomUUID()}`
    const signature = new SvixWebhook(secret).sign(id, new Date(nowMs), body)
    return standardHeaders('svix', id, nowMs, signature)
  },
  accepts: async ({ headers, body }) =>
    judged(() => {
      new SvixWebhook(standard.secret).verify(body, headers)
    }),
}

const gitlabSigned: Sender = {
  ...standard,
  name: 'GitLab with a signing token by standardwebhooks',
  scheme: 'gitlab',
  sign: async (body, nowMs, secret) => ({
    ...(await standard.sign(body, nowMs, secret)),
    'x-gitlab-event': 'Push Hook',
  }),
}

const gitlabToken: Sender = {
  name: 'GitLab with a token',
  scheme: 'gitlab',
  secret: 'a token of the test: tür',
  otherSecret: 'another token',
  bodyAt: () => '{"object_kind":"push"}',
  sign: async (_body, nowMs, secret = gitlabToken.secret) => ({
    ...json,
    'x-gitlab-event': 'Push Hook',
    'webhook-id': randomUUID(),
    'webhook-timestamp': String(seconds(nowMs)),
    'x-gitlab-token': Buffer.from(secret).toString('latin1'),
  }),
}

const shop = (apiSecretKey: string) =>
  shopifyApi({
    apiKey: 'key',
    apiSecretKey,
    hostName: 'shop.example.com',
    apiVersion: '2025-10' as ApiVersion,
    isEmbeddedApp: false,
    scopes: [],
    logger: { level: 0 },
  })

const shopify = (prefix: 'x-shopify' | 'shopify'): Sender => ({
  name: `Shopify (${prefix}-hmac-sha256) judged by @shopify/shopify-api`,
  scheme: 'shopify',
  secret: 'shpss_0123456789abcdef0123456789abcdef',
  otherSecret: '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',
  bodyAt: plainBody,
  sign: async (body, _nowMs, secret = 'shpss_0123456789abcdef0123456789abcdef') => ({
    ...json,
    [`${prefix}-topic`]: 'orders/create',
    [`${prefix}-shop-domain`]: 'shop.myshopify.com',
    [`${prefix}-api-version`]: '2025-10',
    [`${prefix}-webhook-id`]: randomUUID(),
    [`${prefix}-event-id`]: randomUUID(),
    [`${prefix}-hmac-sha256`]: hmac(secret, body, 'base64'),
  }),
  accepts: async ({ headers, body }) =>
    judged(async () => {
      const { valid } = await shop('shpss_0123456789abcdef0123456789abcdef').webhooks.validate({
        rawBody: body,
        rawRequest: { method: 'POST', url: '/webhook', headers },
        rawResponse: {},
      })
      return valid
    }),
})

const linear: Sender = {
  name: 'Linear judged by @linear/sdk',
  scheme: 'linear',
  secret: 'lin_wh_0123456789abcdef',
  otherSecret: 'lin_wh_fedcba9876543210',
  bodyAt: (nowMs) => JSON.stringify({ type: 'Issue', action: 'create', webhookTimestamp: nowMs }),
  usesRealClock: true,
  sign: async (body, nowMs, secret = linear.secret) => ({
    ...json,
    'linear-delivery': randomUUID(),
    'linear-event': 'Issue',
    'linear-timestamp': String(nowMs),
    'linear-signature': hmac(secret, body, 'hex'),
  }),
  accepts: async ({ headers, body }) =>
    judged(() =>
      new LinearWebhookClient(linear.secret).verify(
        Buffer.from(body),
        headers['linear-signature'] ?? '',
      ),
    ),
}

const sentry: Sender = {
  name: 'Sentry as its page says',
  scheme: 'sentry',
  secret: '0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef',
  otherSecret: 'fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210',
  bodyAt: plainBody,
  sign: async (body, nowMs, secret = sentry.secret) => ({
    ...json,
    'request-id': randomUUID(),
    'sentry-hook-resource': 'issue',
    'sentry-hook-timestamp': String(seconds(nowMs)),
    'sentry-hook-signature': hmac(secret, body, 'hex'),
  }),
}

const hmacDefault: Sender = { ...github, name: 'GitHub with hmac', scheme: 'hmac' }

const bearer: Sender = {
  name: 'a sender with a bearer token',
  scheme: 'token',
  secret: 'the token: tür',
  otherSecret: 'another token',
  bodyAt: plainBody,
  sign: async (_body, _nowMs, secret = bearer.secret) => ({
    ...json,
    authorization: `Bearer ${Buffer.from(secret).toString('latin1')}`,
  }),
}

const paddle: Sender = {
  name: 'Paddle judged by @paddle/paddle-node-sdk',
  scheme: 'paddle',
  secret: 'pdl_ntfset_0123456789',
  otherSecret: 'pdl_ntfset_9876543210',
  bodyAt: () => '{"event_id":"evt_1","event_type":"transaction.paid"}',
  usesRealClock: true,
  sign: async (body, nowMs, secret = paddle.secret) => {
    const time = String(seconds(nowMs))
    return {
      ...json,
      'paddle-signature': `ts=${time};h1=${hmac(secret, `${time}:${body}`, 'hex')}`,
    }
  },
  accepts: async ({ headers, body }) =>
    judged(() =>
      new Paddle('key').webhooks.isSignatureValid(
        body,
        paddle.secret,
        headers['paddle-signature'] ?? '',
      ),
    ),
}

const razorpay: Sender = {
  name: 'Razorpay judged by razorpay',
  scheme: 'razorpay',
  secret: 'secret of razorpay',
  otherSecret: 'another of razorpay',
  bodyAt: () => '{"event":"payment.captured"}',
  sign: async (body, _nowMs, secret = razorpay.secret) => ({
    ...json,
    'x-razorpay-event-id': randomUUID(),
    'x-razorpay-signature': hmac(secret, body, 'hex'),
  }),
  accepts: async ({ headers, body }) =>
    judged(() =>
      Razorpay.validateWebhookSignature(
        body,
        headers['x-razorpay-signature'] ?? '',
        razorpay.secret,
      ),
    ),
}

/** Bearer and Basic have no case, of Basic the password counts, and of several signatures in a list any fits. */
const isProof = (given: string, right: string): boolean => {
  const [one, other] = [readCredentials(given), readCredentials(right)]
  if (one !== undefined) return one === other
  const isList = /(^|,)(v1|signature)=/.test(right)
  return isList
    ? right.split(',').every((part) => given.split(',').includes(part))
    : given === right
}

const readCredentials = (text: string): string | undefined => {
  const [, word = '', credentials] = /^(bearer|basic) +(.*)$/is.exec(text) ?? []
  if (credentials === undefined) return undefined
  if (word.toLowerCase() === 'bearer') return credentials
  return Buffer.from(credentials, 'base64')
    .toString('latin1')
    .replace(/^[^:]*:/, '')
}

/** A sender without a package, as its documents say. */
const toSender = ({ before, proof, ...described }: DescribedSender): Sender => {
  const { scheme, secret: own } = described
  const url = () => `${publicUrl}${pathOf(sender)}`
  const sender: Sender = {
    ...described,
    name: `${scheme} as its page says`,
    bodyAt: plainBody,
    sign: async (body, nowMs, secret = own) => {
      const given = { ...json, ...before?.(nowMs) }
      const time = String(seconds(nowMs))
      return { ...given, ...proof(secret, body, given, { url: url(), time }) }
    },
    proves: (headers, body, secret) => {
      const signature = Object.keys(proof(secret, body, headers, { url: url(), time: '' }))
      const [, time = ''] = /\b(?:t|timestamp)=(\d+)/.exec(headers[signature[0] ?? ''] ?? '') ?? []
      const right = proof(secret, body, headers, { url: url(), time })
      return Object.entries(right).every(([name, value]) => isProof(headers[name] ?? '', value))
    },
  }
  return sender
}

/** Where the tests serve the webhook of a sender; some sign their address. */
export const publicUrl = 'https://hooks.example.com'
export const pathOf = (sender: Sender): string => `/webhook/${senders.indexOf(sender)}`

/** Every sender that there is a scheme for. */
export const senders: readonly Sender[] = [
  hmacDefault,
  github,
  stripe,
  slack,
  standard,
  svix,
  gitlabSigned,
  gitlabToken,
  shopify('x-shopify'),
  shopify('shopify'),
  linear,
  sentry,
  bearer,
  paddle,
  razorpay,
  ...describedSenders.map(toSender),
]
