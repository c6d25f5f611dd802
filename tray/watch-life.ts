import { type Socket, connect as netConnect } from 'node:net'
import { bareHost } from '../shared/net.ts'

/*
 * A daemon that hangs keeps all its connections open, and the heartbeat of its stream comes every 15 s
 * only. So it is asked for a sign of life all the time: by hand over one connection of its own, as
 * `node:http` costs four times as much. Neither the token nor anything else goes there, and of the answer
 * counts only that it comes.
 */

export type Life = {
  /** Something came from the daemon. */
  readonly sign: () => void
  readonly end: () => void
}

export type LifeWatcher = {
  /** Nothing came for about 1.8 s, though it was asked. */
  readonly onSilent: () => void
  /** After that, something came again. */
  readonly onSign: () => void
}

/** Between two questions, and the time for an answer: so silence is told within twice as long. */
const askEveryMs = 900
/** A turn that comes this much too late says that we, or the whole machine, were held up. */
const lifeLateMs = 200
const maxAnswerBytes = 64 * 1024

/** Watches over the life of the daemon at an address until it is ended. */
export const watchLife = (url: string, watcher: LifeWatcher): Life => {
  const { hostname, port, host } = new URL(url)
  const question = `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  let socket: Socket | undefined
  let answered = 0
  let lastTurn = performance.now()
  let isWaiting = false
  let isSilent = false

  const ask = (): void => {
    answered = 0
    socket ??= open()
    socket.write(question)
  }
  const open = (): Socket => {
    const opened = netConnect({ host: bareHost(hostname), port: Number(port) })
    opened.setNoDelay(true)
    opened.on('data', (chunk: Buffer) => {
      sign()
      answered += chunk.length
      if (answered > maxAnswerBytes) opened.destroy()
    })
    opened.on('error', () => undefined)
    opened.once('close', () => {
      if (socket === opened) socket = undefined
    })
    return opened
  }
  const turn = (): void => {
    const now = performance.now()
    const wasHeldUp = now - lastTurn > askEveryMs + lifeLateMs
    lastTurn = now
    if (!isWaiting) {
      isWaiting = true
      return ask()
    }
    // The connection has ended without an answer: at its end of life, or refused.
    if (!socket) return ask()
    // What came while we were held up has not been read yet.
    if (isSilent || wasHeldUp) return
    isSilent = true
    watcher.onSilent()
  }
  const sign = (): void => {
    isWaiting = false
    if (!isSilent) return
    isSilent = false
    watcher.onSign()
  }
  const timer = setInterval(turn, askEveryMs)

  return {
    sign,
    end: () => {
      clearInterval(timer)
      socket?.destroy()
      socket = undefined
    },
  }
}
