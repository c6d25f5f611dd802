import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Check } from './check.ts'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { systemCode } from '../../../shared/errors.ts'
import { bareHost, isCertificateError, isNotTls } from '../../../shared/net.ts'
import { version } from '../../../shared/version.ts'

export type Answer =
  | {
      readonly is: 'answered'
      readonly status: number
      readonly headers: IncomingMessage['headers']
      readonly text: string
      /** How far our clock is ahead of the server's, unless that is this machine. */
      readonly skewMs?: number
    }
  /** Why there was no answer, without the URL. */
  | { readonly is: 'failed'; readonly why: string }

/** The check of a service that was asked, with its time if it sent one. */
export type Reachable = { readonly check: Check; readonly skewMs?: number }

type AskOptions = {
  readonly method?: 'GET' | 'HEAD' | 'POST'
  readonly headers?: Readonly<Record<string, string>>
  readonly limitMs?: number
}

const usualLimitMs = 6000
const mostBytes = 256 * 1024

/** Sends one HTTP request on a new connection; follows no redirect and uses no proxy. */
export const ask = async (url: URL, options: AskOptions = {}): Promise<Answer> => {
  const { method = 'GET', headers, limitMs = usualLimitMs } = options
  const signal = AbortSignal.timeout(limitMs)
  try {
    const response = await open(url, method, headers, signal)
    const text = await readText(response)
    const skewMs = isLoopbackUrl(url.href) ? undefined : getClockSkew(response.headers.date)
    const { statusCode: status = 0, headers: answered } = response
    return {
      is: 'answered',
      status,
      headers: answered,
      text,
      ...(skewMs === undefined ? {} : { skewMs }),
    }
  } catch (error) {
    return {
      is: 'failed',
      why: signal.aborted ? 'it did not answer in time' : describeReason(error),
    }
  }
}

const open = async (
  url: URL,
  method: string,
  headers: AskOptions['headers'],
  signal: AbortSignal,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const request = send(url, {
      method,
      signal,
      agent: false,
      headers: {
        'user-agent': `doorward-cli/${version} (doctor)`,
        accept: 'application/json',
        ...(method === 'POST' && { 'content-length': '0' }),
        ...headers,
      },
    })
    request.once('response', resolve)
    request.once('error', reject)
    request.once('close', () => reject(new Error('no answer')))
    request.end()
  })

const readText = async (response: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    chunks.push(chunk)
    if (size > mostBytes) break
  }
  return Buffer.concat(chunks).toString('utf8')
}

/** Half a second off, as the header has whole seconds. */
const getClockSkew = (date: string | undefined): number | undefined => {
  const at = Date.parse(date ?? '')
  return Number.isNaN(at) ? undefined : Date.now() - at - 500
}

const reasons: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'its name cannot be resolved now',
  ECONNREFUSED: 'nothing listens there',
  ECONNRESET: 'it closed the connection',
  ENETUNREACH: 'there is no network',
  EHOSTUNREACH: 'no route to it',
  ETIMEDOUT: 'it did not answer in time',
}

/** Why a connection failed, with no more of the error than its code. */
export const describeReason = (error: unknown): string => describeCode(systemCode(error) ?? '')

export const describeCode = (code: string): string => {
  if (isCertificateError(code)) return `its certificate cannot be trusted (${code})`
  if (isNotTls(code)) return `it does not speak TLS (${code})`
  const shown = /^[A-Z0-9_]{1,50}$/.test(code) ? ` (${code})` : ''
  return reasons[code] ?? `it cannot be reached${shown}`
}

/** The JSON object of an answer; empty for any other. */
export const parseJsonAnswer = (asked: Answer): Readonly<Record<string, unknown>> => {
  if (asked.is !== 'answered') return {}
  try {
    const value: unknown = JSON.parse(asked.text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const limitMs = 6000

/** Connects to the server of a URL, by TLS for https, and sends nothing. Returns why it failed, or undefined. */
export const reachServer = async ({ protocol, hostname, port }: URL): Promise<string | undefined> =>
  new Promise((resolve) => {
    const isTls = protocol === 'https:'
    const host = bareHost(hostname)
    const where = { host, port: port === '' ? (isTls ? 443 : 80) : Number(port) }
    // TLS takes names only, no addresses (RFC 6066 section 3).
    const isAddress = /^[\d.]+$/.test(host) || host.includes(':')
    const socket = isTls
      ? connectTls({ ...where, ...(isAddress ? {} : { servername: host }) })
      : connectPlain(where)
    const settle = (why: string | undefined) => {
      socket.destroy()
      resolve(why)
    }
    socket.setTimeout(limitMs, () => settle('it did not answer in time'))
    socket.once(isTls ? 'secureConnect' : 'connect', () => settle(undefined))
    socket.once('error', (error) => settle(describeReason(error)))
  })
