import { type RequestListener, createServer } from 'node:http'
import type { Gateway } from '../shared/config.ts'
import { closeServer, listen, portOf, urlOf } from './listen.ts'
import type { Log } from './log.ts'

/** Where the daemon is reached: the main port, and the one that serves webhooks alone if there is one. */
export type Listeners = {
  readonly url: () => string
  /** Of the port for webhooks. */
  readonly publicUrl: () => string | undefined
  readonly port: () => number
  /** Throws `port-in-use` or `config-invalid`, and may listen on one of them then. */
  readonly listen: (apps: Apps, apiToken: string, log: Log) => Promise<void>
  readonly close: () => Promise<void>
}

type Apps = { readonly app: RequestListener; readonly publicApp: RequestListener }

/** Neither listens yet. */
export const createListeners = ({
  host,
  port,
  public_port: publicPort,
}: Gateway['server']): Listeners => {
  const server = createServer(limits)
  const publicServer = publicPort === undefined ? undefined : createServer(limits)
  return {
    url: () => urlOf(host, server),
    publicUrl: () => publicServer && urlOf(host, publicServer),
    port: () => portOf(server),
    listen: async ({ app, publicApp }, apiToken, log) => {
      server.on('request', app)
      await listen(server, host, port, apiToken, log)
      if (!publicServer || publicPort === undefined) return
      publicServer.on('request', publicApp)
      await listen(publicServer, host, publicPort, apiToken, log)
    },
    close: async () => {
      await Promise.all((publicServer ? [server, publicServer] : [server]).map(closeServer))
    },
  }
}

const limits = {
  headersTimeout: 10_000,
  // The whole request; the body alone has 15 s (see receive.ts).
  requestTimeout: 30_000,
  connectionsCheckingInterval: 1000,
}
