import type { TokenSummary } from '../shared/api.ts'
import { twoDigits } from '../shared/text.ts'

type Expiring = Pick<TokenSummary, 'status' | 'expiresAt' | 'refreshable' | 'loginExpiresAt'>

/**
 * How long a login is good for, in words: `token good for 41 min; login lasts until 12 Dec`. The token is
 * what programs get now, the login what renews it.
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

/** `14:05` on the same day, `12 Dec`, and with the year where that is another. */
const day = (iso: string, now: Date): string => {
  const date = new Date(iso)
  if (date.toDateString() === now.toDateString())
    return [date.getHours(), date.getMinutes()].map(twoDigits).join(':')
  const text = `${date.getDate()} ${months[date.getMonth()]}`
  return date.getFullYear() === now.getFullYear() ? text : `${text} ${date.getFullYear()}`
}
