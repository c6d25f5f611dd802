import { createHmac } from 'node:crypto'
import type { HandshakeKind, SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { valueAt } from '../../util/payload-path.ts'
import { isForm, type Payload } from '../body.ts'
import type { SignatureHeaders } from '../signatures/header.ts'

/*
 * Requests with which a sender tests an address. They run no agent. Those here are signed as deliveries are,
 * and answered only after verification; `handshakes-unsigned.ts` has the others.
 */

/** A response other than the usual 202. */
export type Reply = {
  /** Default 200. */
  readonly code?: number
  /** Default text/plain. */
  readonly type?: 'application/json'
  readonly text: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Handshake = {
  readonly status: 'ping' | 'challenge'
  /** For the owner; never a part of what was sent. */
  readonly detail: string
  readonly reply?: Reply
  /** A token that only the owner sees, who looks at the event. */
  readonly token?: string
  /** An address that the sender wants to be called, with the consent of the owner. */
  readonly confirm?: string
}

/** What a handshake is made of, for a request whose signature is valid. */
type Verified = {
  readonly headers: SignatureHeaders
  readonly payload: Payload
  readonly secrets: () => readonly string[]
}

/** Headers that tell a handshake from a delivery. */
export const handshakeHeaders: { readonly [Kind in HandshakeKind]?: readonly string[] } = {
  github: ['x-github-event'],
  buildkite: ['x-buildkite-event'],
  'google-calendar': ['x-goog-resource-state'],
  twitch: ['twitch-eventsub-message-type'],
  asana: ['x-hook-secret'],
  bitbucket: ['x-event-key'],
  discourse: ['x-discourse-event'],
  cloudevents: ['webhook-request-origin', 'webhook-request-rate'],
}

const isSetUp = 'the webhook is set up and its secret matches'

/** The one value of a header of a handshake. */
const oneOf = (headers: SignatureHeaders, name: string): string | undefined =>
  headers[name]?.length === 1 ? headers[name][0] : undefined

const ping = (detail: string): Handshake => ({ status: 'ping', detail })

const pingByHeader =
  (name: string, value: string) =>
  ({ headers }: Verified): Handshake | undefined =>
    oneOf(headers, name) === value ? ping(isSetUp) : undefined

const pingByField =
  (path: readonly string[], value: string) =>
  ({ payload }: Verified): Handshake | undefined =>
    valueAt(payload, path) === value ? ping(isSetUp) : undefined

/** The text at a path, if it is one of visible ASCII that may be sent back. */
const challengeAt = (payload: Payload, ...path: string[]): string | undefined => {
  const value = valueAt(payload, path)
  return typeof value === 'string' && value !== '' ? value.slice(0, maxChallenge) : undefined
}

const maxChallenge = 4096

const challenge = (sender: string, reply: Reply): Handshake => ({
  status: 'challenge',
  detail: `${sender} asked for its challenge: ${isSetUp}`,
  reply,
})

const textOf = (payload: Payload): string => {
  const text = valueAt(payload, ['text'])
  return typeof text === 'string' ? text : ''
}

const isEmptyList = (payload: Payload, name: string): boolean => {
  const list = valueAt(payload, [name])
  return Array.isArray(list) && list.length === 0
}

const kinds: {
  readonly [Kind in HandshakeKind]?: (request: Verified) => Handshake | undefined
} = {
  /** GitHub's docs, "Webhook events and payloads". */
  github: pingByHeader('x-github-event', 'ping'),
  /** Buildkite's docs, "Webhooks": sent by the button that tests them. */
  buildkite: pingByHeader('x-buildkite-event', 'ping'),
  /** `EmitWebHookEvent` of Discourse, and the test buttons of PagerDuty, Cal.com, Intercom and Bitbucket. */
  discourse: pingByHeader('x-discourse-event', 'ping'),
  bitbucket: pingByHeader('x-event-key', 'diagnostics:ping'),
  pagerduty: pingByField(['event', 'event_type'], 'pagey.ping'),
  'cal-com': pingByField(['triggerEvent'], 'PING'),
  intercom: pingByField(['topic'], 'ping'),
  /** Google's docs, "Push notifications": the first message of a channel. */
  'google-calendar': pingByHeader('x-goog-resource-state', 'sync'),
  /** Slack's docs, "url_verification"; `ssl_check` is sent to slash commands. */
  slack: ({ payload }) => {
    const text = challengeAt(payload, 'challenge')
    if (valueAt(payload, ['type']) === 'url_verification' && text !== undefined)
      return challenge('Slack', { text })
    if (valueAt(payload, ['ssl_check']) === '1')
      return { status: 'challenge', detail: 'Slack checked the certificate', reply: { text: '' } }
    return undefined
  },
  /** Zoom's docs, "Validate your webhook endpoint". What is signed here can never be a delivery. */
  zoom: ({ payload, secrets }) => {
    const plainToken = challengeAt(payload, 'payload', 'plainToken')
    const [secret] = secrets()
    if (valueAt(payload, ['event']) !== 'endpoint.url_validation') return undefined
    if (plainToken === undefined || secret === undefined || !/^[\w-]{1,256}$/.test(plainToken))
      return undefined
    const encryptedToken = createHmac('sha256', secret).update(plainToken).digest('hex')
    const text = JSON.stringify({ plainToken, encryptedToken })
    return challenge('Zoom', { type: 'application/json', text })
  },
  /** Twitch's docs, "Getting events using webhooks". */
  twitch: ({ headers, payload }) => {
    const type = oneOf(headers, 'twitch-eventsub-message-type')
    if (type === 'revocation')
      return ping('Twitch ended this subscription: subscribe again to get its events')
    const text = challengeAt(payload, 'challenge')
    return type === 'webhook_callback_verification' && text !== undefined
      ? challenge('Twitch', { text })
      : undefined
  },
  /** Discord's docs, "Receiving and responding" and "Webhook events": both send a PING. */
  discord: ({ payload }) => {
    const isEvent = valueAt(payload, ['version']) !== undefined && !hasToken(payload)
    const type = valueAt(payload, ['type'])
    // It comes with each key that a person presses, and shows a list of choices.
    if (type === autocomplete && hasToken(payload))
      return {
        status: 'ping',
        detail: 'Discord asked what may follow, and gets no choices',
        reply: { type: 'application/json', text: '{"type":8,"data":{"choices":[]}}' },
      }
    if (isEvent && type === 0) return { ...ping(isSetUp), reply: { code: 204, text: '' } }
    const text = '{"type":1}'
    return type === 1 && valueAt(payload, ['event']) === undefined
      ? { ...ping(isSetUp), reply: { type: 'application/json', text } }
      : undefined
  },
  /** monday's docs, "Webhooks": its JWT proves the sender. */
  monday: ({ payload }) => {
    const given = challengeAt(payload, 'challenge')
    if (given === undefined || valueAt(payload, ['event']) !== undefined) return undefined
    const text = JSON.stringify({ challenge: given })
    return challenge('monday.com', { type: 'application/json', text })
  },
  /** HashiCorp's docs, "Notification configurations". */
  terraform: ({ payload }) =>
    valueAt(payload, ['notifications', '0', 'trigger']) === 'verification'
      ? ping(`HCP Terraform tested the address: ${isSetUp}`)
      : undefined,
  /** Xero's docs, "Webhooks": the intent to receive has no events, and neither has Asana's heartbeat. */
  xero: ({ payload }) =>
    isEmptyList(payload, 'events') ? ping(`Xero tested the address: ${isSetUp}`) : undefined,
  /** LINE's docs, "Receive messages (webhook)": the button that verifies the address sends no events. */
  line: ({ payload }) =>
    isEmptyList(payload, 'events') ? ping(`LINE tested the address: ${isSetUp}`) : undefined,
  /** Figma's docs, "Webhooks V2 events". */
  figma: ({ payload }) => (valueAt(payload, ['event_type']) === 'PING' ? ping(isSetUp) : undefined),
  /** Cloudflare's docs, "Configure webhooks": the test is a text without an alert. */
  cloudflare: ({ payload }) =>
    valueAt(payload, ['alert_type']) === undefined &&
    textOf(payload).startsWith('Hello World! This is a test message')
      ? ping(`Cloudflare tested the address: ${isSetUp}`)
      : undefined,
  asana: ({ payload }) =>
    isEmptyList(payload, 'events') ? ping('Asana tests the address every few hours') : undefined,
  /** Amazon's docs, "Sending Amazon SNS messages to HTTP/HTTPS endpoints". */
  'aws-sns': ({ payload }) => {
    const type = valueAt(payload, ['Type'])
    const confirm = challengeAt(payload, 'SubscribeURL')
    if (type === 'UnsubscribeConfirmation') return ping('Amazon SNS ended this subscription')
    return type === 'SubscriptionConfirmation' && confirm !== undefined
      ? { status: 'challenge', detail: 'Amazon SNS asked to confirm the subscription', confirm }
      : undefined
  },
}

const autocomplete = 4

const hasToken = (payload: Payload): boolean => valueAt(payload, ['token']) !== undefined

/** Reads the handshake in a verified request, undefined for a delivery. */
export const findHandshake = (
  { handshake }: Pick<SignatureScheme, 'handshake'>,
  headers: SignatureHeaders,
  payload: Payload,
  secrets: () => readonly string[] = () => [],
): Handshake | undefined => handshake && kinds[handshake]?.({ headers, payload, secrets })

/**
 * The response to a delivery where the sender takes no 202. Slack requires a plain 200 for slash commands and
 * the buttons and forms of messages, and would show the person its text (docs: "Implementing slash
 * commands", "Handling user interaction"); Discord an answer that only the person sees.
 */
export const getReply = (
  { handshake, emptyReply, answer }: Pick<SignatureScheme, 'handshake' | 'emptyReply' | 'answer'>,
  headers: SignatureHeaders,
  payload: Payload,
): Reply | undefined => {
  if (answer)
    return { code: answer.status, ...(isJsonText(answer.text) && json), text: answer.text }
  if (emptyReply || (handshake === 'slack' && isForm(headers['content-type']?.[0])))
    return { text: '' }
  if (handshake !== 'discord') return undefined
  return hasToken(payload)
    ? { type: 'application/json', text: '{"type":4,"data":{"content":"Accepted.","flags":64}}' }
    : { code: 204, text: '' }
}

const json = { type: 'application/json' } as const

const isJsonText = (text: string): boolean => {
  try {
    return typeof JSON.parse(text) === 'object'
  } catch {
    return false
  }
}
