import type { TokenSummary } from './api/api.ts'
import { quoteForShell } from './home/home.ts'
import { twoDigits } from './text.ts'

/*
 * How logins are described, by the command line and by the checks of the daemon.
 */

type Expiring = Pick<
  TokenSummary,
  'status' | 'expiresAt' | 'isBot' | 'refreshable' | 'loginExpiresAt'
>

/**
 * How long a login is valid, in words: `token good for 41 min; login lasts until 12 Dec`. Programs get the
 * token; the login renews it.
 */
export const expiryWords = (token: Expiring, now: Date): string => {
  const { status, expiresAt, refreshable, loginExpiresAt } = token
  if (status === 'needs-login') return 'a new login is needed'
  if (token.isBot) return 'a bot: each token is for one repository, and good for an hour'
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
  `doorward oauth login ${quoteForShell(provider)} --scopes ${quoteForShell([...new Set(scopes)].join(','))}`
