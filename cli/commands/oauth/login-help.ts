import type { ChildProcess } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'
import type { Login, StartedDeviceLogin, StartedLogin } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { reportError } from '../../errors.ts'
import { clock, shellWord } from '../../terminal/format.ts'
import { showWaiting, type Waiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/**
 * Prints the page to open and the code to enter, opens the page where there is a browser and that is
 * wanted, and shows a spinner until it is stopped. The code goes to the terminal only: other users can
 * read a browser's arguments, so the page with the code in its URL is never opened.
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
  // Any other browser works too, so a failure to open one is not reported.
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

/** Files that Docker and Podman put into a container. */
const containerFiles = ['/.dockerenv', '/run/.containerenv']

/**
 * Whether the user's browser may not reach this machine's callback listener: over ssh, in a container, under
 * WSL, or where there is no display.
 */
export const mayBrowserBeElsewhere = (
  platform: NodeJS.Platform,
  env: NodeJS.ProcessEnv,
  exists: (path: string) => boolean = existsSync,
): boolean =>
  isRemoteShell(env) ||
  !hasBrowser(platform, env) ||
  ['REMOTE_CONTAINERS', 'CODESPACES', 'WSL_DISTRO_NAME'].some((name) => env[name]) ||
  containerFiles.some((path) => exists(path))

/** Opens the browser without waiting for it; calls `onFailed` when that fails. */
export const openBrowser = async (address: string, onFailed: () => void): Promise<void> => {
  try {
    const { default: open } = await import('open')
    const child: ChildProcess = await open(address)
    child.once('error', onFailed)
    // xdg-open reports only by its exit code that it found no browser.
    child.once('exit', (code) => {
      if (code) onFailed()
    })
    child.unref()
  } catch {
    onFailed()
  }
}

/** The user and host of this shell, as another machine reaches it over ssh. */
type Place = { readonly user: string; readonly hostname: string }

/** True in a shell over ssh, by the variables that sshd(8) sets. */
export const isRemoteShell = (env: NodeJS.ProcessEnv): boolean =>
  Boolean(env['SSH_CONNECTION'] || env['SSH_TTY'])

/**
 * The ssh command that forwards a port of this machine to the one with the browser, by the address of
 * this shell's own connection.
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

/** True when this terminal can prompt while the login waits. */
export const canAsk = (terminal: Terminal): boolean => terminal.isInteractive && process.stdin.isTTY

/**
 * For a browser on another machine: reads redirect URLs from standard input, a line each, while the
 * callback listener waits too. A wrong URL is reported and the login stays pending; the outcome of a right
 * one is reported by the login. When the input ends and `isOnlyWay`, the login is cancelled. Returns a
 * function that stops reading.
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
      // The browser may have been faster, or this URL finished the login: both are reported elsewhere.
      const now = isOver ? undefined : await stateOf()
      if (now?.status === 'pending' && !isOver) redraw(() => reportError(error, terminal.json))
    }
  }
  // One after another, so that their reports come in order.
  let sending = Promise.resolve()
  lines.on('line', (line) => {
    const url = line.trim()
    if (url !== '') sending = sending.then(async () => send(url))
  })
  const cancel = async (): Promise<void> => {
    const now = isOver ? undefined : await stateOf()
    if (now?.status !== 'pending') return
    terminal.warn('standard input ended: no address can be pasted any more')
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
  /** Clears the prompt while something else is printed. */
  readonly redraw: (write: () => void) => void
  readonly close: () => void
}

const readPlainly = (): Asking => {
  const lines = createInterface({ input: process.stdin, terminal: false })
  return { lines, redraw: (write) => write(), close: () => lines.close() }
}

/**
 * A prompt with a clock. The terminal is read by key, not by line: its line editor cuts lines at 4096
 * characters (1024 on macOS), and some URLs are longer.
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
  // Not while something is typed: the line may take several rows, which would not be erased.
  const timer = setInterval(() => {
    if (lines.line === '') show()
  }, 1000)
  const stop = (): void => clearInterval(timer)
  const clear = (): void => void process.stderr.write('\r\u001b[J')
  lines.on('line', show)
  lines.once('close', stop)
  // When reading by key, Ctrl-C is a key: turn it into the signal that cancels the login.
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
