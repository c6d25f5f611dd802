import type { Status, TokenSummary } from '../shared/api.ts'
import { problemOfLogin } from '../shared/client/discovery.ts'
import { plainLine } from '../shared/text.ts'
import type { Context } from './context.ts'
import { withDaemon } from './reach-daemon.ts'
import { loginCommand, shortScopes } from './show-scopes.ts'
import { fromNow } from './show-time.ts'
import { type Cell, cut, narrowed, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

/** On a terminal; a longer name would leave no room for the rest. */
const nameColumns = 32

/** Prints the authorized providers, and what keeps each from all that was asked for; never a token. */
export const listTokens = async (context: Context): Promise<void> => {
  const { terminal } = context
  const { tokens, problems } = await withDaemon(context, async (client) => {
    const answer = await client.get<{ tokens: TokenSummary[] }>('/oauth/tokens')
    const isOver = answer.tokens.some(({ status }) => status === 'needs-login')
    // Why a login is over stands there; the list is of use without it.
    const status =
      isOver && !terminal.json
        ? await client.get<Status>('/status').catch(() => undefined)
        : undefined
    return { ...answer, problems: status?.problems ?? [] }
  })
  if (terminal.json) {
    terminal.printJson({ tokens })
    return
  }
  if (tokens.length === 0) {
    terminal.say('not logged in anywhere\nhint: doorward oauth login github, or google, slack')
    return
  }
  const now = new Date()
  const header = ['PROVIDER', 'ACCOUNT', 'STATUS', 'EXPIRES', 'SCOPES']
  const rows = tokens.map((token) => rowOf(token, now, terminal))
  // The account makes room for the scopes, and then the time.
  const shown = narrowed([header, ...rows], terminal.columns, [1, 3], 8)
  for (const line of tableLines(shown.rows, terminal.columns)) terminal.print(line)
  for (const token of tokens) {
    for (const line of whatIsWrong(token, problems)) terminal.say(line)
  }
}

const rowOf = (token: TokenSummary, now: Date, terminal: Terminal): Cell[] => {
  const name = plainLine(token.account?.name ?? '-')
  return [
    token.provider,
    terminal.columns === undefined ? name : cut(name, nameColumns),
    {
      text: token.status,
      paint: (text) => terminal.paint(token.status === 'ok' ? 'green' : 'red', text),
    },
    token.expiresAt ? fromNow(token.expiresAt, now) : token.status === 'ok' ? 'never' : '-',
    shortScopes(token.scopes).join(' '),
  ]
}

/** What a person can mend about one login, each with its command. */
const whatIsWrong = (
  { provider, status, scopes, missingScopes = [] }: TokenSummary,
  problems: Status['problems'],
): string[] => {
  if (status === 'needs-login') {
    const { detail, hint } = problemOfLogin(problems, provider) ?? {}
    return [
      ...(detail ? [plainLine(detail)] : []),
      `hint: ${plainLine(hint || `doorward oauth login ${provider}`)}`,
    ]
  }
  if (missingScopes.length === 0) return []
  return [
    `not granted at ${plainLine(provider)}: ${plainLine(shortScopes(missingScopes).join(', '))}`,
    `hint: ${plainLine(loginCommand(provider, [...scopes, ...missingScopes]))}`,
  ]
}
