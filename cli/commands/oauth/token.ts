import { isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { formatDuration, toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { fetchAccessToken } from '../../daemon-client/connect.ts'
import { withNextDaemon } from '../../daemon-client/ensure.ts'

export type TokenOptions = {
  /** Seconds. */
  readonly minValidity?: number
}

/**
 * Prints a fresh access token alone, or with `--json` the daemon's whole answer. Throws `not-logged-in` or
 * `needs-login` (exit code 4), or `provider-unavailable`.
 */
export const printToken = async (
  context: Context,
  [typed = '']: string[],
  { minValidity }: TokenOptions,
): Promise<void> => {
  const { terminal } = context
  const provider = parseProviderName(typed)
  const answer = await withNextDaemon(
    context,
    async (client) => fetchAccessToken(client, provider, minValidity),
    { reads: true },
  )
  const left = answer.expiresAt ? Date.parse(answer.expiresAt) - Date.now() : Infinity
  // Some providers issue no token that is valid for so long.
  if (minValidity !== undefined && left < minValidity * 1000)
    terminal.say(`warning: this token of ${provider} is valid for ${formatDuration(left)} only`)
  if (terminal.json) terminal.printJson(answer)
  else terminal.print(answer.accessToken)
}

/**
 * Validates the name of a provider, or of an account such as `github@work`, before it becomes part of a path
 * or a variable name. Throws `provider-unknown`.
 */
export const parseProviderName = (typed: string): string => {
  if (isLoginName(typed)) return typed
  const lower = typed.toLowerCase()
  throw new DoorwardError(
    'provider-unknown',
    `"${toPlainLine(typed).slice(0, 80)}" is not the name of a provider`,
    {
      hint: isLoginName(lower)
        ? `did you mean "${lower}"?`
        : 'names are those of doorward help providers, and those under providers: in gateway.yaml; github@work is an account (a-z, 0-9 and -, at most 32)',
    },
  )
}
