import { hostname, userInfo } from 'node:os'
import type {
  Login,
  StartedDeviceLogin,
  StartedLogin,
  StartLogin,
  TokenSummary,
} from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { getProviderName, isLoginName } from '../../../shared/config/name-forms.ts'
import { toLostLoginError } from '../../../shared/client/discovery.ts'
import { DoorwardError, type ErrorCode } from '../../../shared/errors.ts'
import { isSafeToOpen } from '../../../shared/net.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'
import { readSecret } from '../../terminal/input.ts'
import { holdInterrupt, showWaiting } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { loginCommand, shortScopes } from '../../../shared/login-words.ts'
import {
  canAsk,
  hasBrowser,
  helpToEnterCode,
  isRemoteShell,
  mayBrowserBeElsewhere,
  openBrowser,
  takePastedUrls,
  tunnelCommand,
} from './login-help.ts'
import { parseProviderName } from './token.ts'

/*
 * A login in the command line: start -> name the login it replaces -> show the URL and open the browser,
 * or read the pasted URL -> wait -> report who is logged in and what was not granted. The daemon does the
 * rest. Ctrl-C cancels the login in the daemon.
 */

export type LoginOptions = {
  /** The name of the account. */
  readonly as?: string
  readonly clientId?: string
  readonly clientSecret?: string
  readonly clientSecretStdin?: boolean
  readonly scopes?: string
  readonly browser: boolean
  readonly paste?: boolean
  readonly device?: boolean
}

/**
 * Logs in to a provider. `--json` prints two lines: the started login with its URL, and the outcome.
 * Throws the code of the failed login, or `interrupted`.
 */
export const login = async (
  context: Context,
  [typed = '']: string[],
  options: LoginOptions,
): Promise<void> => {
  const { terminal } = context
  const provider = toLoginName(parseProviderName(typed), options.as)
  const request = await buildRequest(provider, options, terminal)
  await withNextDaemon(context, async (client) => {
    const before = await loginBefore(client, provider)
    // Released at the end, so that Ctrl-C also stops waiting for the cancelled login.
    const { signal, letGo } = holdInterrupt()
    try {
      const started = await startLogin(client, request, signal, terminal)
      if (before && !signal.aborted) terminal.say(before)
      const stopHelping = await helpOn(client, started, options, terminal, signal)
      const outcome = await untilSettled(client, started, signal).finally(stopHelping)
      tellOutcome(outcome, started, terminal)
    } finally {
      letGo()
    }
  })
}

/** `github@work` for `github --as work`. Throws `usage`. */
export const toLoginName = (provider: string, account: string | undefined): string => {
  if (account === undefined) return provider
  const login = `${getProviderName(provider)}@${account}`
  if (!isLoginName(login))
    throw new DoorwardError(
      'usage',
      `"${toPlainLine(account).slice(0, 80)}" is not the name of an account`,
      { hint: 'a name has a-z, 0-9 and -, and at most 34 of them: --as work' },
    )
  if (provider.includes('@') && provider !== login)
    throw new DoorwardError('usage', `${provider} and --as ${account} name two accounts`, {
      hint: `doorward oauth login ${login}`,
    })
  return login
}

const tellOutcome = (
  outcome: Login | 'cancelled',
  { provider, scopes }: Pick<StartedLogin, 'provider' | 'scopes'>,
  terminal: Terminal,
): void => {
  if (outcome === 'cancelled') {
    terminal.say(`the login to ${toPlainLine(provider)} is cancelled`)
    throw new DoorwardError('interrupted', 'interrupted')
  }
  if (terminal.json) terminal.printJsonLine(outcome)
  if (outcome.status !== 'authorized') throw toFailure(outcome)
  if (!terminal.json) showSuccess(outcome, scopes, terminal)
}

