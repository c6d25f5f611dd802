import { constantTimeEqual } from '../../../shared/constant-time.ts'
import type { Webhook as ConfiguredWebhook } from '../../../shared/config/webhook.ts'
import type { HandshakeKind, SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { answerChallenge } from './challenges.ts'
import type { Handshake, Reply } from './handshakes.ts'
import { invalid, type SignatureHeaders } from '../signatures/header.ts'
import { requireSecret, type Verifier } from '../signatures/verify.ts'

/*
 * Handshakes that no signature covers: requests by another method than POST, and those that come before there
 * is a secret. Each is answered only for the sender that documents it, and gives nothing away.
 */

export type UnsignedRequest = {
  readonly method: string
  /** As it was sent, with its query. */
  readonly url: string
  readonly headers: SignatureHeaders
  /** Empty but for a POST. */
  readonly bytes: Buffer
}

/** With `secret`, the value that the owner agreed to keep as the secret of the webhook. */
export type UnsignedHandshake = Handshake & { readonly reply: Reply; readonly secret?: string }

/** What of a webhook decides on a handshake. */
type Webhook = Pick<ConfiguredWebhook, 'confirm' | 'secretNames'> & {
  readonly verifier: Verifier
  readonly verifyTokens: () => readonly string[]
  readonly scheme: Pick<SignatureScheme, 'handshake' | 'challenge' | 'title'>
}

type Asked = UnsignedRequest & { readonly webhook: Webhook }

const maxLength = 4096

/** The one value of a parameter of the query. */
const parameter = (url: string, name: string): string | undefined => {
  const start = url.indexOf('?')
  if (start === -1) return undefined
  const [value, second] = new URLSearchParams(url.slice(start)).getAll(name)
  return second === undefined && value !== '' && (value?.length ?? 0) <= maxLength
    ? value
    : undefined
}

const header = (headers: SignatureHeaders, name: string): string | undefined =>
  headers[name]?.length === 1 ? headers[name][0] : undefined

/** Plain text that no browser takes for a page. */
const echo = (sender: string, text: string): UnsignedHandshake => ({
  status: 'challenge',
  detail: `${sender} asked for its challenge, which proves nothing: its deliveries are verified`,
  reply: { text },
})

const kinds: {
  readonly [Kind in HandshakeKind]?: {
    readonly method: string
    readonly find: (request: Asked) => UnsignedHandshake | undefined
  }
} = {
  /** Meta's docs, "Webhooks", "Verification requests". */
  meta: {
    method: 'GET',
    find: ({ url, webhook }) => {
      if (parameter(url, 'hub.mode') !== 'subscribe') return undefined
      const given = parameter(url, 'hub.verify_token')
      const text = parameter(url, 'hub.challenge')
      if (given === undefined || text === undefined)
        throw invalid('hub.verify_token or hub.challenge is missing')
      requireSecret(webhook.verifier)
      if (!webhook.verifyTokens().some((token) => constantTimeEqual(token, given)))
        throw invalid(
          'hub.verify_token is another one than verify_token_env (or secret_env) has here',
        )
      const detail = 'Meta asked for its challenge, and has the verify token that is set here'
      return { status: 'challenge', detail, reply: { text } }
    },
  },
  /** Strava's docs, "Webhook Events API", "Validating the subscription". */
  strava: {
    method: 'GET',
    find: ({ url, webhook }) => {
      if (parameter(url, 'hub.mode') !== 'subscribe') return undefined
      const given = parameter(url, 'hub.verify_token')
      const challenge = parameter(url, 'hub.challenge')
      if (given === undefined || challenge === undefined)
        throw invalid('hub.verify_token or hub.challenge is missing')
      requireSecret(webhook.verifier)
      if (!webhook.verifyTokens().some((token) => constantTimeEqual(token, given)))
        throw invalid('hub.verify_token is not the value of verify_token_env (or secret_env)')
      const detail = 'Strava asked for its challenge, and has the verify token that is set here'
      const text = JSON.stringify({ 'hub.challenge': challenge })
      return { status: 'challenge', detail, reply: { type: 'application/json', text } }
    },
  },
  /**
   * WebSub section 5.3. Any client can ask a hub to end a subscription, so only one that begins is confirmed: an
   * owner who wants to end it lets it expire.
   */
  websub: {
    method: 'GET',
    find: ({ url, webhook }) => {
      const mode = parameter(url, 'hub.mode')
      const text = parameter(url, 'hub.challenge')
      requireSecret(webhook.verifier)
      if (mode === 'denied') {
        const detail = 'the hub has ended or refused the subscription: subscribe again'
        return { status: 'ping', detail, reply: { text: '' } }
      }
      return mode === 'subscribe' && text !== undefined ? echo('a hub of WebSub', text) : undefined
    },
  },
  /** Dropbox's docs, "Webhooks". */
  dropbox: {
    method: 'GET',
    find: ({ url, webhook }) => {
      const text = parameter(url, 'challenge')
      requireSecret(webhook.verifier)
      return text === undefined ? undefined : echo('Dropbox', text)
    },
  },
  /** Microsoft's docs, "Receive change notifications through webhooks", "Notification endpoint validation". */
  'microsoft-graph': {
    method: 'POST',
    find: ({ url, webhook }) => {
      const text = parameter(url, 'validationToken')
      if (text === undefined) return undefined
      requireSecret(webhook.verifier)
      return echo('Microsoft Graph', text)
    },
  },
  /** Atlassian's docs, "Webhooks" of Trello. */
  trello: {
    method: 'HEAD',
    find: ({ webhook }) => {
      requireSecret(webhook.verifier)
      const detail = 'Trello tested the address: its deliveries are verified'
      return { status: 'ping', detail, reply: { text: '' } }
    },
  },
  /** CloudEvents, "HTTP 1.1 Web Hooks for Event Delivery", section 4. */
  cloudevents: {
    method: 'OPTIONS',
    find: ({ headers, webhook }) => {
      const origin = header(headers, 'webhook-request-origin')
      if (origin === undefined || !/^[\w.-]{1,253}$/.test(origin)) return undefined
      requireSecret(webhook.verifier)
      return {
        status: 'challenge',
        detail: `${origin} asked whether it may send: its deliveries are verified`,
        reply: {
          text: '',
          headers: {
            Allow: 'POST, OPTIONS',
            'WebHook-Allowed-Origin': origin,
            'WebHook-Allowed-Rate': '*',
          },
        },
      }
    },
  },
  /** Asana's docs, "Webhooks", "The webhook handshake". */
  asana: {
    method: 'POST',
    find: ({ headers, webhook }) => {
      const secret = header(headers, 'x-hook-secret')
      if (secret === undefined) return undefined
      if (webhook.verifier !== 'unset')
        throw invalid(
          'Asana sends a secret for a new webhook, but this one has one: doorward webhook add asana --path PATH adds another',
        )
      if (!webhook.confirm)
        throw invalid(
          'Asana sends the secret of a new webhook, and the owner has not agreed to keep it: doorward webhook add asana asks, or set confirm: true',
        )
      if (!/^[\w+/=-]{16,256}$/.test(secret)) throw invalid('x-hook-secret is no secret of Asana')
      const detail = `Asana sent its secret, which is now ${webhook.secretNames[0]} in .env`
      const reply = { text: '', headers: { 'X-Hook-Secret': secret } }
      return { status: 'challenge', detail, reply, secret }
    },
  },
  /** Notion's docs, "Webhooks", "Verify your webhook subscription". */
  notion: {
    method: 'POST',
    find: ({ bytes, webhook }) => {
      if (webhook.verifier !== 'unset' || bytes.length > maxLength) return undefined
      const [, token] =
        /^\s*\{\s*"verification_token"\s*:\s*"([\w-]{16,256})"\s*\}\s*$/.exec(
          bytes.toString('latin1'),
        ) ?? []
      if (token === undefined) return undefined
      const detail = `Notion sent its verification token, shown by doorward events show: enter it at Notion, and if it takes it also into .env as ${webhook.secretNames[0]}`
      return { status: 'challenge', detail, reply: { text: '' }, token }
    },
  },
  /** Its button "Test connection" in Bitbucket Data Center signs nothing. */
  bitbucket: {
    method: 'POST',
    find: ({ headers, bytes, webhook }) => {
      if (header(headers, 'x-event-key') !== 'diagnostics:ping') return undefined
      if (header(headers, 'x-hub-signature') !== undefined || bytes.length > 64) return undefined
      requireSecret(webhook.verifier)
      const detail = 'Bitbucket tested the address: its deliveries are verified'
      return { status: 'ping', detail, reply: { text: '' } }
    },
  },
  /** `WC_Webhook::deliver_ping` of WooCommerce, which is sent when a webhook is saved. */
  woocommerce: {
    method: 'POST',
    find: ({ bytes, webhook }) => {
      if (bytes.length > 64 || !/^webhook_id=\d+$/.test(bytes.toString('latin1'))) return undefined
      requireSecret(webhook.verifier)
      const detail = 'WooCommerce tested the address: its deliveries are verified'
      return { status: 'ping', detail, reply: { text: '' } }
    },
  },
}

/** The methods of the handshakes of a sender, for `Allow`. */
export const handshakeMethods = ({
  handshake,
  challenge,
}: Pick<SignatureScheme, 'handshake' | 'challenge'>): readonly string[] => [
  ...(handshake && kinds[handshake] ? [kinds[handshake].method] : []),
  ...(challenge ? ['GET', 'HEAD'] : []),
]

/** The challenge that the table or the owner of the webhook describes. */
const findChallenge = ({ webhook, url, headers }: Asked): UnsignedHandshake | undefined => {
  const { challenge, title } = webhook.scheme
  const { query = '', header: name = '' } = challenge ?? {}
  const given = query === '' ? toShort(header(headers, name)) : parameter(url, query)
  if (!challenge || given === undefined) return undefined
  requireSecret(webhook.verifier)
  const { verifier } = webhook
  const key = typeof verifier === 'string' ? undefined : verifier[0].keys[0]
  return { ...echo(title, ''), reply: answerChallenge(challenge, given, key) }
}

const toShort = (text: string | undefined): string | undefined =>
  text === '' || (text?.length ?? 0) > maxLength ? undefined : text

/**
 * Reads a handshake that nothing signs, undefined for any other request. Throws `signature-invalid` for one
 * without its proof, `unavailable` while the secret of the webhook is unset.
 */
export const findUnsignedHandshake = (
  webhook: Webhook,
  request: UnsignedRequest,
): UnsignedHandshake | undefined => {
  if (webhook.scheme.challenge && ['GET', 'HEAD'].includes(request.method))
    return findChallenge({ ...request, webhook })
  const kind = webhook.scheme.handshake && kinds[webhook.scheme.handshake]
  return kind?.method === request.method ? kind.find({ ...request, webhook }) : undefined
}
