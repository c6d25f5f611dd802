import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { systemCode } from '../../shared/errors.ts'
import { bareHost } from '../../shared/net.ts'
import { describeUnreachable, ProxyError } from '../../shared/network/faults.ts'
import { openRequest, openTunnel, startTls } from '../../shared/network/outgoing.ts'
import { getPort } from '../../shared/network/proxy.ts'
import { describeAbort, withTimeLimit } from '../util/concurrency.ts'
import { createByteCollector } from '../util/byte-budget.ts'
import { parseJson } from '../util/payload-path.ts'
import { retryAfterIn } from '../util/http-retry-after.ts'
import { DeliveryError } from './delivery-error.ts'
import type { Asking } from './sender.ts'

const connectMs = 10_000
const defaultMaxBytes = 1024 * 1024

type TargetRequest = {
  /** Its name in messages: the URL may hold a token. */
  readonly target: string
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Sent as a bearer token. */
  readonly token?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Sent as JSON. */
  readonly json?: object | undefined
  /** JSON that is sent as it is. */
  readonly body?: string
  /** A longer response is cut. */
  readonly maxResponseBytes?: number
  readonly attempt: Asking
}

export type TargetResponse = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The body as a JSON object or array; empty when it is not one or was cut. */
  readonly json: Readonly<Record<string, unknown>>
  readonly text: string
}

/**
 * One HTTP request to a target: no redirects, a new connection, 10 s to connect and the time of the attempt
 * for the whole. Throws `DeliveryError`: `retryable` without a connection, as nothing was sent;
 * `indeterminate` with a connection but no complete response.
 */
export const requestTarget = async (url: URL, request: TargetRequest): Promise<TargetResponse> => {
  const { json, body = json && JSON.stringify(json), token, attempt } = request
  const { signal, timeoutMs } = attempt
  const connection = { isConnected: false, timedOut: false }
  const control = new AbortController()
  const abort = () => control.abort()
  const limit = (ms: number) =>
    setTimeout(() => {
      connection.timedOut = true
      abort()
    }, ms)
  const connectTimer = limit(connectMs)
  const timer = limit(timeoutMs)
  signal.addEventListener('abort', abort, { once: true })
  try {
    signal.throwIfAborted()
    const response = await openRequest(url, {
      method: request.method ?? (body === undefined ? 'GET' : 'POST'),
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json; charset=utf-8' }),
        ...request.headers,
      },
      body,
      signal: control.signal,
      onConnected: () => {
        clearTimeout(connectTimer)
        connection.isConnected = true
      },
    })
    const { statusCode: status = 0 } = response
    const text = await readBody(response, request.maxResponseBytes ?? defaultMaxBytes, signal)
    return { status, headers: response.headers, json: parseJsonObject(text), text }
  } catch (error) {
    throw toConnectionError(request.target, error, connection, signal)
  } finally {
    clearTimeout(connectTimer)
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
  }
}

/** Connects to the server of a URL, by TLS for https, and sends nothing. Throws `DeliveryError`. */
export const connectTarget = async (
  url: URL,
  target: string,
  { signal, timeoutMs }: Asking,
): Promise<void> => {
  const isTls = url.protocol === 'https:'
  let socket: Socket | undefined
  try {
    await withTimeLimit(timeoutMs, signal, async (limited) => {
      const tunnel = await openTunnel(url, timeoutMs, signal)
      const plain = () => connect({ host: bareHost(url.hostname), port: Number(getPort(url)) })
      socket = isTls ? startTls(url, tunnel) : (tunnel ?? plain())
      if (isTls || socket.connecting)
        await once(socket, isTls ? 'secureConnect' : 'connect', { signal: limited })
    })
  } catch (error) {
    const timedOut = systemCode(error) === 'ABORT_ERR'
    throw toConnectionError(target, error, { isConnected: false, timedOut }, signal)
  } finally {
    // Nothing listens for its errors any more.
    socket?.on('error', () => undefined).destroy()
  }
}

type Connection = { isConnected: boolean; timedOut: boolean }

/** A body that is too long, or that the connection cuts off, is cut. */
const readBody = async (
  response: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> => {
  const collected = createByteCollector()
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      if (collected.size() + chunk.length > maxBytes) break
      collected.add(chunk)
    }
  } catch {
    if (signal.aborted) throw new Error('stopped')
  }
  return collected.bytes().toString('utf8')
}

const parseJsonObject = (text: string): Record<string, unknown> => {
  const value = parseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

const toConnectionError = (
  target: string,
  error: unknown,
  { isConnected, timedOut }: Connection,
  signal: AbortSignal,
): DeliveryError => {
  if (isConnected) {
    const code = systemCode(error) ?? ''
    const reason = signal.aborted
      ? `did not respond before ${describeAbort(signal)}`
      : timedOut
        ? 'did not respond in time'
        : `closed the connection${/^[A-Z0-9_]{1,50}$/.test(code) ? ` (${code})` : ''}`
    return new DeliveryError('indeterminate', `${target} ${reason}`)
  }
  if (signal.aborted || (timedOut && !(error instanceof ProxyError)))
    return new DeliveryError(
      'retryable',
      `${target} cannot be reached${timedOut ? ' in time' : ''}`,
      { hint: 'check the network' },
    )
  const { message, hint, isPermanent } = describeUnreachable(target, error)
  return new DeliveryError(isPermanent ? 'permanent' : 'retryable', message, { hint })
}

type StatusDetails = {
  /** What the server says, where it is safe to show. */
  readonly reason?: string | undefined
  readonly hint?: string | undefined
  readonly retryAfterMs?: number | undefined
}

/**
 * The error for a status, where the body has no better reason: 429 and 5xx are retryable, all others but 2xx
 * are permanent. A request answered 5xx may have arrived: a proxy answers so too when the server behind it
 * did the work and then died or was slow.
 */
export const toStatusError = (
  target: string,
  { status, headers }: TargetResponse,
  { reason, hint, retryAfterMs = retryAfterIn(headers['retry-after']) }: StatusDetails = {},
): DeliveryError | undefined => {
  if (status >= 200 && status < 300) return undefined
  if (status === 429)
    return new DeliveryError('retryable', `${target} rate limit reached (429)`, { retryAfterMs })
  if (status >= 500)
    return new DeliveryError('retryable', `${target} answered ${status}`, {
      retryAfterMs,
      mayHaveArrived: true,
    })
  const redirect = status >= 300 && status < 400 ? ' with a redirect, which is not followed' : ''
  const why = reason === undefined ? redirect : `: ${reason}`
  return new DeliveryError('permanent', `${target} answered ${status}${why}`, { hint })
}

/** Seconds in a JSON response, as milliseconds. */
export const secondsToMs = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value * 1000 : undefined
