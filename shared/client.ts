import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import type { DaemonFile, ProblemDocument } from './api.ts'
import { DoorwardError, type ErrorCode, systemCode } from './errors.ts'
import { type Home, readSecretFile } from './home.ts'
import { challengeHeader, isSameText, proofHeader, proofOf } from './identity.ts'

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

export type RequestOptions = {
  readonly headers?: Readonly<Record<string, string>>
  /** Default 30 s without a byte; long polls need more. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * Finds the running daemon of a home and makes sure that it is ours before the token is sent to it.
 * Throws `daemon-unreachable` (none runs) or `daemon-foreign` (something else answers there).
 */
export const connect = async (home: Home): Promise<Client> => {
  const daemon = await readDaemonFile(home)
  const apiToken = (await readSecretFile(home.apiToken))?.trim()
  if (!daemon || !apiToken)
    throw new DoorwardError('daemon-unreachable', `no daemon runs on ${home.root}`, {
      hint: 'doorward daemon start',
    })
  const agent = new Agent({ keepAlive: true })
  try {
    await checkIdentity(daemon.url, apiToken, agent)
  } catch (error) {
    agent.destroy()
    throw error
  }
  const send = async (method: string, path: string, body: unknown, options: RequestOptions = {}) =>
    sendRequest(new URL(path, daemon.url), method, body, agent, {
      ...options,
      headers: { authorization: `Bearer ${apiToken}`, ...options.headers },
    })
  return {
    daemon,
    get: async (path, options) => answerOf(await send('GET', path, undefined, options)),
    post: async (path, body, options) => answerOf(await send('POST', path, body, options)),
    delete: async (path, options) => answerOf(await send('DELETE', path, undefined, options)),
    open: async (path, options) => {
      const response = await send('GET', path, undefined, { timeoutMs: 0, ...options })
      if (response.statusCode !== 200) await answerOf(response)
      return response
    },
    close: () => agent.destroy(),
  }
}

/** `run/daemon.json`, or undefined when there is none or it cannot be read as one. */
export const readDaemonFile = async (home: Home): Promise<DaemonFile | undefined> => {
  try {
    const value: unknown = JSON.parse(await readFile(home.daemonJson, 'utf8'))
    return isDaemonFile(value) ? value : undefined
  } catch (error) {
    if (error instanceof SyntaxError || systemCode(error) === 'ENOENT') return undefined
    throw new DoorwardError(
      'home-unusable',
      `cannot read ${home.daemonJson} (${systemCode(error)})`,
      {
        cause: error,
      },
    )
  }
}

const isDaemonFile = (value: unknown): value is DaemonFile =>
  typeof value === 'object' &&
  value !== null &&
  'pid' in value &&
  Number.isSafeInteger(value.pid) &&
  'url' in value &&
  typeof value.url === 'string' &&
  /^http:\/\/(127(\.\d{1,3}){3}|\[::1\]|localhost):\d+$/.test(value.url)

/** Who answers at this address: our daemon, another doorward, another program, or nobody. */
export type Occupant = 'ours' | 'other-doorward' | 'stranger' | 'nobody'

/** Asks `/health` with a challenge, 3 s at most. Never sends the token itself. */
export const whoAnswers = async (
  url: string,
  apiToken: string | undefined,
  agent?: Agent,
): Promise<Occupant> => {
  const challenge = randomBytes(32).toString('hex')
  try {
    // Without an agent: a kept connection that the other side just closed would look like a stranger.
    const response = await sendRequest(new URL('/health', url), 'GET', undefined, agent ?? false, {
      headers: { [challengeHeader]: challenge },
      // Not a time without a byte: a stranger may send one now and then for ever.
      signal: AbortSignal.timeout(3000),
    })
    const text = await readText(response, 10_000)
    const proof = response.headers[proofHeader]
    if (apiToken && typeof proof === 'string' && isSameText(proof, proofOf(apiToken, challenge)))
      return 'ours'
    return isHealth(text) ? 'other-doorward' : 'stranger'
  } catch (error) {
    const refused = error instanceof DoorwardError && systemCode(error.cause) === 'ECONNREFUSED'
    return refused ? 'nobody' : 'stranger'
  }
}

const isHealth = (text: string): boolean => {
  try {
    return (JSON.parse(text) as { name?: unknown } | null)?.name === 'doorward'
  } catch {
    return false
  }
}

const checkIdentity = async (url: string, apiToken: string, agent: Agent): Promise<void> => {
  const occupant = await whoAnswers(url, apiToken, agent)
  if (occupant === 'ours') return
  if (occupant === 'nobody')
    throw new DoorwardError('daemon-unreachable', `the daemon at ${url} does not answer`, {
      hint: 'doorward daemon start',
    })
  const who = occupant === 'stranger' ? 'another program' : 'the daemon of another home'
  throw new DoorwardError(
    'daemon-foreign',
    `${who} answers at ${url}, not the daemon of this home`,
    {
      hint: 'stop it, or choose another port with server.port or DOORWARD_PORT',
    },
  )
}

const sendRequest = async (
  url: URL,
  method: string,
  body: unknown,
  agent: Agent | false,
  options: RequestOptions,
): Promise<IncomingMessage> => {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        method,
        agent,
        signal: options.signal,
        headers: {
          accept: 'application/json',
          ...(payload === undefined
            ? {}
            : {
                'content-type': 'application/json',
                'content-length': String(Buffer.byteLength(payload)),
              }),
          ...options.headers,
        },
      },
      resolve,
    )
    request.setTimeout(options.timeoutMs ?? 30_000, () =>
      request.destroy(new Error('no answer in time')),
    )
    request.on('error', (error) =>
      reject(
        options.signal?.aborted
          ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
          : new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} does not answer`, {
              cause: error,
              hint: 'doorward daemon status',
            }),
      ),
    )
    // An answer that is none of HTTP's usual ones (101, a tunnel) ends without any other event.
    request.on('close', () =>
      reject(new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} did not answer`)),
    )
    request.end(payload)
  })
}

const answerOf = async <Answer>(response: IncomingMessage): Promise<Answer> => {
  const text = await readText(response, 64 * 1024 * 1024)
  const status = response.statusCode ?? 0
  if (status < 200 || status >= 300) throw problemOf(status, text)
  if (text === '') return undefined as Answer
  try {
    return JSON.parse(text) as Answer
  } catch {
    throw new DoorwardError('internal', `the daemon answered ${status} with what is not JSON`)
  }
}

const problemOf = (status: number, text: string): DoorwardError => {
  try {
    const problem = JSON.parse(text) as ProblemDocument
    if (typeof problem.code !== 'string' || typeof problem.detail !== 'string') throw new Error()
    return new DoorwardError(problem.code as ErrorCode, problem.detail, { hint: problem.hint })
  } catch {
    return new DoorwardError('internal', `the daemon answered ${status} without saying why`)
  }
}

const readText = async (response: IncomingMessage, limitBytes: number): Promise<string> => {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      // Leaving the loop ends the connection too.
      if (size > limitBytes)
        throw new DoorwardError(
          'internal',
          `an answer of more than ${limitBytes} bytes was cut off`,
        )
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    const cancelled = error instanceof Error && error.name === 'AbortError'
    throw cancelled
      ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
      : new DoorwardError('daemon-unreachable', 'the daemon broke off its answer', {
          cause: error,
          hint: 'doorward daemon status',
        })
  }
  return Buffer.concat(chunks).toString('utf8')
}
