import type { IncomingMessage } from 'node:http'
import { allowInsecureRequests, customFetch } from 'oauth4webapi'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { isCertificateError } from '../../../shared/net.ts'
import { describeCertificate, ProxyError } from '../../../shared/network/faults.ts'
import { openRequest } from '../../../shared/network/outgoing.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import { createByteCollector } from '../../util/byte-budget.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'

const timeoutMs = 30_000
const maxAnswerBytes = 1024 * 1024
const maxAddressLength = 2048

/**
 * The options of every request to a provider: https, or http on loopback; no redirects; 30 s; an answer of
 * at most 1 MiB. A provider that cannot be reached or answers 5xx or 429 is `provider-unavailable`.
 */
export const requestOptions = (endpoint: string, signal: AbortSignal, limitMs = timeoutMs) => ({
  [allowInsecureRequests]: isLoopbackUrl(endpoint),
  [customFetch]: async (url: string, init: RequestInit): Promise<Response> =>
    withTimeLimit(limitMs, signal, (limited) =>
      fetchFromProvider(url, { ...init, signal: limited }, limited),
    ),
})

/**
 * True for an address that may be asked, opened or shown: https, or http on loopback if `source`, which named
 * it, is on loopback too; not one that seems to lead elsewhere (`https://github.com@evil.example`), nor a
 * longer one than browsers and servers accept.
 */
export const isSafeAddress = (address: string, source: string): boolean => {
  if (address.length > maxAddressLength || !URL.canParse(address)) return false
  const { protocol, username, password } = new URL(address)
  if (username !== '' || password !== '') return false
  const isLocal = protocol === 'http:' && isLoopbackUrl(address) && isLoopbackUrl(source)
  return protocol === 'https:' || isLocal
}

/** Fetch over our own client, for its proxy and certificates. */
const fetchFromProvider = async (
  url: string,
  init: RequestInit,
  signal: AbortSignal,
): Promise<Response> => {
  const { host } = new URL(url)
  let isConnected = false
  let response: IncomingMessage
  let body: Buffer
  try {
    const request = new Request(url, init)
    response = await openRequest(new URL(url), {
      method: request.method,
      // A compressed answer could not be read.
      headers: { ...Object.fromEntries(request.headers), 'accept-encoding': 'identity' },
      body: init.body ? new Uint8Array(await request.arrayBuffer()) : undefined,
      signal,
      onConnected: () => (isConnected = true),
    })
    body = await readCapped(response)
    // Our own abort looks like the end of a body that ends with its connection.
    signal.throwIfAborted()
  } catch (error) {
    throw toUnavailable(host, error, signal, isConnected)
  }
  const { statusCode: status = 0 } = response
  if (status >= 500 || status === 429)
    throw new DoorwardError('provider-unavailable', `${host} answered ${status}`, {
      hint: 'try again later',
      retryAfterMs: retryAfterIn(response.headers['retry-after']),
    })
  const empty = [204, 205, 304].includes(status)
  return new Response(empty ? null : new Uint8Array(body), {
    // A Response cannot have another.
    status: status < 200 ? 502 : status,
    headers: listHeaders(response),
  })
}

const listHeaders = ({ rawHeaders }: IncomingMessage): [string, string][] =>
  rawHeaders.flatMap((name, index) =>
    index % 2 === 0 ? [[name, rawHeaders[index + 1] ?? '']] : [],
  )

/** The request did not reach the server. Only a code: an error of Node may hold what was received. */
class NeverArrived extends Error {}

/** True for an error of a request that certainly did not reach the provider. */
export const neverArrived = (error: unknown): boolean =>
  error instanceof DoorwardError && error.cause instanceof NeverArrived

const readCapped = async (response: IncomingMessage): Promise<Buffer> => {
  const collected = createByteCollector()
  for await (const chunk of response as AsyncIterable<Buffer>) {
    if (collected.size() + chunk.length > maxAnswerBytes) throw new RangeError('too large')
    collected.add(chunk)
  }
  return collected.bytes()
}

const toUnavailable = (
  host: string,
  error: unknown,
  signal: AbortSignal,
  isConnected: boolean,
): DoorwardError => {
  const [message, hint = 'check the network, then try again'] = describeFailure(host, error, signal)
  return new DoorwardError('provider-unavailable', message, {
    hint,
    cause: isConnected ? undefined : new NeverArrived(),
  })
}

