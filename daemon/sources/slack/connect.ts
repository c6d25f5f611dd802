import type { WebSocket } from 'ws'
import { isLoopbackUrl } from '../../../shared/net.ts'
import { describeUnreachable } from '../../../shared/network/faults.ts'
import { openTunnel, startTls } from '../../../shared/network/outgoing.ts'
import { textAt } from '../../util/payload-path.ts'
import { requestTarget, toStatusError } from '../../delivery/request.ts'
import type { DeliveryError } from '../../delivery/delivery-error.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'
import { SourceFault } from '../source.ts'

/*
 * Opening a socket of Slack's Socket Mode (docs.slack.dev/apis/events-api/using-socket-mode):
 * apps.connections.open with the app-level token -> the address of a socket -> WebSocket, through the proxy.
 */

const openMs = 15_000
/** The largest messages of Slack have some 100 KB. */
const maxMessageBytes = 8 * 1024 * 1024

let library: typeof WebSocket | undefined

/** Loads the client while its file is there: an update may replace it later. */
export const loadWebSocket = async (): Promise<typeof WebSocket> =>
  (library ??= (await import('ws')).WebSocket)

/** Answers after which no other attempt helps (`@slack/socket-mode`, UnrecoverableSocketModeStartError). */
const finalErrors: Readonly<Record<string, string>> = {
  not_authed: 'the app-level token is empty',
  invalid_auth: 'the app-level token is not valid: it was revoked, or cut when it was copied',
  account_inactive: 'the app was removed from its workspace, or its token revoked',
  user_removed_from_team: 'the person who made the token has left the workspace',
  team_disabled: 'the workspace is disabled',
  token_revoked: 'the app-level token was revoked',
  not_allowed_token_type: 'it is a token of another kind',
  missing_scope: 'the app-level token lacks the scope connections:write',
}

const tokenHint = (name: string): string =>
  `make one at Slack (the app, Basic Information, App-Level Tokens, connections:write), and put it into ${name} in .env`

/** Asks for the address of a socket. Throws `SourceFault`. */
export const requestSocketUrl = async (
  apiUrl: string,
  { token, name }: { readonly token: string; readonly name: string },
  signal: AbortSignal,
): Promise<URL> => {
  if (!/^xapp-[\w-]+$/.test(token))
    throw new SourceFault(`${name} is ${describeOther(token)}, not an app-level token (xapp-…)`, {
      hint: tokenHint(name),
      isFinal: true,
    })
  const response = await requestTarget(new URL(`${apiUrl}/apps.connections.open`), {
    target: 'slack',
    method: 'POST',
    token,
    attempt: { signal, timeoutMs: openMs },
  }).catch((error: DeliveryError) => {
    throw new SourceFault(error.message, { hint: error.hint })
  })
  const { json, headers } = response
  const error = textAt(json, 'error') ?? ''
  const why = Object.hasOwn(finalErrors, error) ? finalErrors[error] : undefined
  if (why !== undefined)
    throw new SourceFault(`slack answered ${error}: ${why}`, {
      hint: tokenHint(name),
      isFinal: true,
    })
  const retryAfterMs = retryAfterIn(headers['retry-after'])
  const failure = toStatusError('slack', response)
  if (failure) throw new SourceFault(failure.message, { hint: failure.hint, retryAfterMs })
  if (/^[a-z_]{1,64}$/.test(error))
    throw new SourceFault(`slack answered ${error}`, { retryAfterMs })
  return toSocketUrl(textAt(json, 'url') ?? '', apiUrl)
}

const describeOther = (token: string): string => {
  if (token.startsWith('xoxb-')) return 'the token of a bot'
  if (token.startsWith('xoxp-')) return 'the token of a person'
  return 'something else'
}

/** Throws for an address that is not encrypted, but on this machine. */
const toSocketUrl = (text: string, apiUrl: string): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isPlain = url?.protocol === 'ws:' && isLoopbackUrl(text) && isLoopbackUrl(apiUrl)
  if (url && (url.protocol === 'wss:' || isPlain)) return url
  throw new SourceFault('slack named no address of a socket (wss://…)', {
    hint: 'check targets.slack.api_url',
  })
}

/**
 * A socket that is being opened, through the proxy and with the certificates of the environment. Throws
 * `SourceFault`.
 */
export const openSocket = async (url: URL, signal: AbortSignal): Promise<WebSocket> => {
  const Client = await loadWebSocket()
  // The rest of the network knows http and https only.
  const server = new URL(url.href.replace(/^ws/, 'http'))
  try {
    const tunnel = await openTunnel(server, openMs, signal)
    const isTls = url.protocol === 'wss:'
    return new Client(url, {
      perMessageDeflate: false,
      followRedirects: false,
      handshakeTimeout: openMs,
      maxPayload: maxMessageBytes,
      ...(isTls
        ? { createConnection: () => startTls(server, tunnel) }
        : tunnel && { createConnection: () => tunnel }),
    })
  } catch (error) {
    throw toSocketFault(error)
  }
}

export const toSocketFault = (error: unknown): SourceFault => {
  const { message, hint } = describeUnreachable("slack's socket", error)
  return new SourceFault(message, { hint })
}
