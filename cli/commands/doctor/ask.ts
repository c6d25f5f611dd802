import type { IncomingMessage } from 'node:http'
import { connect as connectPlain, type Socket } from 'node:net'
import type { Check } from './check.ts'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { systemCode } from '../../../shared/errors.ts'
import { bareHost, isCertificateError, isNotTls } from '../../../shared/net.ts'
import { describeCertificate, ProxyError } from '../../../shared/network/faults.ts'
import { openRequest, openTunnel, startTls } from '../../../shared/network/outgoing.ts'
import { getPort } from '../../../shared/network/proxy.ts'
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

/** Sends one HTTP request on a new connection, as the daemon does; follows no redirect. */
export const ask = async (url: URL, options: AskOptions = {}): Promise<Answer> => {
  const { method = 'GET', headers, limitMs = usualLimitMs } = options
  const signal = AbortSignal.timeout(limitMs)
  try {
    const response = await openRequest(url, {
      method,
      signal,
      headers: {
        'user-agent': `doorward-cli/${version} (doctor)`,
        ...(method === 'POST' && { 'content-length': '0' }),
        ...headers,
      },
    })
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

/** Why a connection failed, with no more of the error than its code; of a proxy also the way out. */
export const describeReason = (error: unknown): string =>
  error instanceof ProxyError
    ? `${error.message}; ${error.hint}`
    : describeCode(systemCode(error) ?? '')

export const describeCode = (code: string): string => {
  if (isCertificateError(code)) {
    const { what, hint } = describeCertificate(code)
    return `its certificate ${what}; ${hint}`
  }
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
export const reachServer = async (url: URL): Promise<string | undefined> => {
  try {
    const tunnel = await openTunnel(url, limitMs)
    if (url.protocol === 'https:') return await settled(startTls(url, tunnel), true)
    const { hostname } = url
    const plain = () => connectPlain({ host: bareHost(hostname), port: Number(getPort(url)) })
    return await settled(tunnel ?? plain(), false)
  } catch (error) {
    return describeReason(error)
  }
}

/** Waits until a socket is connected, and closes it. */
const settled = async (socket: Socket, isTls: boolean): Promise<string | undefined> =>
  new Promise((resolve) => {
    const settle = (why: string | undefined) => {
      socket.destroy()
      resolve(why)
    }
    if (!isTls && !socket.connecting) settle(undefined)
    socket.setTimeout(limitMs, () => settle('it did not answer in time'))
    socket.once(isTls ? 'secureConnect' : 'connect', () => settle(undefined))
    socket.once('error', (error) => settle(describeReason(error)))
  })
