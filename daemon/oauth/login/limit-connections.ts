import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Keeps a server to so many open connections. One too many ends the oldest of which no whole request has
 * come, and is refused itself only where all the others are being answered: whoever connects and says
 * nothing, as another user of the machine may, keeps nobody out.
 */
export const limitConnections = (server: Server, limit: number): void => {
  const open = new Set<Socket>()
  /** In the order in which they came. */
  const silent = new Set<Socket>()
  const forget = (socket: Socket): void => {
    open.delete(socket)
    silent.delete(socket)
  }

  server.on('connection', (socket: Socket) => {
    open.add(socket)
    silent.add(socket)
    socket.once('close', () => forget(socket))
    const [oldest] = silent
    if (open.size <= limit || !oldest) return
    forget(oldest)
    oldest.destroy()
  })
  server.on('request', ({ socket }) => void silent.delete(socket))
}
