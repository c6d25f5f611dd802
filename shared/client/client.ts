import { randomBytes } from 'node:crypto'
import type { Agent, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { DaemonFile, ProblemDocument } from '../api/api.ts'
import { DoorwardError, type ErrorCode, systemCode } from '../errors.ts'
import { type Home, readSecretFile } from '../home/home.ts'
import { isAlive, readLockOwner } from '../home/lock.ts'
import {
  type ForeignDaemon,
  findListeningProcess,
  foreignDaemonError,
  readDaemonFile,
} from './discovery.ts'
import { challengeHeader, isProof, toEndpoint, proofHeader } from './identity.ts'
import {
  ProvenConnections,
  readText,
  type RequestOptions,
  sendRequest,
  ResponseTimeout,
} from './transport.ts'

/** The daemon's local API for tray and command line. Uses `node:http`: a first `fetch` costs 90 ms. */
export type Client = {
  readonly daemon: DaemonFile
  readonly get: <Answer>(path: string, options?: RequestOptions) => Promise<Answer>
  readonly post: <Answer>(path: string, body?: unknown, options?: RequestOptions) => Promise<Answer>
  readonly delete: <Answer>(path: string, options?: RequestOptions) => Promise<Answer>
  /** Opens a stream (`/events/stream`); the caller reads it and aborts it with the signal. */
  readonly open: (path: string, options?: RequestOptions) => Promise<IncomingMessage>
  /** Closes the idle connections, so that the process can exit. */
  readonly close: () => void
}

type ConnectOptions = {
  /** Names the caller in the daemon's log of issued tokens: see `getUserAgent`. */
  readonly userAgent?: string
  /** How long the daemon may take to prove its identity; default 3 s. */
  readonly limitMs?: number
  readonly signal?: AbortSignal
}

/**
 * Finds the running daemon of a home and verifies its identity before the token is sent to it. Throws
 * `daemon-unreachable` (not running), `daemon-silent` (it does not answer), `daemon-foreign` (another
 * program answers), `unauthorized` (it was started with another token), or why the files in `run/` cannot
 * be read.
 */
export const connect = async (home: Home, options: ConnectOptions = {}): Promise<Client> => {
  const { userAgent } = options
  const daemon = await readDaemonFile(home)
  const apiToken = (await readSecretFile(home.apiToken))?.trim()
  if (daemon && !apiToken && (await isDaemonOf(home, daemon)))
    throw new DoorwardError(
      'home-unusable',
      `run/api.token is missing, so no client can reach the daemon (pid ${daemon.pid})`,
      { hint: `kill ${daemon.pid}, then doorward daemon start: that creates a new one` },
    )
  if (!daemon || !apiToken)
    throw new DoorwardError('daemon-unreachable', `no daemon runs on ${home.root}`, {
      hint: 'doorward daemon start',
    })
  const connections = new ProvenConnections((agent) =>
    prove(daemon, apiToken, { ...options, agent }),
  )
  await connections.open()
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

/**
 * True if the process of `run/daemon.json` is the daemon. After a crash or a restart of the machine its pid
 * may belong to any program.
 */
const isDaemonOf = async (home: Home, { pid, url }: DaemonFile): Promise<boolean> => {
  if (!isAlive(pid)) return false
  const owner = await findListeningProcess(Number(new URL(url).port))
  if (owner ? owner.pid !== pid : (await readLockOwner(home, 'daemon')) !== pid) return false
  const listener = await identifyListener(url, undefined)
  return listener === 'other-doorward' || listener === 'silent'
}

/** The kinds of listener at an address: our daemon, nothing, or something else. */
export type Listener = 'ours' | 'nobody' | ForeignDaemon

/** Asks `/health` with a challenge; takes at most 3 s. Never sends the token itself. */
export const identifyListener = async (
  url: string,
  apiToken: string | undefined,
): Promise<Listener> => {
  // Without an agent: a pooled connection that the daemon just closed would look like a stranger.
  const { listener } = await challenge(url, apiToken, { agent: false })
  return listener
}

/** The listener, and the connection on which it proved its identity. */
const challenge = async (
  url: string,
  apiToken: string | undefined,
  { agent, limitMs = 3000, signal }: ConnectOptions & { readonly agent: Agent | false },
): Promise<{
  readonly listener: Listener
  readonly connection?: Socket
  readonly hungUp?: boolean
}> => {
  const nonce = randomBytes(32).toString('hex')
  try {
    const response = await sendRequest(
      new URL('/health', url),
      'GET',
      undefined,
      { agent },
      {
        headers: { [challengeHeader]: nonce },
        ...(signal === undefined ? {} : { signal }),
        // A limit for the whole response: a stranger could send a byte now and then forever.
        timeoutMs: 0,
        totalMs: limitMs,
      },
    )
    const connection = response.socket
    const endpoint = toEndpoint(connection.remoteAddress, connection.remotePort)
    const text = await readText(response, 10_000)
    const proof = response.headers[proofHeader]
    if (apiToken && typeof proof === 'string' && isProof(proof, apiToken, nonce, endpoint))
      return { listener: 'ours', connection }
    return { listener: isHealth(text) ? 'other-doorward' : 'stranger' }
  } catch (error) {
    if (signal?.aborted) throw error
    const cause = error instanceof DoorwardError ? error.cause : undefined
    if (cause instanceof ResponseTimeout) return { listener: 'silent', hungUp: false }
    const code = systemCode(cause)
    if (code === 'ECONNREFUSED') return { listener: 'nobody' }
    const hungUp = code === 'ECONNRESET' || code === 'EPIPE'
    return { listener: 'stranger', hungUp }
  }
}

const isHealth = (text: string): boolean => {
  try {
    return (JSON.parse(text) as { name?: unknown } | null)?.name === 'doorward'
  } catch {
    return false
  }
}

const maxHangUps = 5
const hangUpDelayMs = 100

/** A connection of this agent on which the daemon has proved that it is ours. */
const prove = async (
  daemon: DaemonFile,
  apiToken: string,
  options: ConnectOptions & { readonly agent: Agent },
): Promise<Socket> => {
  let { listener, connection, hungUp } = await challenge(daemon.url, apiToken, options)
  // A daemon that shuts down hangs up; a moment later its successor listens, or nothing does.
  for (let tries = 0; hungUp && tries < maxHangUps; tries++) {
    await new Promise((resolve) => setTimeout(resolve, hangUpDelayMs))
    ;({ listener, connection, hungUp } = await challenge(daemon.url, apiToken, options))
  }
  if (connection) return connection
  if (listener === 'nobody' || listener === 'ours')
    throw new DoorwardError('daemon-unreachable', `the daemon at ${daemon.url} does not answer`, {
      hint: 'doorward daemon start',
    })
  throw await foreignDaemonError(daemon, hungUp ? 'hung-up' : listener)
}

const readAnswer = async <Answer>(response: IncomingMessage): Promise<Answer> => {
  const text = await readText(response, 64 * 1024 * 1024)
  return parseResponse(response.statusCode ?? 0, text) as Answer
}

/** The JSON of a response of the local API; undefined without a body. Throws the problem of an error response. */
export const parseResponse = (status: number, text: string): unknown => {
  if (status < 200 || status >= 300) throw toError(status, text)
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new DoorwardError(
      'internal',
      `the daemon answered ${status} with a body that is not JSON`,
    )
  }
}

const toError = (status: number, text: string): DoorwardError => {
  try {
    const problem = JSON.parse(text) as ProblemDocument
    if (typeof problem.code !== 'string' || typeof problem.detail !== 'string') throw new Error()
    return new DoorwardError(problem.code as ErrorCode, problem.detail, {
      hint: problem.hint,
      about: problem.about,
    })
  } catch {
    return new DoorwardError('internal', `the daemon answered ${status} without a reason`)
  }
}
