import { randomBytes } from 'node:crypto'
import type { Agent, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { DaemonFile, ProblemDocument } from '../api.ts'
import { DoorwardError, type ErrorCode, systemCode } from '../errors.ts'
import { type Home, readSecretFile } from '../home/home.ts'
import { isAlive } from '../home/lock.ts'
import { type ForeignDaemon, readDaemonFile } from './discovery.ts'
import { challengeHeader, isProof, toEndpoint, proofHeader } from './identity.ts'
import {
  openProvenConnections,
  readText,
  type RequestOptions,
  sendRequest,
  ResponseTimeout,
} from './transport.ts'

/** The daemon's local API, as tray and command line use it. `node:http`: a first `fetch` costs 90 ms. */
export type Client = {
  readonly daemon: DaemonFile
  readonly get: <Answer>(path: string, options?: RequestOptions) => Promise<Answer>
  readonly post: <Answer>(path: string, body?: unknown, options?: RequestOptions) => Promise<Answer>
  readonly delete: <Answer>(path: string, options?: RequestOptions) => Promise<Answer>
  /** Opens a stream (`/events/stream`); the caller reads it and ends it by the signal. */
  readonly open: (path: string, options?: RequestOptions) => Promise<IncomingMessage>
  /** Lets go of the kept connections, so that the process can end. */
  readonly close: () => void
}

type ConnectOptions = {
  /** Who asks, for the daemon's record of what it gave out: see `userAgentOf`. */
  readonly userAgent?: string
  /** How long the daemon may take to prove itself; default 3 s. */
  readonly limitMs?: number
  readonly signal?: AbortSignal
}

/**
 * Finds the running daemon of a home and makes sure that it is ours before the token is sent to it.
 * Throws `daemon-unreachable` (none runs), `daemon-silent` (it does not answer), `daemon-foreign`
 * (something else answers there), `unauthorized` (it was started with another token), or what keeps
 * the files in `run/` from being read.
 */
export const connect = async (home: Home, options: ConnectOptions = {}): Promise<Client> => {
  const { userAgent } = options
  const daemon = await readDaemonFile(home)
  const apiToken = (await readSecretFile(home.apiToken))?.trim()
  if (daemon && !apiToken && isAlive(daemon.pid))
    throw new DoorwardError(
      'home-unusable',
      `run/api.token is missing, so nobody can ask the daemon (pid ${daemon.pid})`,
      { hint: `kill ${daemon.pid}, then doorward daemon start: that makes a new one` },
    )
  if (!daemon || !apiToken)
    throw new DoorwardError('daemon-unreachable', `no daemon runs on ${home.root}`, {
      hint: 'doorward daemon start',
    })
  const connections = await openProvenConnections((agent) =>
    prove(daemon, apiToken, { ...options, agent }),
  )
  const send = async (method: string, path: string, body: unknown, options: RequestOptions = {}) =>
    connections.send(new URL(path, daemon.url), method, body, {
      ...options,
      headers: {
        authorization: `Bearer ${apiToken}`,
        ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
        ...options.headers,
      },
    })
  return {
    daemon,
    get: async (path, options) => readAnswer(await send('GET', path, undefined, options)),
    post: async (path, body, options) => readAnswer(await send('POST', path, body, options)),
    delete: async (path, options) => readAnswer(await send('DELETE', path, undefined, options)),
    open: async (path, options) => {
      const response = await send('GET', path, undefined, { timeoutMs: 0, ...options })
      if (response.statusCode !== 200) await readAnswer(response)
      return response
    },
    close: () => connections.close(),
  }
}

/** Who answers at this address: our daemon, another doorward, another program, one that says nothing, or nobody. */
export type AddressOwner = 'ours' | 'nobody' | ForeignDaemon

/** Asks `/health` with a challenge, 3 s at most. Never sends the token itself. */
export const identifyListener = async (
  url: string,
  apiToken: string | undefined,
): Promise<AddressOwner> => {
  // Without an agent: a kept connection that the other side just closed would look like a stranger.
  const { occupant } = await challenge(url, apiToken, { agent: false })
  return occupant
}

/** The answer with the connection it came over. */
const challenge = async (
  url: string,
  apiToken: string | undefined,
  { agent, limitMs = 3000, signal }: ConnectOptions & { readonly agent: Agent | false },
): Promise<{
  readonly occupant: AddressOwner
  readonly connection?: Socket
  readonly hungUp?: boolean
}> => {
  const question = randomBytes(32).toString('hex')
  try {
    const response = await sendRequest(
      new URL('/health', url),
      'GET',
      undefined,
      { agent },
      {
        headers: { [challengeHeader]: question },
        ...(signal === undefined ? {} : { signal }),
        // Not a time without a byte: a stranger may send one now and then for ever.
        timeoutMs: 0,
        wholeMs: limitMs,
      },
    )
    const connection = response.socket
    const place = toEndpoint(connection.remoteAddress, connection.remotePort)
    const text = await readText(response, 10_000)
    const proof = response.headers[proofHeader]
    if (apiToken && typeof proof === 'string' && isProof(proof, apiToken, question, place))
      return { occupant: 'ours', connection }
    return { occupant: isHealth(text) ? 'other-doorward' : 'stranger' }
  } catch (error) {
    if (signal?.aborted) throw error
    const cause = error instanceof DoorwardError ? error.cause : undefined
    if (cause instanceof ResponseTimeout) return { occupant: 'silent', hungUp: false }
    const code = systemCode(cause)
    if (code === 'ECONNREFUSED') return { occupant: 'nobody' }
    const hungUp = code === 'ECONNRESET' || code === 'EPIPE'
    return { occupant: 'stranger', hungUp }
  }
}

const isHealth = (text: string): boolean => {
  try {
    return (JSON.parse(text) as { name?: unknown } | null)?.name === 'doorward'
  } catch {
    return false
  }
}

const hangUps = 5
const afterHangUpMs = 100

/** A connection of this agent over which the daemon has proved that it is ours. */
const prove = async (
  daemon: DaemonFile,
  apiToken: string,
  options: ConnectOptions & { readonly agent: Agent },
): Promise<Socket> => {
  let { occupant, connection, hungUp } = await challenge(daemon.url, apiToken, options)
  // A daemon that ends hangs up on whoever comes then; a moment later nobody is there, or its successor.
  for (let tries = 0; hungUp && tries < hangUps; tries++) {
    await new Promise((resolve) => setTimeout(resolve, afterHangUpMs))
    ;({ occupant, connection, hungUp } = await challenge(daemon.url, apiToken, options))
  }
  if (connection) return connection
  if (occupant === 'nobody' || occupant === 'ours')
    throw new DoorwardError('daemon-unreachable', `the daemon at ${daemon.url} does not answer`, {
      hint: 'doorward daemon start',
    })
  // Loaded only now: nearly always it is not wanted, and every command would wait for it.
  const { foreignDaemonError } = await import('./discovery.ts')
  throw await foreignDaemonError(daemon, hungUp ? 'hung-up' : occupant)
}

const readAnswer = async <Answer>(response: IncomingMessage): Promise<Answer> => {
  const text = await readText(response, 64 * 1024 * 1024)
  return parseResponse(response.statusCode ?? 0, text) as Answer
}

/** What an answer of the daemon's local API says; undefined for one without a body. Throws the problem that it is. */
export const parseResponse = (status: number, text: string): unknown => {
  if (status < 200 || status >= 300) throw toError(status, text)
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new DoorwardError('internal', `the daemon answered ${status} with what is not JSON`)
  }
}

const toError = (status: number, text: string): DoorwardError => {
  try {
    const problem = JSON.parse(text) as ProblemDocument
    if (typeof problem.code !== 'string' || typeof problem.detail !== 'string') throw new Error()
    return new DoorwardError(problem.code as ErrorCode, problem.detail, { hint: problem.hint })
  } catch {
    return new DoorwardError('internal', `the daemon answered ${status} without saying why`)
  }
}
