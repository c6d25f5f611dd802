import { randomBytes } from 'node:crypto'
import { type Socket, connect } from 'node:net'
import type { Delivery } from './delivery.ts'

/** An answer to one post; status 0 is a connection that was refused or cut. */
export type Answer = { readonly status: number; readonly ms: number }

export type Sender = {
  /** Posts the delivery under a new id, over a connection that is free or a new one. */
  readonly post: () => Promise<Answer>
  readonly close: () => void
}

/** Speaks HTTP/1.1 by itself: a client library costs more than some of the servers it measures. */
export const createSender = (url: string, { body, headers }: Delivery): Sender => {
  const { hostname, port, pathname } = new URL(url)
  const run = randomBytes(4).toString('hex')
  const fixed = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `POST ${pathname} HTTP/1.1\r\nHost: ${hostname}:${port}\r\n${fixed.join('')}Content-Length: ${body.length}\r\n`
  const free: Connection[] = []
  const all = new Set<Connection>()
  let count = 0

  return {
    post: async () => {
      const start = performance.now()
      const connection = free.pop() ?? open(hostname, Number(port))
      all.add(connection)
      count += 1
      const id = `${run}-0000-4000-8000-${String(count).padStart(12, '0')}`
      const status = await connection.ask(`${head}X-GitHub-Delivery: ${id}\r\n\r\n`, body)
      if (status === 0) all.delete(connection)
      else free.push(connection)
      return { status, ms: performance.now() - start }
    },
    close: () => {
      for (const { socket } of all) socket.destroy()
    },
  }
}

type Connection = {
  readonly socket: Socket
  readonly ask: (head: string, body: Buffer) => Promise<number>
}

const open = (host: string, port: number): Connection => {
  const socket = connect({ host, port, noDelay: true })
  let answered: (status: number) => void = () => undefined
  let text = ''
  socket.setEncoding('latin1')
  socket.on('data', (chunk: string) => {
    text += chunk
    const end = text.indexOf('\r\n\r\n')
    if (end === -1) return
    const length = Number(/^content-length: *(\d+)/im.exec(text.slice(0, end))?.[1] ?? 0)
    if (text.length < end + 4 + length) return
    const status = Number(text.slice(9, 12))
    text = ''
    answered(status)
  })
  socket.on('error', () => undefined)
  socket.on('close', () => answered(0))
  return {
    socket,
    ask: async (head, body) => {
      const answer = new Promise<number>((resolve) => {
        answered = resolve
      })
      socket.cork()
      socket.write(head)
      socket.write(body)
      socket.uncork()
      return answer
    },
  }
}
