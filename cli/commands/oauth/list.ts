import type { Status, TokenSummary } from '../../../shared/api.ts'
import { findLoginProblem } from '../../../shared/client/discovery.ts'
import { toPlainLine, twoDigits } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { fromNow, shellWord } from '../../terminal/format.ts'
import { type Cell, cut, narrowed, tableLines } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'

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

/** What the user can fix about one login, each with its command. */
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

type Expiring = Pick<TokenSummary, 'status' | 'expiresAt' | 'refreshable' | 'loginExpiresAt'>

/**
 * How long a login is valid, in words: `token good for 41 min; login lasts until 12 Dec`. Programs get the
 * token; the login renews it.
 */
export const expiryWords = (token: Expiring, now: Date): string => {
  const { status, expiresAt, refreshable, loginExpiresAt } = token
  if (status === 'needs-login') return 'a new login is needed'
  const left = expiresAt === null ? undefined : Date.parse(expiresAt) - now.getTime()
  if (left === undefined) return 'token does not expire; login lasts until you log out'
  const ofToken =
    left > 0 ? `token good for ${roughly(left)}` : `token expired ${roughly(-left)} ago`
  if (!refreshable) return `${ofToken}, and nothing renews it`
  const until = loginExpiresAt === undefined ? 'you log out' : day(loginExpiresAt, now)
  return `${ofToken}; login lasts until ${until}`
}

/** A duration in its largest unit: `41 min`, `3 h`, `12 days`. */
export const roughly = (ms: number): string => {
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 1) return 'less than a minute'
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.floor(hours / 24)} days`
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** `14:05` today, `12 Dec` this year, else with the year. */
const day = (iso: string, now: Date): string => {
  const date = new Date(iso)
  if (date.toDateString() === now.toDateString())
    return [date.getHours(), date.getMinutes()].map(twoDigits).join(':')
  const text = `${date.getDate()} ${months[date.getMonth()]}`
  return date.getFullYear() === now.getFullYear() ? text : `${text} ${date.getFullYear()}`
}

// https://developers.google.com/identity/protocols/oauth2/scopes
const googlePrefix = 'https://www.googleapis.com/auth/'

/** Scopes without the prefix that nearly all of Google's share. */
export const shortScopes = (scopes: readonly string[]): string[] =>
  scopes.map((scope) =>
    scope.startsWith(googlePrefix) && scope !== googlePrefix
      ? scope.slice(googlePrefix.length)
      : scope,
  )

/** The command that requests these scopes. */
export const loginCommand = (provider: string, scopes: readonly string[]): string =>
  `doorward oauth login ${shellWord(provider)} --scopes ${shellWord([...new Set(scopes)].join(','))}`
