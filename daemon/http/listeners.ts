import { type RequestListener, type Server, createServer } from 'node:http'
import { type AddressInfo, Server as NetServer } from 'node:net'
import type { Gateway } from '../../shared/config/schema.ts'
import { answerUnreadable, refusesMalformed } from './answer-unreadable.ts'
import { ownConnectionLimit } from './connection-limit.ts'
import { addressOf, closeServer, listen, takeSocket, urlOf } from './listen.ts'
import { letInFirst } from './let-in-first.ts'
import type { Log } from '../log/log.ts'

/** Where the daemon is reached: the main port, and the one that serves webhooks alone if there is one. */
export type Listeners = {
  readonly url: () => string
  /** Of the port for webhooks. */
  readonly publicUrl: () => string | undefined
  readonly port: () => number
  /** The addresses it is configured for. */
  readonly places: readonly Place[]
  /**
   * Listens where it does not yet. Throws `port-in-use` or `config-invalid`, and may listen on some of
   * them then.
   */
  readonly bind: (places: readonly Place[], apiToken: string, log: Log) => Promise<void>
  /** Goes on with a socket that listens at a place already. */
  readonly take: (place: Place, socket: NetServer, log: Log) => void
  /** Requests wait until they are answered by these. */
  readonly answer: (apps: Apps) => void
  /** The sockets that listen, for another process. */
  readonly sockets: () => ReadonlyMap<Place, Server>
  /**
   * Lets go of the sockets, which another process has by now. Connections that are there are served on,
   * each for one more answer. Resolves when all have ended, at the latest after so many milliseconds.
   */
  readonly leave: (limitMs: number) => Promise<void>
  /** Ends the connections that are left then, those under way after half a second. */
  readonly cut: () => void
  readonly close: () => Promise<void>
}

/** `host port`, as configured; where any port will do, with what it is for. */
export type Place = string

/** What answers at each of the two. */
export type Apps = { readonly app: RequestListener; readonly publicApp: RequestListener }

type Listener = {
  readonly place: Place
  readonly host: string
  readonly port: number
  readonly server: Server
}

/** None listens yet. */
export const createListeners = ({
  host,
  port,
  public_port: publicPort,
}: Gateway['server']): Listeners => {
  const addresses = new Map<keyof Apps, AddressInfo>()
  const urlAt = (app: keyof Apps): string => urlOf(addresses.get(app) ?? { address: host, port: 0 })
  const taking: Promise<void>[] = []
  let isLeaving = false
  let handlers: Apps | undefined
  let begin = (): void => undefined
  const begun = new Promise<void>((resolve) => (begin = resolve))

  const listenerOn = (onPort: number, app: keyof Apps): Listener => {
    const server = createServer(limits)
    answerUnreadable(server)
    // It is asked for after the socket has been let go too.
    server.on('listening', () => {
      const address = addressOf(server)
      if (address) addresses.set(app, address)
    })
    letInFirst(server, (request, response) => {
      if (refusesMalformed(request, response)) return
      // Who comes again is to come to the other process.
      if (isLeaving) response.setHeader('connection', 'close')
      if (handlers) handlers[app](request, response)
      else void begun.then(() => handlers?.[app](request, response))
    })
    const place = onPort === 0 ? `${host} 0 ${app}` : `${host} ${onPort}`
    return { place, host, port: onPort, server }
  }
  const main = listenerOn(port, 'app')
  const forWebhooks = publicPort === undefined ? undefined : listenerOn(publicPort, 'publicApp')
  const all = forWebhooks ? [main, forWebhooks] : [main]
  const connections = ownConnectionLimit()
  // Whoever comes to the one cannot use up the connections of the other.
  if (connections !== undefined)
    for (const { server } of all) server.maxConnections = Math.floor(connections / all.length)
  const at = (wanted: Place): Listener => {
    const found = all.find(({ place }) => place === wanted)
    if (!found) throw new Error(`nothing is to listen at ${wanted}`)
    return found
  }

  return {
    url: () => urlAt('app'),
    publicUrl: () => forWebhooks && urlAt('publicApp'),
    port: () => addresses.get('app')?.port ?? 0,
    places: all.map(({ place }) => place),
    bind: async (places, apiToken, log) => {
      await Promise.all(taking)
      for (const place of places) {
        const { server, host, port } = at(place)
        if (server.listening) continue
        await listen(server, host, port, apiToken, log)
      }
    },
    take: (place, socket, log) => void taking.push(takeSocket(at(place).server, socket, log)),
    answer: (apps) => {
      handlers = apps
      begin()
    },
    sockets: () => new Map(all.map(({ place, server }) => [place, server])),
    leave: async (limitMs) => {
      isLeaving = true
      const ended = all.map(
        ({ server }) =>
          new Promise<void>((resolve) => {
            // Not that of HTTP, which ends connections on which a request may just be coming.
            NetServer.prototype.close.call(server, () => resolve())
          }),
      )
      const timer = setTimeout(() => {
        for (const { server } of all) server.closeAllConnections()
      }, limitMs)
      await Promise.all(ended)
      clearTimeout(timer)
    },
    cut: () => {
      for (const { server } of all) server.closeIdleConnections()
      setTimeout(() => {
        for (const { server } of all) server.closeAllConnections()
      }, 500).unref()
    },
    close: async () => {
      await Promise.all(all.map(({ server }) => closeServer(server)))
    },
  }
}

const limits = {
  headersTimeout: 10_000,
  // The whole request; the body alone has 15 s (see receive.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
  // Answered by `refusesMalformed`.
  requireHostHeader: false,
}
