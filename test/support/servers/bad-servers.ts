import { once } from 'node:events'
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net'

/** What a server can do to who asks it. */
export const misdeeds = [
  'hangs',
  'never-reads',
  'trickles-head',
  'trickles-body',
  'continues-for-ever',
  'garbage',
  'redirects',
  'ten-megabytes',
  'closes-early',
  'closes-in-body',
  'resets',
] as const
export type Misdeed = (typeof misdeeds)[number]

/** One server for each misdeed; once mended, all give the same good answer. */
export type BadServers = {
  readonly originOf: (misdeed: Misdeed) => string
  readonly portOf: (misdeed: Misdeed) => number
  /** How many connections each has had. */
  readonly connections: (misdeed: Misdeed) => number
  /** Requests that followed a redirect. */
  readonly followed: () => number
  readonly mend: (answer: string) => void
  readonly spoil: () => void
  readonly close: () => void
}

/** Starts them on loopback; a trickle is a byte in so many milliseconds. */
export const startBadServers = async (byteMs: number): Promise<BadServers> => {
  const sockets = new Set<Socket>()
  const servers = new Map<Misdeed, Server>()
  const counts = new Map<Misdeed, number>()
  let good: string | undefined
  let followed = 0
  const listen = async (serve: (socket: Socket) => void): Promise<Server> => {
    const server = createServer((socket) => {
      sockets.add(socket)
      socket.once('close', () => sockets.delete(socket))
      socket.on('error', () => undefined)
      serve(socket)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return server
  }
  const trap = await listen((socket) => {
    followed += 1
    socket.destroy()
  })
  for (const misdeed of misdeeds)
    servers.set(
      misdeed,
      await listen((socket) => {
        counts.set(misdeed, (counts.get(misdeed) ?? 0) + 1)
        if (good !== undefined) answerWell(socket, good)
        else misbehave(misdeed, socket, byteMs, `http://127.0.0.1:${portIn(trap)}/`)
      }),
    )
  const portOf = (misdeed: Misdeed) => portIn(servers.get(misdeed))
  return {
    portOf,
    originOf: (misdeed) => `http://127.0.0.1:${portOf(misdeed)}`,
    connections: (misdeed) => counts.get(misdeed) ?? 0,
    followed: () => followed,
    mend: (answer) => {
      good = answer
    },
    spoil: () => {
      good = undefined
    },
    close: () => {
      for (const server of [trap, ...servers.values()]) server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

const portIn = (server: Server | undefined): number =>
  (server?.address() as AddressInfo | null)?.port ?? 0

const head = (more: string, status = '200 OK'): string =>
  `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\n${more}\r\n`

const answerWell = (socket: Socket, body: string): void => {
  socket.once('data', () =>
    socket.end(`${head(`Content-Length: ${body.length}\r\nConnection: close\r\n`)}${body}`),
  )
}

const misbehave = (misdeed: Misdeed, socket: Socket, byteMs: number, elsewhere: string): void => {
  const trickle = (text: string) => {
    let at = 0
    const timer = setInterval(() => {
      socket.write(text[at % text.length] ?? ' ')
      at += 1
    }, byteMs)
    socket.once('close', () => clearInterval(timer))
  }
  if (misdeed === 'never-reads') return void socket.pause()
  let isAsked = false
  const asked = () => {
    if (isAsked) return
    isAsked = true
    clearTimeout(speaksFirst)
    socket.resume()
    switch (misdeed) {
      case 'hangs':
        return
      case 'trickles-head':
        socket.write('HTTP/1.1 200 OK\r\n')
        return trickle('X-Y: z\r\n')
      case 'trickles-body':
        socket.write(head('Content-Length: 100000\r\n'))
        return trickle(' ')
      case 'continues-for-ever':
        return trickle('HTTP/1.1 103 Early Hints\r\n\r\n')
      case 'garbage':
        socket.end(Buffer.from([0, 255, 13, 10, 7, 27, 91, 50, 74]))
        return
      case 'redirects':
        socket.end(
          head(`Location: ${elsewhere}\r\nContent-Length: 0\r\n`, '307 Temporary Redirect'),
        )
        return
      case 'ten-megabytes':
        socket.end(`${head('Content-Length: 10485760\r\n')}${' '.repeat(10_485_760)}`)
        return
      case 'closes-early':
        socket.end()
        return
      case 'closes-in-body':
        socket.end(`${head('Content-Length: 1000\r\n')}{"access_token":`)
        return
      case 'resets':
        socket.resetAndDestroy()
        return
    }
  }
  // To who waits for a greeting, as a mail server has to give one.
  const speaksFirst = setTimeout(asked, 100)
  socket.once('data', asked)
  socket.once('close', () => clearTimeout(speaksFirst))
}
