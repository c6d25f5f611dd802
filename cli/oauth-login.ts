import { createInterface } from 'node:readline'
import type { Login, StartLogin, StartedDeviceLogin, StartedLogin } from '../shared/api.ts'
import type { Client } from '../shared/client.ts'
import { DoorwardError, type ErrorCode } from '../shared/errors.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { interruptSignal } from './interrupt.ts'
import { showDeviceCode } from './oauth-login-device.ts'
import { hasBrowser, isSafeToOpen, openBrowser } from './open-browser.ts'
import { withDaemon } from './reach-daemon.ts'
import { readSecret } from './read-secret.ts'
import { reportError } from './report-error.ts'
import type { Terminal } from './terminal.ts'

/*
 * A login, as this side sees it: start -> show the URL and open the browser -> wait -> say who is
 * logged in. The daemon does the rest. Ctrl-C cancels it there, so that no half login is left.
 */

export type LoginOptions = {
  readonly clientId?: string
  readonly clientSecret?: string
  readonly clientSecretStdin?: boolean
  readonly scopes?: string
  readonly browser: boolean
  readonly paste?: boolean
  readonly device?: boolean
}

/**
 * Logs in to a provider. With `--json` two lines: the started login with its URL, and the outcome.
 * Throws the code of the failed login, or `interrupted`.
 */
export const login = async (
  context: Context,
  [provider = '']: string[],
  options: LoginOptions,
): Promise<void> => {
  const { terminal } = context
  const request = await requestOf(provider, options, terminal)
  const outcome = await withDaemon(context, async (client) => {
    const started = await client.post<StartedLogin | StartedDeviceLogin>('/oauth/start', request)
    const stopPasting = new AbortController()
    try {
      const signal = interruptSignal()
      if ('userCode' in started) await showDeviceCode(started, options, terminal)
      else {
        showUrl(started, terminal)
        if (options.paste) takePastedUrls(client, started, terminal, stopPasting.signal)
        await openIfWanted(started, options, terminal)
      }
      return await untilSettled(client, started, terminal, signal)
    } finally {
      stopPasting.abort()
    }
  })
  if (terminal.json) terminal.printJsonLine(outcome)
  if (outcome.status !== 'authorized') throw failureOf(outcome)
  if (!terminal.json) terminal.print(successOf(outcome))
}

const requestOf = async (
  provider: string,
  options: LoginOptions,
  terminal: Terminal,
): Promise<StartLogin> => {
  if (options.clientSecret !== undefined)
    terminal.warn(
      'warning: other users of this machine can see --client-secret, and your shell remembers it; --client-secret-stdin is safer',
    )
  const clientSecret = options.clientSecretStdin ? await readSecret() : options.clientSecret
  const scopes = options.scopes?.split(/[\s,]+/).filter((scope) => scope !== '')
  if (scopes?.length === 0) throw new DoorwardError('usage', '--scopes names no scope')
  return {
    provider,
    ...(options.clientId === undefined ? {} : { clientId: options.clientId }),
    ...(clientSecret === undefined ? {} : { clientSecret }),
    ...(scopes === undefined ? {} : { scopes }),
    ...(options.device && { device: true }),
  }
}

const showUrl = (started: StartedLogin, terminal: Terminal): void => {
  if (terminal.json) terminal.printJsonLine(started)
  else
    terminal.warn(
      `open this page to log in to ${plainLine(started.provider)}:\n\n  ${plainLine(started.authorizationUrl)}\n`,
    )
}

const openIfWanted = async (
  { authorizationUrl }: StartedLogin,
  options: LoginOptions,
  terminal: Terminal,
): Promise<void> => {
  if (!options.browser || !isSafeToOpen(authorizationUrl)) return
  const tell = () => terminal.say('no browser could be opened here: open the page yourself')
  if (hasBrowser(process.platform, process.env)) await openBrowser(authorizationUrl, tell)
  else tell()
}

/** Holds a request open until the login has an outcome; nothing is polled. */
const untilSettled = async (
  client: Client,
  { loginId, provider }: StartedLogin | StartedDeviceLogin,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<Login> => {
  const path = `/oauth/logins/${encodeURIComponent(loginId)}`
  let isCancelled = false
  const stopSpinner = await spin(`waiting for you at ${plainLine(provider)}`, terminal)
  try {
    for (;;) {
      const now = await client.get<Login>(`${path}?wait=30`, { timeoutMs: 60_000, signal })
      if (now.status !== 'pending') return now
    }
  } catch (error) {
    if (!signal.aborted) throw error
    await client.delete(path, { timeoutMs: 3000 }).catch(() => undefined)
    isCancelled = true
    throw new DoorwardError('interrupted', 'interrupted')
  } finally {
    stopSpinner()
    if (isCancelled) terminal.say(`the login to ${plainLine(provider)} is cancelled`)
  }
}

const spin = async (label: string, terminal: Terminal): Promise<() => void> => {
  if (!terminal.isInteractive) {
    terminal.say(`${label} ...`)
    return () => undefined
  }
  const { default: yoctoSpinner } = await import('yocto-spinner')
  // Signals are ours: the spinner would end the process before the login is cancelled.
  const spinner = yoctoSpinner({ text: `${label} (Ctrl-C to cancel)`, handleSignals: false })
  spinner.start()
  return () => void spinner.stop()
}

/** For a browser on another machine: each line of standard input is tried as the redirected URL. */
const takePastedUrls = (
  client: Client,
  { loginId }: StartedLogin,
  terminal: Terminal,
  signal: AbortSignal,
): void => {
  terminal.say('afterwards paste the address that the browser was sent to, and press Enter')
  const lines = createInterface({ input: process.stdin, terminal: false })
  signal.addEventListener('abort', () => lines.close(), { once: true })
  const send = async (url: string): Promise<void> => {
    try {
      await client.post(`/oauth/logins/${encodeURIComponent(loginId)}/redirect`, { url })
    } catch (error) {
      if (!signal.aborted) reportError(error, terminal.json)
    }
  }
  // One after the other, so that what is said of each comes in their order.
  let sending = Promise.resolve()
  lines.on('line', (line) => {
    const url = line.trim()
    if (url !== '') sending = sending.then(async () => send(url))
  })
}

const failureOf = ({ provider, status, error }: Login): DoorwardError => {
  if (error)
    return new DoorwardError(
      error.code as ErrorCode,
      `login to ${provider} failed: ${error.message}`,
      { hint: error.hint ?? `doorward oauth login ${provider}` },
    )
  return status === 'expired'
    ? new DoorwardError('login-expired', `nobody finished the login to ${provider} in time`)
    : new DoorwardError('login-cancelled', `the login to ${provider} was cancelled`)
}

const successOf = ({ provider, account }: Login): string =>
  `logged in to ${plainLine(provider)}${account ? ` as ${plainLine(account.name)}` : ''}`
