import { type Client, connect } from '../../shared/client/client.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { getUserAgent } from '../../shared/version.ts'

/** Lends the daemon of a home. Throws what `connect` and the user throw. */
export const withDaemon = async <Value>(
  home: Home,
  use: (client: Client) => Promise<Value>,
): Promise<Value> => {
  const client = await connect(home, { userAgent: getUserAgent('tray') })
  try {
    return await use(client)
  } finally {
    client.close()
  }
}

/** True for what a daemon of an earlier version answers to a question that it does not know. */
export const isUnknownRoute = (error: unknown): boolean =>
  error instanceof DoorwardError && ['not-found', 'method-not-allowed'].includes(error.code)
