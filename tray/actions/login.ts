import type {
  Login,
  Logout,
  StartedDeviceLogin,
  StartedLogin,
  StartLogin,
  Status,
} from '../../shared/api.ts'
import type { Client } from '../../shared/client/client.ts'
import { toLostLoginError } from '../../shared/client/discovery.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { toBody, loginKey, type Note, toTitle } from '../notifications/note.ts'
import type { WaitingLogin } from '../view.ts'
import { providerTitle, upperFirst } from '../wording.ts'
import { openPath } from './open.ts'

/*
 * A login, as a click has started it: start -> open the page -> wait -> say who is logged in. The daemon
 * does the rest. What is remembered of the last login, or stands in gateway.yaml, names the client.
 */

/** A login that waits for its person, with the page to open. */
export type OpenLogin = WaitingLogin & { readonly page: string }

type LoginParts = {
  readonly show: (note: Note) => void
  /** Hears what the login waits for, and undefined when it waits no more. */
  readonly waits: (login: OpenLogin | undefined) => void
  /** Aborted when the tray ends: the login goes on without it. */
  readonly signal: AbortSignal
}

/**
 * Logs in to a provider and shows the outcome. Throws what the daemon refuses: `client-unknown`, `stopping`
 * where it takes no new login any more …
 */
export const logIn = async (
  client: Client,
  provider: string,
  { show, waits, signal }: LoginParts,
): Promise<void> => {
  const started = await start(client, provider)
  const login: OpenLogin =
    'userCode' in started
      ? { page: started.verificationUrl, userCode: started.userCode }
      : { page: started.authorizationUrl }
  const path = `/oauth/logins/${encodeURIComponent(started.loginId)}`
  waits(login)
  try {
    const isOpen = await openLogin(provider, login, show)
    if (!isOpen && login.userCode === undefined) {
      await client.delete(path)
      return
    }
    show(toLoginNote(await untilSettled(client, path, signal)))
  } catch (error) {
    if (!signal.aborted) throw toLostLoginError(error, provider, 'log in again')
  } finally {
    waits(undefined)
  }
}

/**
 * Opens the page of a login that waits. A code to enter is shown beside it, for any browser will do; else
 * without a browser the note says how to go on in a terminal.
 */
export const openLogin = async (
  provider: string,
  { page, userCode }: OpenLogin,
  show: (note: Note) => void,
): Promise<boolean> => {
  // Not the page that has the code in it: other users can read what a browser was started with.
  const isOpen = isSafeToOpen(page) && (await openPath(page))
  if (userCode !== undefined) show(userCodeNote(provider, userCode, page))
  else if (!isOpen) show(noBrowserNote(provider))
  return isOpen
}

const start = async (
  client: Client,
  provider: string,
): Promise<StartedLogin | StartedDeviceLogin> => {
  const { providers } = await client.get<Status>('/status')
  const byDevice = providers.find((known) => known.provider === provider)?.device === true
  const request: StartLogin = { provider, ...(byDevice && { device: true }) }
  return client.post('/oauth/start', request)
}

/** Holds a request open until the login has an outcome; nothing is polled. */
const untilSettled = async (client: Client, path: string, signal: AbortSignal): Promise<Login> => {
  for (;;) {
    const now = await client.get<Login>(`${path}?wait=30`, { timeoutMs: 60_000, signal })
    if (now.status !== 'pending') return now
  }
}

/** How a login ended: who is logged in, or why nobody is. */
export const toLoginNote = (login: Login): Note => {
  const name = providerTitle(login.provider)
  const key = loginKey(login.provider)
  if (login.status !== 'authorized') {
    const { message, hint } = login.error ?? { message: reasons[login.status] ?? login.status }
    return {
      title: toTitle(`not logged in to ${name}`),
      body: toBody([upperFirst(message), hint ?? ''].join('\n')),
      failure: true,
      key,
    }
  }
  const { account, replaced, missingScopes = [] } = login
  const lines = [
    account ? `As ${account.name}` : `${name} does not say as whom`,
    ...(replaced ? [`In place of ${replaced.name}`] : []),
    ...(missingScopes.length > 0 ? [`Not granted: ${missingScopes.join(', ')}`] : []),
  ]
  return { title: toTitle(`logged in to ${name}`), body: toBody(lines.join('\n')), key }
}

const reasons: Partial<Record<Login['status'], string>> = {
  cancelled: 'the login was cancelled',
  expired: 'nobody finished the login in time',
}

/** Where to enter which code; the page is open, or any other browser will do. */
const userCodeNote = (provider: string, userCode: string, page: string): Note => ({
  title: toTitle(`enter ${userCode} to log in to ${providerTitle(provider)}`),
  body: toBody(`The page is ${page}, in any browser`),
  key: loginKey(provider),
})

const noBrowserNote = (provider: string): Note => ({
  title: toTitle('no browser could be opened'),
  body: toBody(`Log in from a terminal:\ndoorward oauth login ${provider}`),
  failure: true,
  key: loginKey(provider),
})

/** Revokes and removes the tokens of a provider, and tells what the provider made of it. */
export const logOut = async (
  client: Client,
  provider: string,
  show: (note: Note) => void,
): Promise<void> => {
  const path = `/oauth/tokens/${encodeURIComponent(provider)}`
  show(toLogoutNote(await client.delete<Logout>(path, { timeoutMs: 60_000 })))
}

/** Never says more than the provider has confirmed. */
export const toLogoutNote = ({ provider, revokedAtProvider, detail }: Logout): Note => {
  const name = providerTitle(provider)
  const key = loginKey(provider)
  const parts = detail?.split('; ') ?? []
  if (revokedAtProvider)
    return {
      title: toTitle(`logged out of ${name}`),
      body: toBody([`${name} confirmed the revocation`, ...parts].join('\n')),
      key,
    }
  const rest = parts.length > 0 ? parts : ['remove the access in your account there']
  return {
    title: toTitle(`logged out of ${name} on this machine`),
    body: toBody([`${name} did not confirm a revocation:`, ...rest].join('\n')),
    failure: true,
    key,
  }
}
