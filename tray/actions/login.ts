import type {
  Login,
  Logout,
  StartedDeviceLogin,
  StartedLogin,
  StartLogin,
  Status,
} from '../../shared/api/api.ts'
import type { Client } from '../../shared/client/client.ts'
import { toLostLoginError } from '../../shared/client/discovery.ts'
import { isSafeToOpen } from '../../shared/net.ts'
import { toBody, loginKey, type Note } from '../notifications/note.ts'
import type { WaitingLogin } from '../view.ts'
import { providerTitle, upperFirst } from '../wording.ts'
import { openPath } from './open.ts'

/*
 * A login from the tray: start -> open the page -> wait -> show who is logged in. The daemon does the
 * rest. The client id comes from the last login or from gateway.yaml.
 */

/** A login that waits for its user, with the page to open. */
export type OpenLogin = WaitingLogin & { readonly page: string }

type LoginOptions = {
  readonly show: (note: Note) => void
  /** Called with the login when it begins to wait, and with undefined when it no longer does. */
  readonly setLogin: (login: OpenLogin | undefined) => void
  /** Aborted when the tray exits; the login goes on without it. */
  readonly signal: AbortSignal
}

/**
 * Logs in to a provider and shows the outcome. Throws the errors of the daemon, such as `client-unknown`,
 * or `stopping` when it no longer takes a login.
 */
export const logIn = async (
  client: Client,
  provider: string,
  { show, setLogin, signal }: LoginOptions,
): Promise<void> => {
  const started = await start(client, provider)
  const login: OpenLogin =
    'userCode' in started
      ? { page: started.verificationUrl, userCode: started.userCode }
      : { page: started.authorizationUrl }
  const path = `/oauth/logins/${encodeURIComponent(started.loginId)}`
  setLogin(login)
  try {
    const isOpen = await openLogin(provider, login, show)
    if (!isOpen && login.userCode === undefined) {
      await client.delete(path)
      return
    }
    show(toLoginNote(await waitForOutcome(client, path, signal)))
  } catch (error) {
    if (!signal.aborted) throw toLostLoginError(error, provider, 'log in again')
  } finally {
    setLogin(undefined)
  }
}

/**
 * Opens the page of a login that waits. Shows the code to enter, if there is one: any browser will do.
 * Otherwise, without a browser, shows how to go on in a terminal.
 */
export const openLogin = async (
  provider: string,
  { page, userCode }: OpenLogin,
  show: (note: Note) => void,
): Promise<boolean> => {
  // Not the page with the code in its URL: other users can read the arguments of the browser.
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

/** Long polling: each request waits up to 30 s for the outcome. */
const waitForOutcome = async (
  client: Client,
  path: string,
  signal: AbortSignal,
): Promise<Login> => {
  for (;;) {
    const login = await client.get<Login>(`${path}?wait=30`, { timeoutMs: 60_000, signal })
    if (login.status !== 'pending') return login
  }
}

/** Shows who is logged in, or why the login failed. */
export const toLoginNote = (login: Login): Note => {
  const name = providerTitle(login.provider)
  const key = loginKey(login.provider)
  if (login.status !== 'authorized') {
    const { message, hint } = login.error ?? { message: reasons[login.status] ?? login.status }
    return {
      subject: `not logged in to ${name}`,
      body: toBody([upperFirst(message), hint ?? ''].join('\n')),
      failure: true,
      key,
    }
  }
  const { account, replaced, sameAccountAs, missingScopes = [] } = login
  const lines = [
    account ? `As ${account.name}` : `${name} does not name the account`,
    ...(replaced ? [`Replaces ${replaced.name}`] : []),
    ...(sameAccountAs === undefined ? [] : [`${providerTitle(sameAccountAs)} is the same account`]),
    ...(missingScopes.length > 0 ? [`Not granted: ${missingScopes.join(', ')}`] : []),
  ]
  return { subject: `logged in to ${name}`, body: toBody(lines.join('\n')), key }
}

const reasons: Partial<Record<Login['status'], string>> = {
  cancelled: 'the login was cancelled',
  expired: 'the login was not finished in time',
}

const userCodeNote = (provider: string, userCode: string, page: string): Note => ({
  subject: `enter ${userCode} to log in to ${providerTitle(provider)}`,
  body: toBody(`The page is ${page}, in any browser`),
  key: loginKey(provider),
})

const noBrowserNote = (provider: string): Note => ({
  subject: 'no browser could be opened',
  body: toBody(`Log in from a terminal:\ndoorward oauth login ${provider}`),
  failure: true,
  key: loginKey(provider),
})

/** Revokes and removes the tokens of a provider, and shows what the provider confirmed. */
export const logOut = async (
  client: Client,
  provider: string,
  show: (note: Note) => void,
): Promise<void> => {
  const path = `/oauth/tokens/${encodeURIComponent(provider)}`
  show(toLogoutNote(await client.delete<Logout>(path, { timeoutMs: 60_000 })))
}

/** Claims nothing that the provider has not confirmed. */
export const toLogoutNote = ({ provider, revokedAtProvider, detail }: Logout): Note => {
  const name = providerTitle(provider)
  const key = loginKey(provider)
  if (revokedAtProvider)
    return {
      subject: `logged out of ${name}`,
      body: toBody([`${name} confirmed the revocation`, ...(detail ? [detail] : [])].join('\n')),
      key,
    }
  return {
    subject: `logged out of ${name} on this machine`,
    body: toBody(
      `${name} did not confirm a revocation: ${detail ?? 'remove the access in your account there'}`,
    ),
    failure: true,
    key,
  }
}
