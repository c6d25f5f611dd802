import type { Provider } from '../provider/providers.ts'
import type { TokenRecord } from './token-record.ts'

/** What is known when a provider says that a refresh token is dead; times in milliseconds since 1970. */
export type End = {
  readonly now: number
  /** The provider's clock, where it told. */
  readonly providerTime: number | undefined
  /** When the same token was sent before without an answer that could be saved (ISO 8601). */
  readonly sentBefore: string | undefined
}

const day = 24 * 60 * 60 * 1000
const noticeableSkewMs = 5 * 60 * 1000

/**
 * Why a login has most likely ended, in words that end a sentence. The providers say `invalid_grant` for
 * all of it; what they document, and what the record tells, narrows it down.
 */
export const endCause = (
  { title, dialect }: Pick<Provider, 'title' | 'dialect'>,
  record: Pick<TokenRecord, 'loggedInAt' | 'obtainedAt' | 'refreshExpiresAt'>,
  { now, providerTime, sentBefore }: End,
): string => {
  if (sentBefore !== undefined)
    return `no token came of the renewal at ${sentBefore}, and ${title} counts its refresh token as used`
  if (record.refreshExpiresAt !== undefined && Date.parse(record.refreshExpiresAt) <= now)
    return `the refresh token was good until ${record.refreshExpiresAt.slice(0, 10)}`
  const age = now - Date.parse(record.loggedInAt ?? record.obtainedAt)
  if (dialect === 'google' && age >= 6.9 * day && age <= 8 * day)
    return 'Google ends a login after 7 days while the consent screen of its app is in testing: publish the app'
  if (providerTime !== undefined && Math.abs(providerTime - now) > noticeableSkewMs)
    return `the clock of this machine is ${minutes(Math.abs(providerTime - now))} ${providerTime > now ? 'behind' : 'ahead of'} that of ${title}: set it`
  return documented[dialect](title, age)
}

const minutes = (ms: number): string => `${Math.round(ms / 60_000)} minutes`

const documented: Readonly<Record<Provider['dialect'], (title: string, ageMs: number) => string>> =
  {
    standard: (title) => `the access was revoked at ${title}, or the refresh token has expired`,
    // https://developers.google.com/identity/protocols/oauth2#expiration
    google: (_, ageMs) =>
      `the access was revoked at Google, the password was changed, ${ageMs > 180 * day ? 'it was not used for six months, ' : ''}or more than 100 logins were made with the same client`,
    // https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens
    github: () =>
      'the access was revoked at GitHub, the refresh token was not used for six months, or another program used it',
    // https://docs.slack.dev/authentication/using-token-rotation
    slack: () =>
      'the access was revoked at Slack, the refresh token was not used for 30 days, or another program used it',
  }
