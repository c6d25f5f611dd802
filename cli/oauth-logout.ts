import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logout } from '../shared/api.ts'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { plainLine } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { exitFailed } from './exit-code.ts'
import { withDaemon } from './reach-daemon.ts'
import { reportError } from './report-error.ts'
import type { Terminal } from './terminal.ts'

/** Revokes and removes the tokens of a provider, and says whether the provider confirmed it. */
export const logout = async (
  context: Context,
  [provider = '']: string[],
  { forget = false }: { readonly forget?: boolean },
): Promise<void> => {
  const { home, terminal } = context
  try {
    const answer = await withDaemon(context, (client) =>
      client.delete<Logout>(`/oauth/tokens/${encodeURIComponent(provider)}`),
    )
    if (terminal.json) terminal.printJson(answer)
    else printOutcome(answer, terminal)
  } catch (error) {
    if (!(error instanceof DoorwardError && error.code === 'not-logged-in')) throw error
    // Code 4 means "log in first"; nobody who logs out wants to.
    reportError(error, terminal.json)
    process.exitCode = exitFailed
  }
  if (forget && (await forgetClient(home, provider)))
    terminal.say(`forgot the OAuth client of ${plainLine(provider)}`)
}

const printOutcome = (answer: Logout, terminal: Terminal): void => {
  const provider = plainLine(answer.provider)
  const detail = answer.detail ? `: ${plainLine(answer.detail)}` : ''
  terminal.print(
    answer.revokedAtProvider
      ? `logged out of ${provider}: ${provider} confirmed that the tokens are revoked`
      : `logged out of ${provider} on this machine`,
  )
  if (!answer.revokedAtProvider)
    terminal.warn(
      `warning: ${provider} did not confirm a revocation${detail}; to be sure, remove the access in your account there`,
    )
}

/** Removes `clients/<provider>.json`; true when there was one. */
const forgetClient = async (home: Home, provider: string): Promise<boolean> => {
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(provider)) return false
  try {
    await unlink(join(home.clients, `${provider}.json`))
    return true
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}
