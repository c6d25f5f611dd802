import type { Login, StartLogin, StartedDeviceLogin, StartedLogin } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import { lostLogin } from '../shared/client/discovery.ts'
import type { Terminal } from './terminal.ts'

/**
 * Starts a login. Ctrl-C meanwhile ends the command when the daemon has told what there is to cancel; a
 * second one does at once. Throws as the daemon does, and `interrupted`.
 */
export const startLogin = async (
  client: Client,
  request: StartLogin,
  signal: AbortSignal,
  terminal: Terminal,
): Promise<StartedLogin | StartedDeviceLogin> => {
  const tell = () => terminal.say('cancelling; Ctrl-C again ends at once')
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
 * Holds a request open until the login has an outcome; nothing is polled. Once the signal is aborted it is
 * cancelled at the daemon. Throws `daemon-unreachable` or `login-not-found` when the daemon has lost it.
 */
export const untilSettled = async (
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
    if (!signal.aborted) throw lostLogin(error, provider, `doorward oauth login ${provider}`)
    return await cancel(client, path)
  }
}

/** Too late is too late: a login whose tokens are being written is done, and said to be. */
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
