import { type Client, connect } from '../shared/client/client.ts'
import type { Home } from '../shared/home/home.ts'
import { userAgentOf } from '../shared/version.ts'

/** Lends the daemon of a home. Throws what `connect` and the user throw. */
export const withDaemon = async <Value>(
  home: Home,
  use: (client: Client) => Promise<Value>,
): Promise<Value> => {
  const client = await connect(home, { userAgent: userAgentOf('tray') })
  try {
    return await use(client)
  } finally {
    client.close()
  }
}
