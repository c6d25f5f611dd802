import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A connection to a port of this machine that can be cut without either side noticing. */
export type Link = {
  readonly port: number
  /** From now on nothing arrives, and nothing is closed or refused. */
  readonly cut: () => void
  /** What was sent meanwhile arrives. */
  readonly restore: () => void
  readonly close: () => void
}

/** A relay that stalls when told to, as a network does whose cable is pulled. */
export const startLink = async (target: number): Promise<Link> => {
  const sockets = new Set<Socket>()
  let isCut = false
  const server = createServer((near) => {
    const far = connect(target, '127.0.0.1')
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one)
      one.on('data', (chunk) => void other.write(chunk))
      one.on('error', () => undefined)
      one.once('close', () => {
        sockets.delete(one)
        other.destroy()
      })
      if (isCut) one.pause()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    cut: () => {
      isCut = true
      for (const socket of sockets) socket.pause()
    },
    restore: () => {
      isCut = false
      for (const socket of sockets) socket.resume()
    },
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
