import type { Logout, Status } from '../../../shared/api/api.ts'
import { getProviderName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { didYouMean, toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { exitFailed } from '../../exit-code.ts'
import { parseProviderName } from './token.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { reportError } from '../../errors.ts'
import type { Terminal } from '../../terminal/terminal.ts'

/** Revokes and removes the tokens of a provider, and reports whether the provider confirmed it. */
export const logout = async (
  context: Context,
  [typed = '']: string[],
  { forget = false }: { readonly forget?: boolean },
): Promise<void> => {
  const { terminal } = context
  const provider = parseProviderName(typed)
  const path = `/oauth/tokens/${encodeURIComponent(provider)}${forget ? '?forget=true' : ''}`
  try {
    const answer = await withDaemon(context, (client) => client.delete<Logout>(path))
    if (terminal.json) terminal.printJson(answer)
    else printOutcome(answer, terminal)
    if (forget)
      terminal.say(
        `the OAuth client of ${provider} was removed${provider.includes('@') ? `; that of ${getProviderName(provider)} stays` : ''}`,
      )
  } catch (error) {
    if (!(error instanceof DoorwardError && error.code === 'not-logged-in')) throw error
    const known = await knownProviders(context)
    if (forget && known.includes(provider)) printForgotten(provider, error.message, terminal)
    else {
      // Exit code 4 means "log in first", which makes no sense after a logout.
      const { code, message, hint = whereElse(provider, known) } = error
      reportError(new DoorwardError(code, message, { hint }), terminal.json)
      process.exitCode = exitFailed
    }
  }
}

const knownProviders = async (context: Context): Promise<string[]> => {
  const status = await withDaemon(context, (client) =>
    client.get<Status>('/status').catch(() => undefined),
  )
  return status?.providers.map(({ provider }) => provider) ?? []
}

/** The nearest provider name, for a hint. */
const whereElse = (provider: string, known: readonly string[]): string => {
  const meant = known.includes(provider) ? undefined : didYouMean(provider, known)
  return meant ?? 'doorward oauth list'
}

/** `--forget` succeeds without a login too. The daemon reports whether there was a client. */
const printForgotten = (provider: string, detail: string, terminal: Terminal): void => {
  if (terminal.json)
    terminal.printJson({ provider, removed: false, revokedAtProvider: false, detail })
  else terminal.print(toPlainLine(detail))
}

const printOutcome = (answer: Logout, terminal: Terminal): void => {
  const provider = toPlainLine(answer.provider)
  if (answer.revokedAtProvider) {
    terminal.print(`logged out of ${provider}: ${provider} confirmed the revocation`)
    if (answer.detail !== undefined) terminal.print(`  ${toPlainLine(answer.detail)}`)
    return
  }
  const { detail = 'remove the access in your account there' } = answer
  terminal.print(`logged out of ${provider} on this machine`)
  terminal.warn(`warning: ${provider} did not confirm a revocation: ${toPlainLine(detail)}`)
}
