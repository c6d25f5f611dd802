import type { DefaultAccount } from '../../../shared/api.ts'
import { isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { readDefaultAccounts, resolveLogin } from '../../../shared/home/default-accounts.ts'
import { toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { parseProviderName } from './token.ts'

/**
 * Chooses the account that a provider's name means, or prints which one it is. Throws `usage`,
 * `provider-unknown`, or `not-logged-in` for an account without a login.
 */
export const chooseDefault = async (
  context: Context,
  [typed = '', account]: string[],
  { unnamed = false }: { readonly unnamed?: boolean },
): Promise<void> => {
  const provider = parseProviderName(typed)
  if (provider.includes('@'))
    throw new DoorwardError('usage', `${provider} always means the same account`, {
      hint: `doorward oauth default ${provider.replace('@', ' ')}`,
    })
  if (account !== undefined && unnamed)
    throw new DoorwardError('usage', 'an account and --unnamed are two choices: use one')
  if (account !== undefined && !isLoginName(`${provider}@${account}`))
    throw new DoorwardError(
      'usage',
      `"${toPlainLine(account).slice(0, 80)}" is not the name of an account`,
      { hint: 'doorward oauth list' },
    )
  const { terminal, home } = context
  const body = { provider, account: account ?? null }
  const answer =
    account !== undefined || unnamed
      ? await withDaemon(context, (client) => client.post<DefaultAccount>('/oauth/default', body))
      : { provider, default: resolveLogin(provider, await readDefaultAccounts(home)) }
  if (terminal.json) terminal.printJson(answer)
  else terminal.print(`${toPlainLine(answer.provider)} means ${toPlainLine(answer.default)}`)
}