const describeFailure = (
  host: string,
  error: unknown,
  { aborted, reason }: AbortSignal,
): readonly [message: string, hint?: string] => {
  if (error instanceof RangeError) return [`${host} sent an answer of more than 1 MiB`]
  const isLate = reason instanceof DOMException && reason.name === 'TimeoutError'
  if (aborted && !isLate) return [`${host} did not answer before the request was cancelled`]
  if (error instanceof ProxyError)
    return [`${host} cannot be reached: ${error.message}`, error.hint]
  if (isLate) return [`${host} did not answer in time`]
  const code = systemCode(error)
  if (code !== undefined && isCertificateError(code)) {
    const { what, hint } = describeCertificate(code)
    return [`the certificate of ${host} ${what}`, hint]
  }
  return [`${host} cannot be reached${code === undefined ? '' : ` (${code})`}`]
}

type ProviderRequest = {
  /** Default GET. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  readonly limitMs?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly form?: Readonly<Record<string, string>>
  readonly json?: unknown
}

/** The body is empty where the answer is not a JSON object. */
export type ProviderReply = {
  readonly status: number
  readonly headers: Headers
  readonly body: Readonly<Record<string, unknown>>
}

/**
 * Sends a request to an API of a provider, with `requestOptions`. Throws `provider-unavailable`, or
 * `provider-misconfigured` for an address that is neither https nor loopback.
 */
export const askProvider = async (
  url: string,
  { method = 'GET', limitMs, headers, form, json }: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderReply> => {
  const options = requestOptions(url, signal, limitMs)
  if (new URL(url).protocol !== 'https:' && !options[allowInsecureRequests])
    throw new DoorwardError(
      'provider-misconfigured',
      `${new URL(url).host} needs https: tokens are not sent in clear text`,
    )
  const response = await options[customFetch](url, {
    method,
    headers: {
      accept: 'application/json',
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    body: form ? new URLSearchParams(form) : json === undefined ? null : JSON.stringify(json),
  })
  return {
    status: response.status,
    headers: response.headers,
    body: jsonObjectIn(await response.text()) ?? {},
  }
}

/**
 * The error of a refusal; `word` is the provider's error code, if it is safe to show. The provider's
 * explanation is shown without these secrets.
 */
export const refusedBy = (
  url: string,
  { status, body }: ProviderReply,
  word?: string,
  secrets: readonly string[] = [],
): DoorwardError => {
  const explanation = toExplanation(body['error_description'], secrets)
  const detail = explanation === undefined ? '' : `: ${explanation}`
  return new DoorwardError(
    'provider-refused',
    `${new URL(url).host} answered ${word ?? status}${detail}`,
  )
}

/** The JSON object in an answer, or undefined when it is not one. */
export const jsonObjectIn = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : undefined
  } catch {
    return undefined
  }
}

/** Characters that hide or reorder others. */
const hiddenCharacters = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/**
 * A name from a provider as one readable line: without characters that hide or reorder others, at most 200.
 * Undefined for a value that is not text.
 */
export const toText = (value: unknown): string | undefined => {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return undefined
  const text = value
    .replaceAll(hiddenCharacters, '')
    .trim()
    .slice(0, 200)
    // Half a surrogate pair, sent by the provider or left by the cut.
    .replaceAll(/\p{Cs}/gu, '')
  return text === '' ? undefined : text
}

/**
 * The `error_description` of a provider as one line of at most 200 characters. Left out are these secrets,
 * if the provider repeats them, and everything that may be a token. Undefined where nothing is left.
 */
export const toExplanation = (
  text: unknown,
  secrets: readonly (string | undefined)[] = [],
): string | undefined => {
  if (typeof text !== 'string') return undefined
  // First, since a token with hidden characters in it would not be recognized.
  let shown = text.replaceAll(/\s+/g, ' ').replaceAll(hiddenCharacters, '')
  for (const secret of secrets)
    if (secret !== undefined && secret.length > 3) shown = shown.replaceAll(secret, '…')
  shown = shown.replaceAll(/[\w~+=-]{12,}/g, (run) => (mayBeToken(run) ? '…' : run))
  return toText(shown)?.trimEnd().replace(/\.$/, '')
}

/** Long words have no digit, and no capital in them; a token that has neither is rare. */
const mayBeToken = (run: string): boolean => /\d|[a-z][A-Z]/.test(run) || run.length > 40

/** An error code that is safe to show: lower-case words as in RFC 6749 section 5.2, never a token. */
export const safeErrorCode = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[a-z]+(_[a-z]+)*$/.test(text) && text.length <= 48
    ? text
    : undefined
