import type { ImportedLogin } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { askGh, getGitHubHost } from '../../../shared/gh.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { confirm } from '../../terminal/input.ts'
import { gatewayValue } from './git-credential.ts'
import { loginBefore, toLoginName } from './login.ts'

export type ImportOptions = {
  /** The name of the account. */
  readonly as?: string
  readonly yes?: boolean
}

/**
 * Takes over the login of the GitHub CLI: gh prints its token, and the daemon checks and stores it. Throws
 * `usage`, `command-not-found` without gh, `not-logged-in` where gh gives no token, or the daemon's error.
 */
export const importLogin = async (
  context: Context,
  [from = '']: string[],
  { as, yes = false }: ImportOptions,
): Promise<void> => {
  const { terminal, home } = context
  if (from !== 'gh')
    throw new DoorwardError('usage', 'gh is the only program to import from', {
      hint: 'doorward oauth import gh',
    })
  const provider = toLoginName('github', as)
  const host = getGitHubHost(await gatewayValue(home))
  const permission = {
    question: `Store the token that gh has for ${host} as ${provider}, for the programs that ask doorward?`,
    refusal: 'this copies the token of gh, and there is no terminal to ask',
    interrupted: 'nothing was imported',
  }
  const before = await withDaemon(context, (client) => loginBefore(client, provider))
  if (before) terminal.say(before)
  if (!yes && !(await confirm(permission, terminal))) return terminal.say('nothing was imported')
  const accessToken = await askGh(host)
  const body = { provider, accessToken }
  const answer = await withDaemon(context, (client) =>
    client.post<ImportedLogin>('/oauth/import', body, { timeoutMs: 60_000 }),
  )
  if (terminal.json) return terminal.printJson(answer)
  const { account, scopes, expiresAt, replaced, sameAccountAs } = answer
  terminal.print(`logged in to ${provider} as ${toPlainLine(account.name)}, with the token of gh`)
  if (replaced)
    terminal.warn(`replaced: you were logged in to ${provider} as ${toPlainLine(replaced.name)}`)
  if (sameAccountAs !== undefined)
    terminal.warn(`warning: ${toPlainLine(sameAccountAs)} is a login of the same account`)
  if (scopes.length > 0) terminal.say(`scopes: ${toPlainLine(scopes.join(', '))}`)
  if (expiresAt !== undefined) terminal.say(`expires: ${toPlainLine(expiresAt)}`)
  terminal.say('it ends when gh gets another token or logs out; then import it again')
}
