import { type IncomingMessage, request as httpRequest, type RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { systemCode } from '../../shared/errors.ts'
import { isCertificateError, isNotTls } from '../../shared/net.ts'
import { version } from '../../shared/version.ts'
import { createByteCollector } from '../util/byte-budget.ts'
import { retryAfterIn } from '../util/http-retry-after.ts'
import { DeliveryError } from './delivery-error.ts'
import type { Attempt } from './sender.ts'

const connectMs = 10_000
const usualAnswerBytes = 1024 * 1024

type TargetRequest = {
  /** What the target is called in messages: its URL may hold a token. */
  readonly target: string
  readonly method?: 'GET' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** Of the answer; what is longer is cut off. */
  readonly maxAnswerBytes?: number
  readonly attempt: Pick<Attempt, 'signal' | 'timeoutMs'>
}

export type TargetAnswer = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** The body as a JSON object, or an empty one where it is none, or was cut off. */
  readonly json: Readonly<Record<string, unknown>>
}

/**
 * One HTTP request to a target: no redirects, no proxy of the environment, a connection of its own, 10 s to
 * connect and so long as the try has for the whole. Throws `DeliveryFailed`: `later` when no connection stood, so that
 * nothing can have been sent, `unknown` when one stood and no whole answer came.
 */
export const requestTarget = async (url: URL, asked: TargetRequest): Promise<TargetAnswer> => {
  const {
    target,
    maxAnswerBytes = usualAnswerBytes,
    attempt: { signal },
  } = asked
  const progress = { isConnected: false, timedOut: false }
  try {
    const response = await open(url, asked, progress)
    const { statusCode: status = 0, headers } = response
    return { status, headers, json: jsonIn(await readBody(response, maxAnswerBytes, signal)) }
  } catch (error) {
    throw toFailure(target, error, progress, signal)
  }
}

type Progress = { isConnected: boolean; timedOut: boolean }

const open = async (
  url: URL,
  { method = 'POST', headers, body, attempt: { signal, timeoutMs } }: TargetRequest,
  progress: Progress,
): Promise<IncomingMessage> => {
  const isTls = url.protocol === 'https:'
  const options: RequestOptions = {
    method,
    signal,
    // None that is kept open: on one that has just died it is not known what arrived.
    agent: false,
    headers: {
      'user-agent': `doorward/${version}`,
      accept: 'application/json',
      ...headers,
      ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
    },
  }
  return new Promise((resolve, reject) => {
    const request = (isTls ? httpsRequest : httpRequest)(url, options)
    const give = (ms: number) =>
      setTimeout(() => {
        progress.timedOut = true
        request.destroy(new Error('no answer in time'))
      }, ms)
    const connecting = give(connectMs)
    const answering = give(timeoutMs)
    request.once('socket', (socket) =>
      socket.once(isTls ? 'secureConnect' : 'connect', () => {
        clearTimeout(connecting)
        progress.isConnected = true
      }),
    )
    request.once('close', () => {
      clearTimeout(connecting)
      clearTimeout(answering)
      // An answer that is none of HTTP's usual ones ends without any other event.
      reject(new Error('no answer'))
    })
    request.once('error', reject)
    request.once('response', resolve)
    request.end(body)
  })
}

/** As much of the body as comes: what is too long, or breaks off, is cut. */
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

const jsonIn = (text: string): Record<string, unknown> => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const toFailure = (
  target: string,
  error: unknown,
  { isConnected, timedOut }: Progress,
  signal: AbortSignal,
): DeliveryError => {
  const code = systemCode(error) ?? ''
  const shown = /^[A-Z0-9_]{1,50}$/.test(code) && !signal.aborted ? ` (${code})` : ''
  if (isConnected) {
    const how = signal.aborted
      ? 'was not waited for, as the daemon stops'
      : timedOut
        ? 'did not answer in time'
        : `broke off the connection${shown}`
    return new DeliveryError('unknown', `${target} ${how}`)
  }
  if (isCertificateError(code))
    return new DeliveryError('refused', `the certificate of ${target} cannot be trusted${shown}`)
  if (isNotTls(code))
    return new DeliveryError('refused', `${target} does not speak TLS${shown}`, {
      hint: 'check its address: https:// is for a port that does',
    })
  return new DeliveryError('later', `${target} cannot be reached${timedOut ? ' in time' : shown}`, {
    hint: code === 'ECONNREFUSED' ? 'nothing listens at its address' : 'check the network',
  })
}

/** What else is known of an answer: what helps, and when the target wants to be asked again. */
type Said = { readonly hint?: string | undefined; readonly retryAfterMs?: number | undefined }

/**
 * What the status of an answer says, where the target's own words say no more: 429 and 5xx are worth
 * another try, everything else but 2xx is not. What was answered 5xx may have arrived: a proxy says so
 * too when what stands behind it has done the work and died, or was too slow to tell.
 */
export const failureOfAnswer = (
  target: string,
  { status, headers }: TargetAnswer,
  { hint, retryAfterMs = retryAfterIn(headers['retry-after']) }: Said = {},
): DeliveryError | undefined => {
  if (status >= 200 && status < 300) return undefined
  if (status === 429)
    return new DeliveryError('later', `${target} takes no more for now (429)`, { retryAfterMs })
  if (status >= 500)
    return new DeliveryError('later', `${target} answered ${status}`, {
      retryAfterMs,
      mayHaveArrived: true,
    })
  const what = status >= 300 && status < 400 ? ' with a redirect, which is not followed' : ''
  return new DeliveryError('refused', `${target} answered ${status}${what}`, { hint })
}

/** Seconds in a JSON answer, as milliseconds. */
export const secondsIn = (value: unknown): number | undefined =>
  typeof value === 'number' && value >= 0 && Number.isFinite(value) ? value * 1000 : undefined
