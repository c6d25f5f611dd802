import { type Server, type Socket, createServer } from 'node:net'
import { setInterval } from 'node:timers'
import { proofHeader } from '../../../shared/client/identity.ts'

/** What every doorward says to `/health`. */
export const health = JSON.stringify({ status: 'ok', name: 'doorward', version: '0' })

/** Answers whatever comes with this status line, these header lines and this body, and ends. */
export const answersWith =
  (status: string, headers: string, body: string) =>
  (socket: Socket): void =>
    void socket.end(`HTTP/1.1 ${status}\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`)

/** Programs that may have the daemon's port, by what they do with a connection that says something. */
export const strangers: Readonly<Record<string, (socket: Socket) => void>> = {
  'hangs up': (socket) => socket.destroy(),
  'answers garbage': (socket) => socket.end('+OK hello\r\n'),
  'speaks first, and something else': (socket) => void socket.write('SSH-2.0-x\r\n'),
  'ends its lines otherwise': (socket) =>
    void socket.write('HTTP/1.1 200 OK\ncontent-length: 2\n\n{}'),
  'answers nothing': () => undefined,
  'answers a byte now and then': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n')
    const timer = setInterval(() => socket.write(' '), 200)
    socket.once('close', () => clearInterval(timer))
  },
  'answers a page': answersWith('200 OK', 'content-type: text/html\r\n', '<h1>name: doorward</h1>'),
  'answers JSON': answersWith('200 OK', '', '{"name":"another"}'),
  'answers null': answersWith('200 OK', '', 'null'),
  'answers 401': answersWith('401 Unauthorized', 'www-authenticate: Bearer\r\n', ''),
  'answers 101': (socket) =>
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
  'answers 100 for ever': (socket) => {
    const timer = setInterval(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 200)
    socket.once('close', () => clearInterval(timer))
  },
  redirects: answersWith('302 Found', 'location: http://127.0.0.1:1/health\r\n', ''),
  'answers a proof that is none': answersWith(
    '200 OK',
    `${proofHeader}: ${'0'.repeat(64)}\r\n`,
    'x',
  ),
  'answers without end': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
    const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    }
    socket.on('drain', more)
    more()
  },
  'has a head without end': (socket) => {
    socket.write('HTTP/1.1 200 OK\r\n')
    const more = () => {
      while (!socket.destroyed && socket.write(`a: ${'x'.repeat(8192)}\r\n`));
    }
    socket.on('drain', more)
    more()
  },
  'breaks off': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nxx'),
}

/** Those of them that never come to an end. */
export const silent: ReadonlySet<string> = new Set([
  'answers nothing',
  'answers a byte now and then',
  'answers 100 for ever',
])

/** Makes servers that do such a thing; `heard` is all that is said to one. */
export const standsIn =
  (listening: (server: Server) => Promise<string>) => async (answer: (socket: Socket) => void) => {
    const heard: string[] = []
    const server = createServer((socket) => {
      socket.once('data', (chunk: Buffer) => {
        heard.push(chunk.toString('latin1'))
        answer(socket)
        socket.on('data', (more: Buffer) => heard.push(more.toString('latin1')))
      })
    })
    return { url: await listening(server), heard }
  }
