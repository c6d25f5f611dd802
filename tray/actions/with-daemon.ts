import { type Client, connect } from '../../shared/client/client.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { getUserAgent } from '../../shared/version.ts'

/** Runs `use` with a connection to the daemon of a home. Throws what `connect` and `use` throw. */
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

/** True for the answer of an earlier version of the daemon to a route that it does not have. */
export const isUnknownRoute = (error: unknown): boolean =>
  error instanceof DoorwardError && ['not-found', 'method-not-allowed'].includes(error.code)
