import type { DefaultAccount, Status, TokenSummary } from '../../../shared/api/api.ts'
import { findLoginProblem } from '../../../shared/client/discovery.ts'
import { isLoginName } from '../../../shared/config/name-forms.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { readDefaultAccounts, resolveLogin } from '../../../shared/home/default-accounts.ts'
import { loginCommand, shortScopes } from '../../../shared/login-words.ts'
import { cut, toPlainLine } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { fromNow } from '../../terminal/format.ts'
import { type Cell, narrowed, tableLines } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { parseProviderName } from './token.ts'

/** The longest account name shown on a terminal. */
const nameColumns = 32

/** Prints the authorized providers and what is wrong with each; never a token. */
export const listTokens = async (context: Context): Promise<void> => {
  const { terminal } = context
  const { tokens, problems } = await withDaemon(context, async (client) => {
    const answer = await client.get<{ tokens: TokenSummary[] }>('/oauth/tokens')
    const isOver = answer.tokens.some(({ status }) => status === 'needs-login')
    // The status says why a login has ended; the list is useful without it.
    const status =
      isOver && !terminal.json
        ? await client.get<Status>('/status').catch(() => undefined)
        : undefined
    return { ...answer, problems: status?.problems ?? [] }
  })
  if (terminal.json) return terminal.printJson({ tokens })
  if (tokens.length === 0)
    return terminal.say(
      'not logged in anywhere\nhint: doorward oauth login github, or google, slack',
    )
  const now = new Date()
  const header = ['PROVIDER', 'ACCOUNT', 'STATUS', 'EXPIRES', 'SCOPES']
  const rows = tokens.map((token) => toRow(token, now, terminal))
  // Columns to shorten when space is short: account, then time.
  const shown = narrowed([header, ...rows], terminal.columns, [1, 3], 8)
  for (const line of tableLines(shown.rows, terminal.columns)) terminal.print(line)
  for (const token of tokens) {
    for (const line of whatIsWrong(token, problems)) terminal.say(line)
  }
}

const toRow = (token: TokenSummary, now: Date, terminal: Terminal): Cell[] => {
  const name = toPlainLine(token.account?.name ?? '-')
  return [
    token.default ? `${token.provider} (default)` : token.provider,
    terminal.columns === undefined ? name : cut(name, nameColumns),
    {
      text: token.status,
      paint: (text) => terminal.paint(token.status === 'ok' ? 'green' : 'red', text),
    },
    token.expiresAt ? fromNow(token.expiresAt, now) : token.status === 'ok' ? 'never' : '-',
    shortScopes(token.scopes).join(' '),
  ]
}

/** The faults of one login that the user can fix, each with its command. */
const whatIsWrong = (
  { provider, status, scopes, missingScopes = [] }: TokenSummary,
  problems: Status['problems'],
): string[] => {
  if (status === 'needs-login') {
    const { detail, hint } = findLoginProblem(problems, provider) ?? {}
    return [
      ...(detail ? [toPlainLine(detail)] : []),
      `hint: ${toPlainLine(hint || `doorward oauth login ${provider}`)}`,
    ]
  }
  if (missingScopes.length === 0) return []
  return [
    `not granted at ${toPlainLine(provider)}: ${toPlainLine(shortScopes(missingScopes).join(', '))}`,
    `hint: ${toPlainLine(loginCommand(provider, [...scopes, ...missingScopes]))}`,
  ]
}

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
