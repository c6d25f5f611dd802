import { allowInsecureRequests, customFetch } from 'oauth4webapi'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { DoorwardError, systemCode } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import { createByteCollector } from '../../util/byte-budget.ts'
import { retryAfterIn } from '../../util/http-retry-after.ts'

const timeoutMs = 30_000
const maxAnswerBytes = 1024 * 1024

/**
 * The options of every request to a provider: https, or http on loopback; no redirects; 30 s; an answer of
 * at most 1 MiB. A provider that cannot be reached or answers 5xx or 429 is `provider-unavailable`.
 */
export const requestOptions = (endpoint: string, signal: AbortSignal, limitMs = timeoutMs) => ({
  [allowInsecureRequests]: isLoopbackUrl(endpoint),
  [customFetch]: async (url: string, init: RequestInit): Promise<Response> =>
    withTimeLimit(limitMs, signal, (limited) =>
      fetchFromProvider(url, { ...init, signal: limited }),
    ),
})

const fetchFromProvider = async (url: string, init: RequestInit): Promise<Response> => {
  const { host } = new URL(url)
  let status: number
  let headers: Headers
  let body: Buffer
  try {
    const response = await fetch(url, { ...init, redirect: 'manual' })
    ;({ status, headers } = response)
    body = await readCapped(response)
  } catch (error) {
    throw new DoorwardError('provider-unavailable', `${host} ${describeFailure(error)}`, {
      hint: 'check the network, then try again',
      // A system error: an address and a code, nothing of what was sent.
      cause: error instanceof Error ? error.cause : undefined,
    })
  }
  if (status >= 500 || status === 429)
    throw new DoorwardError('provider-unavailable', `${host} answered ${status}`, {
      hint: 'try again later',
      retryAfterMs: retryAfterIn(headers.get('retry-after')),
    })
  const empty = [101, 204, 205, 304].includes(status)
  // Status 0 is how fetch shows some refused redirects; a Response cannot be made with it.
  return new Response(empty ? null : new Uint8Array(body), { status: status || 502, headers })
}

/** Failures before a connection was made: nothing can have been sent. */
const beforeConnected = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'UND_ERR_CONNECT_TIMEOUT',
])

/** True for an error of a request that certainly did not reach the provider. */
export const neverArrived = (error: unknown): boolean =>
  error instanceof DoorwardError && beforeConnected.has(systemCode(error.cause) ?? '')

const readCapped = async (response: Response): Promise<Buffer> => {
  const collected = createByteCollector()
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    if (collected.size() + chunk.length > maxAnswerBytes) throw new RangeError('too large')
    collected.add(chunk)
  }
  return collected.bytes()
}

const describeFailure = (error: unknown): string => {
  if (error instanceof RangeError) return 'sent an answer of more than 1 MiB'
  if (error instanceof DOMException && error.name === 'TimeoutError')
    return 'did not answer in time'
  if (error instanceof DOMException && error.name === 'AbortError')
    return 'did not answer before the request was cancelled'
  const cause: unknown = error instanceof Error ? error.cause : undefined
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined
  return code === undefined ? 'cannot be reached' : `cannot be reached (${code})`
}

type ProviderRequest = {
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'DELETE'
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
  { method = 'GET', headers, form, json }: ProviderRequest,
  signal: AbortSignal,
): Promise<ProviderReply> => {
  const options = requestOptions(url, signal)
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

/** The error of a refusal; `word` is the provider's error code, if it is safe to show. */
export const refusedBy = (url: string, { status }: ProviderReply, word?: string): DoorwardError =>
  new DoorwardError('provider-refused', `${new URL(url).host} answered ${word ?? status}`)

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

/**
 * A name from a provider as one readable line: without characters that hide or reorder others, at most 200.
 * Undefined for a value that is not text.
 */
export const toText = (value: unknown): string | undefined => {
  if (typeof value === 'number') return String(value)
  if (typeof value !== 'string') return undefined
  const text = value
    .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, 200)
    // Half a surrogate pair, sent by the provider or left by the cut.
    .replaceAll(/\p{Cs}/gu, '')
  return text === '' ? undefined : text
}

/** An error code that is safe to show: lower-case words as in RFC 6749 section 5.2, never a token. */
export const safeErrorCode = (text: unknown): string | undefined =>
  typeof text === 'string' && /^[a-z]+(_[a-z]+)*$/.test(text) && text.length <= 48
    ? text
    : undefined
