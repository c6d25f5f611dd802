import { duration } from '../shared/text.ts'
import { accessTokenOf, showToken } from './access-token.ts'
import type { Context } from './context.ts'
import { providerNameOf } from './provider-name.ts'
import { withNextDaemon } from './reach-daemon.ts'

export type TokenOptions = {
  /** Seconds. */
  readonly minValidity?: number
}

/**
 * Prints the fresh access token alone, or with `--json` the daemon's whole answer. Throws
 * `not-logged-in` or `needs-login`, which end with 4, or `provider-unavailable`.
 */
export const printToken = async (
  context: Context,
  [typed = '']: string[],
  { minValidity }: TokenOptions,
): Promise<void> => {
  const { terminal } = context
  const provider = providerNameOf(typed)
  const answer = await withNextDaemon(
    context,
    async (client) => accessTokenOf(client, provider, minValidity),
    { reads: true },
  )
  const left = answer.expiresAt ? Date.parse(answer.expiresAt) - Date.now() : Infinity
  // The daemon gives what the provider gives: some have no token that lives so long.
  if (minValidity !== undefined && left < minValidity * 1000)
    terminal.say(`warning: this token of ${provider} is valid for ${duration(left)} only`)
  showToken(terminal, answer)
}
