import { type Socket, connect } from 'node:net'

/*
 * A daemon that hangs keeps all its connections open, and its heartbeat comes every 15 s only. So when
 * nothing has come for a while it is asked for a sign of life. By hand over one connection of its own,
 * as `node:http` costs four times as much and this is asked all day; neither the token nor anything
 * else goes there, and of the answer counts only that it comes.
 */

export type Life = {
  /** Something came from the daemon. */
  readonly sign: () => void
  readonly end: () => void
}

export type LifeWatcher = {
  /** Nothing came for 1.7 to 1.9 s, though it was asked. */
  readonly onSilent: () => void
  /** After that, something came again. */
  readonly onSign: () => void
}

const askAfterMs = 750
const answerLimitMs = 950
const lookAgainMs = 200
/** A look that comes this much too late says that we, or the whole machine, were held up. */
const lateMs = 200
const maxAnswerBytes = 64 * 1024

/** Watches over the life of the daemon at an address until it is ended. */
export const watchLife = (url: string, watcher: LifeWatcher): Life => {
  const { hostname, port, host } = new URL(url)
  const question = `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  let socket: Socket | undefined
  let answered = 0
  let lastSign = performance.now()
  let askedAt: number | undefined
  let isSilent = false
  let timer: NodeJS.Timeout | undefined
  let dueAt = 0

  const wait = (ms: number): void => {
    clearTimeout(timer)
    dueAt = performance.now() + ms
    timer = setTimeout(look, ms)
  }
  const ask = (): void => {
    answered = 0
    socket ??= open()
    socket.write(question)
  }
  const open = (): Socket => {
    const opened = connect({ host: hostname.replace(/^\[|\]$/g, ''), port: Number(port) })
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
  const look = (): void => {
    const now = performance.now()
    if (askedAt === undefined) {
      const quietMs = now - lastSign
      if (quietMs < askAfterMs) return wait(askAfterMs - quietMs)
      askedAt = now
      ask()
      return wait(lookAgainMs)
    }
    // While we were held up, what came could not be read.
    const lateBy = now - dueAt
    if (lateBy > lateMs) askedAt = Math.min(now, askedAt + lateBy)
    if (!isSilent && now - askedAt >= answerLimitMs) {
      isSilent = true
      watcher.onSilent()
    }
    // The connection has ended without an answer: at its end of life, or refused.
    if (!socket) ask()
    return wait(lookAgainMs)
  }
  const sign = (): void => {
    lastSign = performance.now()
    askedAt = undefined
    if (!isSilent) return
    isSilent = false
    watcher.onSign()
  }

  wait(askAfterMs)
  return {
    sign,
    end: () => {
      clearTimeout(timer)
      socket?.destroy()
      socket = undefined
    },
  }
}
