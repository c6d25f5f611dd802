import { Agent, type IncomingMessage, request as httpRequest } from 'node:http'
import type { Socket } from 'node:net'
import { DoorwardError, systemCode } from '../errors.ts'

/** One connection and its agent; `proven` is the socket on which the daemon has proved its identity. */
type Channel = { readonly agent: Agent; proven: Socket | undefined }

const maxTries = 3

/**
 * Keep-alive connections to the daemon. On each the daemon proves its identity before a request with the
 * token is sent. A proof is valid for its connection only: after a restart another program may have the
 * port.
 */
export class ProvenConnections {
  readonly #prove: (agent: Agent) => Promise<Socket>
  readonly #channels = new Set<Channel>()
  readonly #idle: Channel[] = []

  constructor(prove: (agent: Agent) => Promise<Socket>) {
    this.#prove = prove
  }

  /** Opens the first connection. Throws what `prove` throws. */
  async open(): Promise<void> {
    this.#idle.push(await this.#take())
  }

  /** Throws what `sendRequest` throws, and what `prove` throws for a new connection. */
  async send(
    url: URL,
    method: string,
    body: unknown,
    options: RequestOptions,
  ): Promise<IncomingMessage> {
    let hungUp = false
    for (let tries = 1; ; tries += 1) {
      const channel = await this.#take()
      const { agent, proven } = channel
      try {
        const response = await sendRequest(url, method, body, { agent, over: proven }, options)
        response.once('close', () => {
          if (this.#channels.has(channel)) this.#idle.push(channel)
        })
        return response
      } catch (error) {
        this.#destroy(channel)
        if (method === 'GET' && !hungUp && isHangUp(error)) {
          hungUp = true
          continue
        }
        if (!(error instanceof ConnectionLost)) throw error
        if (tries === maxTries)
          throw new DoorwardError(
            'daemon-unreachable',
            `the daemon at ${url.origin} closes each connection`,
            { cause: error, hint: 'doorward daemon status' },
          )
      }
    }
  }

  close(): void {
    for (const channel of this.#channels) this.#destroy(channel)
    this.#idle.length = 0
  }

  async #take(): Promise<Channel> {
    const channel = this.#idle.pop() ?? {
      agent: new Agent({ keepAlive: true, maxSockets: 1 }),
      proven: undefined,
    }
    this.#channels.add(channel)
    try {
      if (!channel.proven || channel.proven.destroyed)
        channel.proven = await this.#prove(channel.agent)
      return channel
    } catch (error) {
      this.#destroy(channel)
      throw error
    }
  }

  #destroy(channel: Channel): void {
    this.#channels.delete(channel)
    channel.agent.destroy()
  }
}

/**
 * True when the daemon closed the connection before the first byte of a response. It does so with idle
 * connections, maybe just as a request is sent: a safe method may be retried (RFC 9110 section 9.2.2,
 * RFC 9112 section 9.3.1).
 */
const isHangUp = (error: unknown): boolean =>
  error instanceof DoorwardError &&
  error.code === 'daemon-unreachable' &&
  ['ECONNRESET', 'EPIPE'].includes(systemCode(error.cause) ?? '')

export type RequestOptions = {
  readonly headers?: Readonly<Record<string, string>>
  /** Time without a byte; default 30 s, long polls need more. */
  readonly timeoutMs?: number
  /** Time for the whole response; default none. The cause of the error is then a `ResponseTimeout`. */
  readonly totalMs?: number
  readonly signal?: AbortSignal
}

/** The request is sent on the connection `over` of the agent, and on no other. */
type Connections = { readonly agent: Agent | false; readonly over?: Socket | undefined }

/** The response was not complete in time. */
export class ResponseTimeout extends Error {}

/** The connection for a request was closed: nothing of the request was sent. */
class ConnectionLost extends Error {}

/**
 * Sends a request as JSON; the caller reads the response. Throws `daemon-unreachable`, `interrupted`, or
 * `ConnectionLost`.
 */
export const sendRequest = async (
  url: URL,
  method: string,
  body: unknown,
  { agent, over }: Connections,
  { headers, timeoutMs = 30_000, totalMs, signal }: RequestOptions = {},
): Promise<IncomingMessage> => {
  const payload = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    let received: IncomingMessage | undefined
    const request = httpRequest(
      url,
      {
        method,
        agent,
        signal,
        headers: {
          accept: 'application/json',
          ...(payload === undefined
            ? {}
            : {
                'content-type': 'application/json',
                'content-length': String(Buffer.byteLength(payload)),
              }),
          ...headers,
        },
      },
      (response) => {
        received = response
        resolve(response)
      },
    )
    // Not `AbortSignal.timeout`, which costs a short command up to a millisecond.
    if (totalMs !== undefined) {
      const timer = setTimeout(
        () => (received ?? request).destroy(new ResponseTimeout('no complete response in time')),
        totalMs,
      )
      request.once('close', () => clearTimeout(timer))
    }
    request.setTimeout(timeoutMs, () => request.destroy(new Error('no response in time')))
    request.on('error', (error) => reject(toRequestError(error, url, signal)))
    // A 101 or a tunnel fires no other event.
    request.on('close', () =>
      reject(new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} did not answer`)),
    )
    // Node sends the headers with the end: nothing is sent on another connection.
    if (over)
      request.once('socket', (socket) => {
        if (socket === over) request.end(payload)
        else request.destroy(new ConnectionLost())
      })
    else request.end(payload)
  })
}

const toRequestError = (error: Error, url: URL, signal: AbortSignal | undefined): Error => {
  if (error instanceof ConnectionLost) return error
  return signal?.aborted
    ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
    : new DoorwardError('daemon-unreachable', `the daemon at ${url.origin} does not answer`, {
        cause: error,
        hint: 'doorward daemon status',
      })
}

/** The whole response as text. Throws `internal` for more than the limit in bytes. */
export const readText = async (response: IncomingMessage, limitBytes: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let size = 0
    const fail = (error?: unknown): void => reject(toReadError(error))
    // Not `for await`, whose setup takes much of the time of a short command.
    response.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      size += chunk.length
      if (size <= limitBytes) return
      response.destroy(
        new DoorwardError('internal', `a response of more than ${limitBytes} bytes was cut off`),
      )
    })
    response.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('error', fail)
    response.once('close', fail)
    // It may have been closed before this call.
    if (response.closed) fail(response.errored)
  })

const toReadError = (error: unknown): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const cancelled = error instanceof Error && error.name === 'AbortError'
  return cancelled
    ? new DoorwardError('interrupted', 'the request was cancelled', { cause: error })
    : new DoorwardError('daemon-unreachable', 'the daemon broke off its response', {
        cause: error,
        hint: 'doorward daemon status',
      })
}
