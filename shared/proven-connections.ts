import { Agent, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { DoorwardError, systemCode } from './errors.ts'
import { ConnectionGone, type RequestOptions, sendRequest } from './send-request.ts'

/**
 * Connections over each of which the daemon has proved who it is before a request with the token goes
 * there. A proof holds for its connection alone: the daemon may end, and its port be another program's
 * by the time of the next one.
 */
export type ProvenConnections = {
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
export const openConnections = async (
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
