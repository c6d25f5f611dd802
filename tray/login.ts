import type { Login, StartLogin, StartedDeviceLogin, StartedLogin, Status } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { lostLogin } from '../shared/client/discovery.ts'
import { isSafeToOpen } from '../shared/net.ts'
import { loginNoteOf, noBrowserNote, userCodeNote } from './login-note.ts'
import type { Note } from './note.ts'
import { openPath } from './open-path.ts'
import type { WaitingLogin } from './view.ts'

/*
 * A login, as a click has started it: start -> open the page -> wait -> say who is logged in. The daemon
 * does the rest. What is remembered of the last login, or stands in gateway.yaml, names the client.
 */

/** A login that waits for its person, with the page to open. */
export type OpenLogin = WaitingLogin & { readonly page: string }

export type LoginParts = {
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
    show(loginNoteOf(await untilSettled(client, path, signal)))
  } catch (error) {
    if (!signal.aborted) throw lostLogin(error, provider, 'log in again')
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
