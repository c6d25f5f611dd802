import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { DoorwardError, systemCode } from '../errors.ts'

/**
 * Connections over each of which the daemon has proved who it is before a request with the token goes
 * there. A proof holds for its connection alone: the daemon may end, and its port be another program's
 * by the time of the next one.
 */
type ProvenConnections = {
  /** Throws what `sendRequest` throws, and what `prove` throws for a connection that must be made. */
  readonly send: (
    url: URL,
    method: string,
    body: unknown,
    options: RequestOptions,
  ) => Promise<IncomingMessage>
  /** Ends them all. */
  readonly close: () => void
}

/** One connection at a time, made by its agent; `proven` is the one it had when it was last used. */
type Channel = { readonly agent: Agent; proven: Socket | undefined }

const maxTries = 3

/** Opens the first; throws what `prove` throws. */
export const openProvenConnections = async (
  prove: (agent: Agent) => Promise<Socket>,
): Promise<ProvenConnections> => {
  const channels = new Set<Channel>()
  const idle: Channel[] = []

  const take = async (): Promise<Channel> => {
    const channel = idle.pop() ?? {
      agent: new Agent({ keepAlive: true, maxSockets: 1 }),
      proven: undefined,
    }
    channels.add(channel)
    try {
      if (!channel.proven || channel.proven.destroyed) channel.proven = await prove(channel.agent)
      return channel
    } catch (error) {
      end(channel)
      throw error
    }
  }
  const end = (channel: Channel): void => {
    channels.delete(channel)
    channel.agent.destroy()
  }

  idle.push(await take())
  return {
    send: async (url, method, body, options) => {
      let hungUp = false
      for (let tries = 1; ; tries += 1) {
        const channel = await take()
        const { agent, proven } = channel
        try {
          const response = await sendRequest(url, method, body, { agent, over: proven }, options)
          response.once('close', () => {
            if (channels.has(channel)) idle.push(channel)
          })
          return response
        } catch (error) {
          end(channel)
          if (method === 'GET' && !hungUp && isHangUp(error)) {
            hungUp = true
            continue
          }
          if (!(error instanceof ConnectionGone)) throw error
          if (tries === maxTries)
            throw new DoorwardError(
              'daemon-unreachable',
              `the daemon at ${url.origin} ends each connection`,
              { cause: error, hint: 'doorward daemon status' },
            )
        }
      }
    },
    close: () => {
      for (const channel of channels) end(channel)
      idle.length = 0
    },
  }
}

/**
 * That the daemon closed the connection before a byte of an answer. It does so with one that has been idle
 * too long or was handed over, maybe just as a request leaves: what only reads may be asked again (RFC 9110,
 * section 9.2.2; RFC 9112, section 9.3.1).
 */
const isHangUp = (error: unknown): boolean =>
  error instanceof DoorwardError &&
  error.code === 'daemon-unreachable' &&
  ['ECONNRESET', 'EPIPE'].includes(systemCode(error.cause) ?? '')

export type RequestOptions = {
  readonly headers?: Readonly<Record<string, string>>
  /** Default 30 s without a byte; long polls need more. */
  readonly timeoutMs?: number
  /** To the end of the answer; default none. Whoever asked gets `ResponseTimeout` as the cause. */
  readonly wholeMs?: number
  readonly signal?: AbortSignal
}

/** Where a request goes: with `over`, on this very connection of the agent and on no other. */
type Connections = { readonly agent: Agent | false; readonly over?: Socket | undefined }

/** That an answer was not whole in its time. */
export class ResponseTimeout extends Error {}

/** That the connection a request was meant for has gone: nothing of the request was sent. */
class ConnectionGone extends Error {}

/**
 * Sends a request as JSON and gives the answer, still to be read. Throws `daemon-unreachable`,
 * `interrupted`, or `ConnectionGone`.
 */
export const sendRequest = async (
  url: URL,
  method: string,
  body: unknown,
  { agent, over }: Connections,
  options: RequestOptions = {},
): Promise<IncomingMessage> => {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    let answer: IncomingMessage | undefined
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
      (response) => {
        answer = response
        resolve(response)
      },
    )
    // Not `AbortSignal.timeout`: to make that takes a short command up to a millisecond.
    if (options.wholeMs !== undefined) {
      const late = () => (answer ?? request).destroy(new ResponseTimeout('no whole answer in time'))
      const timer = setTimeout(late, options.wholeMs)
      request.once('close', () => clearTimeout(timer))
    }
    request.setTimeout(options.timeoutMs ?? 30_000, () =>
      request.destroy(new Error('no answer in time')),
    )
    request.on('error', (error) =>
      reject(
        error instanceof ConnectionGone
          ? error
          : options.signal?.aborted
            ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
            : new DoorwardError(
                'daemon-unreachable',
                `the daemon at ${url.origin} does not answer`,
                {
                  cause: error,
                  hint: 'doorward daemon status',
                },
              ),
      ),
    )
    // An answer that is none of HTTP's usual ones (101, a tunnel) ends without any other event.
    request.on('close', () =>
      reject(new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} did not answer`)),
    )
    // Headers leave with the end: another connection is seen before anything is sent on it.
    if (over)
      request.once('socket', (socket) => {
        if (socket === over) request.end(payload)
        else request.destroy(new ConnectionGone())
      })
    else request.end(payload)
  })
}

/** The whole answer as text; more than the limit, in bytes, is cut off and `internal`. */
export const readText = async (response: IncomingMessage, limitBytes: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (error?: unknown): void => reject(toFailure(error))
    // Not `for await`: what that takes to begin is much of the time of a short command.
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size <= limitBytes) return
      response.destroy(
        new DoorwardError('internal', `an answer of more than ${limitBytes} bytes was cut off`),
      )
    })
    response.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('error', fail)
    response.once('close', fail)
    // It may have ended before anyone asked for its text.
    if (response.closed) fail(response.errored)
  })

const toFailure = (error: unknown): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const cancelled = error instanceof Error && error.name === 'AbortError'
  return cancelled
    ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
    : new DoorwardError('daemon-unreachable', 'the daemon broke off its answer', {
        cause: error,
        hint: 'doorward daemon status',
      })
}
