import type { Logout } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
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
  const { terminal } = context
  const path = `/oauth/tokens/${encodeURIComponent(provider)}${forget ? '?forget=true' : ''}`
  try {
    const answer = await withDaemon(context, (client) => client.delete<Logout>(path))
    if (terminal.json) terminal.printJson(answer)
    else printOutcome(answer, terminal)
  } catch (error) {
    if (!(error instanceof DoorwardError && error.code === 'not-logged-in')) throw error
    // Code 4 means "log in first"; nobody who logs out wants to.
    reportError(error, terminal.json)
    process.exitCode = exitFailed
  }
  if (forget) terminal.say(`the OAuth client of ${plainLine(provider)} is forgotten`)
}

const printOutcome = (answer: Logout, terminal: Terminal): void => {
  const provider = plainLine(answer.provider)
  if (answer.revokedAtProvider) {
    terminal.print(`logged out of ${provider}: ${provider} confirmed that the tokens are revoked`)
    return
  }
  terminal.print(`logged out of ${provider} on this machine`)
  const detail = answer.detail ?? 'to be sure, remove the access in your account there'
  terminal.warn(`warning: ${provider} did not confirm a revocation: ${plainLine(detail)}`)
}
