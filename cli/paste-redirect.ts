import { type Interface, createInterface } from 'node:readline'
import type { Login, StartedLogin } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { plainLine } from '../shared/text.ts'
import { clock } from './clock.ts'
import { reportError } from './report-error.ts'
import type { Terminal } from './terminal.ts'

/** Whether a person can be asked on this terminal while the login waits. */
export const canAsk = (terminal: Terminal): boolean => terminal.isInteractive && process.stdin.isTTY

/**
 * For a browser on another machine: takes each line of standard input for the address that it was sent
 * to, while the callback waits as well. A wrong one is reported and the login goes on; how a right one
 * ends, the login itself tells. When the input ends, which is no terminal, nobody can paste any more: the
 * login is cancelled then, where `isOnlyWay`. What it returns stops reading.
 */
export const takePastedUrls = (
  client: Client,
  started: StartedLogin,
  terminal: Terminal,
  isOnlyWay: boolean,
): (() => void) => {
  const path = `/oauth/logins/${encodeURIComponent(started.loginId)}`
  const { lines, redraw, close } = canAsk(terminal)
    ? askOnTerminal(plainLine(started.provider))
    : readPlainly()
  let isOver = false
  const stateOf = async (): Promise<Login | undefined> =>
    client.get<Login>(path, { timeoutMs: 5000 }).catch(() => undefined)
  const send = async (url: string): Promise<void> => {
    try {
      await client.post(`${path}/redirect`, { url })
      isOver = true
    } catch (error) {
      // The browser may have won meanwhile, or this address has ended the login: both are told elsewhere.
      const now = isOver ? undefined : await stateOf()
      if (now?.status === 'pending' && !isOver) redraw(() => reportError(error, terminal.json))
    }
  }
  // One after the other, so that what is said of each comes in their order.
  let sending = Promise.resolve()
  lines.on('line', (line) => {
    const url = line.trim()
    if (url !== '') sending = sending.then(async () => send(url))
  })
  const cancel = async (): Promise<void> => {
    const now = isOver ? undefined : await stateOf()
    if (now?.status !== 'pending') return
    terminal.warn('standard input has ended: no address can be pasted any more')
    await client.delete(path).catch(() => undefined)
  }
  if (isOnlyWay && !canAsk(terminal))
    lines.once('close', () => {
      sending = sending.then(cancel)
    })
  return () => {
    isOver = true
    close()
  }
}

type Asking = {
  readonly lines: Interface
  /** Takes what is shown away while something else is written. */
  readonly redraw: (write: () => void) => void
  readonly close: () => void
}

const readPlainly = (): Asking => {
  const lines = createInterface({ input: process.stdin, terminal: false })
  return { lines, redraw: (write) => write(), close: () => lines.close() }
}

/**
 * A prompt that shows how long it has waited. The terminal is read by key, not by line: its own line
 * editor cuts off what is longer than 4096 characters (1024 on macOS), and some addresses are.
 */
const askOnTerminal = (provider: string): Asking => {
  const lines = createInterface({
    input: process.stdin,
    output: process.stderr,
    terminal: true,
    historySize: 0,
  })
  const startedAt = Date.now()
  const show = (): void => {
    lines.setPrompt(`waiting for you at ${provider} (${clock(Date.now() - startedAt)}), or paste> `)
    lines.prompt(true)
  }
  // Not over something typed: the line may have grown to several rows, which would be left standing.
  const timer = setInterval(() => {
    if (lines.line === '') show()
  }, 1000)
  const stop = (): void => clearInterval(timer)
  const clear = (): void => void process.stderr.write('\r\u001b[J')
  lines.on('line', show)
  lines.once('close', stop)
  // Read by key, Ctrl-C is a key; what cancels a login is the signal.
  lines.on('SIGINT', () => {
    lines.close()
    process.kill(process.pid, 'SIGINT')
  })
  show()
  return {
    lines,
    redraw: (write) => {
      clear()
      write()
      show()
    },
    close: () => {
      stop()
      clear()
      lines.close()
    },
  }
}
