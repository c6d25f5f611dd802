import type { ChildProcess } from 'node:child_process'
import { createInterface, type Interface } from 'node:readline'
import type { Login, StartedDeviceLogin, StartedLogin } from '../../../shared/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { reportError } from '../../errors.ts'
import { clock, shellWord } from '../../terminal/format.ts'
import { showWaiting, type Waiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/**
 * Tells the person which page to open and which code to enter there, opens the page where there is a
 * browser, unless not wanted, and shows that it waits until that is stopped. The code goes to
 * the terminal only: what a browser is started with can be read by other users of this machine, and so
 * the page that has the code in it is never opened.
 */
export const helpToEnterCode = async (
  started: StartedDeviceLogin,
  { browser }: { readonly browser: boolean },
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Waiting> => {
  const { provider, verificationUrl, verificationUrlComplete, userCode } = started
  if (terminal.json) terminal.printJsonLine(started)
  else {
    const code = terminal.paintError('bold', toPlainLine(userCode))
    terminal.warn(
      `to log in to ${toPlainLine(provider)}, open this page in any browser, on any machine:\n\n  ${toPlainLine(verificationUrl)}\n\nand enter this code there:\n\n  ${code}\n`,
    )
    if (verificationUrlComplete !== undefined)
      terminal.say(`the page with the code filled in: ${toPlainLine(verificationUrlComplete)}\n`)
  }
  const isHere = hasBrowser(process.platform, process.env) && !isRemoteShell(process.env)
  // Another browser does as well, so that nothing is said when none opens.
  if (browser && isHere && isSafeToOpen(verificationUrl))
    await openBrowser(verificationUrl, () => undefined)
  return showWaiting(`waiting for you at ${toPlainLine(provider)}`, terminal, {
    signal,
    interrupt: 'cancels',
  })
}

/** Whether there is a browser to open: on Linux that takes a display, or a `BROWSER`. */
export const hasBrowser = (platform: NodeJS.Platform, env: NodeJS.ProcessEnv): boolean =>
  platform !== 'linux' ||
  ['DISPLAY', 'WAYLAND_DISPLAY', 'BROWSER', 'WSL_DISTRO_NAME'].some((name) => env[name])

/** Opens the browser and does not wait for it; `onFailed` is called when that does not work. */
export const openBrowser = async (address: string, onFailed: () => void): Promise<void> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(address)
    child.once('error', onFailed)
    // The program that opens browsers tells only by its exit code that it found none.
    child.once('exit', (code) => {
      if (code) onFailed()
    })
    child.unref()
  } catch {
    onFailed()
  }
}

/** Who runs this command where, as far as it takes to come here from another machine. */
type Place = { readonly user: string; readonly hostname: string }

/** True in a shell that came over ssh, by the variables that sshd(8) sets. */
export const isRemoteShell = (env: NodeJS.ProcessEnv): boolean =>
  Boolean(env['SSH_CONNECTION'] || env['SSH_TTY'])

/**
 * The command that lets a browser on the other machine reach a port of this one: run there, it carries
 * the port over ssh, to the address that this shell's own connection came to.
 */
export const tunnelCommand = (
  port: string,
  env: NodeJS.ProcessEnv,
  { user, hostname }: Place,
): string => {
  const [, , address, sshPort] = (env['SSH_CONNECTION'] ?? '').split(' ')
  const host = address && /^[\da-f.:]+$/i.test(address) ? address : hostname
  const otherPort = sshPort && /^\d+$/.test(sshPort) && sshPort !== '22' ? `-p ${sshPort} ` : ''
  return `ssh -N -L ${port}:127.0.0.1:${port} ${otherPort}${shellWord(`${user}@${host}`)}`
}

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
    ? askOnTerminal(toPlainLine(started.provider))
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
