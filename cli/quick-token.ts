import { DoorwardError } from '../shared/errors.ts'
import { fetchAccessToken, showToken } from './daemon-client/connect.ts'
import type { Context } from './context.ts'
import { parseProviderName } from './commands/oauth/token.ts'
import { NotQuick, connectQuickly } from './quick-daemon.ts'

/**
 * Prints the token as `oauth-token.ts` does, if the daemon is there and well; else it is false, and nothing has
 * happened. Throws what the daemon refuses it with.
 */
export const printTokenQuickly = async (context: Context, typed: string): Promise<boolean> => {
  const provider = parseProviderName(typed)
  // What is wrong the usual way says.
  const daemon = await connectQuickly(context).catch(() => undefined)
  if (!daemon) return false
  try {
    showToken(context.terminal, await fetchAccessToken(daemon, provider))
    return true
  } catch (error) {
    const isForAnother = error instanceof DoorwardError && error.code === 'stopping'
    if (isForAnother || error instanceof NotQuick) return false
    throw error
  } finally {
    daemon.close()
  }
}