const helpOn = async (
  client: Client,
  started: StartedLogin | StartedDeviceLogin,
  options: LoginOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<() => void> => {
  if (signal.aborted) return () => undefined
  if (!('userCode' in started)) return helpToBrowser(client, started, options, terminal, signal)
  return (await helpToEnterCode(started, options, terminal, signal)).stop
}

const buildRequest = async (
  provider: string,
  options: LoginOptions,
  terminal: Terminal,
): Promise<StartLogin> => {
  if (options.clientSecret !== undefined)
    terminal.warn(
      'warning: other users of this machine can see --client-secret, and your shell remembers it; --client-secret-stdin is safer',
    )
  if (options.clientId === '')
    throw new DoorwardError('usage', '--client-id is empty', {
      hint: 'is its shell variable set?',
    })
  // On a terminal one is asked for after the other.
  if (options.clientSecretStdin && options.paste && !process.stdin.isTTY)
    throw new DoorwardError(
      'usage',
      '--client-secret-stdin and --paste cannot both read a pipe or file',
      {
        hint: 'run it on a terminal, which asks for both; or put the secret into .env and name it in client_secret_env of the provider in gateway.yaml',
      },
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

/** Names the login that this one replaces; errors are reported by the start itself. */
export const loginBefore = async (
  client: Client,
  provider: string,
): Promise<string | undefined> => {
  const { tokens } = await client
    .get<{ tokens: TokenSummary[] }>('/oauth/tokens')
    .catch(() => ({ tokens: [] }))
  const token = tokens.find((known) => known.provider === provider)
  const meant = tokens.find(
    (known) => known.default && getProviderName(known.provider) === provider,
  )
  if (meant && meant.provider !== provider)
    return `${provider} means ${meant.provider}; this login is of the account without a name`
  if (!token) return undefined
  const whose = token.account ? ` as ${toPlainLine(token.account.name)}` : ''
  return token.status === 'needs-login'
    ? `the login to ${provider}${whose} can no longer be used; this login replaces it`
    : `you are logged in to ${provider}${whose}; this login replaces it`
}

/** Opens the provider's page, reads a pasted URL where needed, and shows that the login is pending. */
const helpToBrowser = async (
  client: Client,
  started: StartedLogin,
  options: LoginOptions,
  terminal: Terminal,
  signal: AbortSignal,
): Promise<() => void> => {
  const isRemote = isRemoteShell(process.env)
  const isElsewhere = !options.browser || mayBrowserBeElsewhere(process.platform, process.env)
  const pastes = options.paste || (isElsewhere && canAsk(terminal))
  const opens = options.browser && !isRemote && isSafeToOpen(started.authorizationUrl)
  const hasOne = hasBrowser(process.platform, process.env)
  if (isElsewhere && !options.paste) terminal.say(otherWays(started, pastes))
  showUrl(started, opens && hasOne, terminal)
  if (options.clientId !== undefined)
    terminal.say(
      `if it shows an error: check the client id, and that the app may redirect to\n\n  ${toPlainLine(started.redirectUri)}\n`,
    )
  if (isRemote) terminal.say(wayBack(started.redirectUri))
  if (opens) {
    const tell = () => terminal.say('no browser could be opened here: open the page yourself')
    if (hasOne) await openBrowser(started.authorizationUrl, tell)
    else tell()
  }
  if (pastes) terminal.say(howToPaste(started.redirectUri, isRemote))
  const stopPasting = pastes
    ? takePastedUrls(client, started, terminal, !(opens && hasOne))
    : undefined
  // The paste prompt has a clock of its own.
  const asks = pastes && canAsk(terminal)
  const label = `waiting for you at ${toPlainLine(started.provider)}`
  const waiting = asks
    ? undefined
    : await showWaiting(label, terminal, { signal, interrupt: 'cancels' })
  return () => {
    stopPasting?.()
    waiting?.stop()
  }
}

const showUrl = (started: StartedLogin, opensBrowser: boolean, terminal: Terminal): void => {
  if (terminal.json) {
    terminal.printJsonLine(started)
    return
  }
  const provider = toPlainLine(started.provider)
  const what = opensBrowser
    ? `opening your browser to log in to ${provider}; if that fails, open this page:`
    : `open this page to log in to ${provider}:`
  terminal.warn(`${what}\n\n  ${toPlainLine(started.authorizationUrl)}\n`)
  if (started.openBefore === undefined) return
  const seconds = Math.max(0, Math.round((Date.parse(started.openBefore) - Date.now()) / 1000))
  terminal.warn(`it can be opened within the next ${seconds} s`)
}

/** The ways that need no browser on this machine; on a terminal the address can be pasted right here. */
const otherWays = ({ device }: StartedLogin, pastes: boolean): string =>
  pastes
    ? `is the browser elsewhere? paste its address below (--paste)${device ? ', or use --device' : ''}`
    : `is the browser elsewhere? use --paste${device ? ', or --device to enter a code there' : ''}`

/** On another machine the redirect page does not load, but its URL is all that is needed. */
const howToPaste = (redirectUri: string, isRemote: boolean): string => {
  const first = `${isRemote ? 'or ' : ''}log in, then paste the address that the browser ends at`
  return `${first}, and press Enter;\nthe page need not load: ${toPlainLine(redirectUri)}?...`
}

/** Over ssh the browser runs on the other machine, where nothing listens at the redirect URI. */
const wayBack = (redirectUri: string): string => {
  const { port } = new URL(redirectUri)
  const place = { user: userName(), hostname: hostname() }
  return `your browser is on another machine; first run this there, so that the redirect reaches this one:\n\n  ${tunnelCommand(port, process.env, place)}\n`
}

/** The user name, from the system or else from sshd(8). */
const userName = (): string => {
  try {
    return userInfo().username
  } catch {
    return process.env['USER'] || 'you'
  }
}

const toFailure = ({ provider, status, error }: Login): DoorwardError => {
  const hint = error?.hint ?? `doorward oauth login ${provider}`
  if (error)
    return new DoorwardError(
      error.code as ErrorCode,
      status === 'failed' ? `login to ${provider} failed: ${error.message}` : error.message,
      { hint },
    )
  return status === 'expired'
    ? new DoorwardError('login-expired', `the login to ${provider} was not finished in time`, {
        hint,
      })
    : new DoorwardError('login-cancelled', `the login to ${provider} was cancelled`, { hint })
}

const showSuccess = (
  { provider, account, replaced, sameAccountAs, missingScopes = [] }: Login,
  asked: readonly string[],
  terminal: Terminal,
): void => {
  const name = toPlainLine(provider)
  terminal.print(`logged in to ${name}${account ? ` as ${toPlainLine(account.name)}` : ''}`)
  if (replaced)
    terminal.warn(`replaced: you were logged in to ${name} as ${toPlainLine(replaced.name)}`)
  if (sameAccountAs !== undefined) {
    terminal.warn(`warning: ${toPlainLine(sameAccountAs)} is a login of the same account`)
    terminal.say(
      `hint: for another account, log out in the browser first, then: doorward oauth login ${name}`,
    )
  }
  if (missingScopes.length === 0) return
  terminal.warn(`not granted: ${toPlainLine(shortScopes(missingScopes).join(', '))}`)
  terminal.say(`hint: ${toPlainLine(loginCommand(name, [...asked, ...missingScopes]))}`)
}

/**
 * Starts a login. Ctrl-C during the start cancels it as soon as the daemon has answered; a second Ctrl-C
 * exits immediately. Throws the daemon's error, and `interrupted`.
 */
const startLogin = async (
  client: Client,
  request: StartLogin,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<StartedLogin | StartedDeviceLogin> => {
  const tell = () => terminal.say('cancelling; press Ctrl-C again to exit immediately')
  signal.addEventListener('abort', tell)
  try {
    return await client.post<StartedLogin | StartedDeviceLogin>('/oauth/start', request)
  } catch (error) {
    throw signal.aborted ? new DoorwardError('interrupted', 'interrupted') : error
  } finally {
    signal.removeEventListener('abort', tell)
  }
}

/**
 * Waits for the outcome of a login by a long request. When the signal is aborted, it cancels the login in
 * the daemon. Throws `daemon-unreachable`, or `login-not-found` when the daemon no longer knows it.
 */
const untilSettled = async (
  client: Client,
  { loginId, provider }: Pick<StartedLogin, 'loginId' | 'provider'>,
  signal: AbortSignal,
): Promise<Login | 'cancelled'> => {
  const path = `/oauth/logins/${encodeURIComponent(loginId)}`
  try {
    for (;;) {
      const now = await client.get<Login>(`${path}?wait=30`, { timeoutMs: 60_000, signal })
      if (now.status !== 'pending') return now
    }
  } catch (error) {
    if (!signal.aborted) throw toLostLoginError(error, provider, `doorward oauth login ${provider}`)
    return await cancel(client, path)
  }
}

/** A login whose tokens are being written can no longer be cancelled: it is reported as done. */
const cancel = async (client: Client, path: string): Promise<Login | 'cancelled'> => {
  try {
    await client.delete(path, { timeoutMs: 3000 })
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'login-not-pending') {
      const now = await client.get<Login>(`${path}?wait=5`).catch(() => undefined)
      if (now?.status === 'authorized') return now
    }
  }
  return 'cancelled'
}
