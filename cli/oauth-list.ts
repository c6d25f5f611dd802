import type { TokenSummary } from '../shared/api.ts'
import type { Context } from './context.ts'
import { withDaemon } from './reach-daemon.ts'
import { fromNow } from './show-time.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Prints the authorized providers; never a token. */
export const listTokens = async (context: Context): Promise<void> => {
  const { terminal } = context
  const answer = await withDaemon(context, (client) =>
    client.get<{ tokens: TokenSummary[] }>('/oauth/tokens'),
  )
  if (terminal.json) {
    terminal.printJson(answer)
    return
  }
  if (answer.tokens.length === 0) {
    terminal.say('not logged in anywhere\nhint: doorward oauth login google|github|slack')
    return
  }
  const now = new Date()
  const header = ['PROVIDER', 'ACCOUNT', 'STATUS', 'EXPIRES', 'SCOPES']
  const rows = answer.tokens.map((token) => rowOf(token, now, terminal))
  for (const line of tableLines([header, ...rows], terminal.columns)) terminal.print(line)
  for (const { provider, status } of answer.tokens)
    if (status === 'needs-login') terminal.say(`hint: doorward oauth login ${provider}`)
}

const rowOf = (token: TokenSummary, now: Date, terminal: Terminal): Cell[] => [
  token.provider,
  token.account?.name ?? '-',
  {
    text: token.status,
    paint: (text) => terminal.paint(token.status === 'ok' ? 'green' : 'red', text),
  },
  token.expiresAt ? fromNow(token.expiresAt, now) : 'never',
  token.scopes.join(' '),
]
