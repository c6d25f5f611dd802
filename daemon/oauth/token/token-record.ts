import { z } from 'zod'
import type { Account, TokenSummary } from '../../../shared/api.ts'
import type { Grant } from './grant.ts'
import { missingScopes } from './missing-scopes.ts'
import type { Client } from '../provider/client-file.ts'
import type { Provider } from '../provider/providers.ts'

/** One file in `tokens/`. Fields that a newer version wrote are kept. */
export const tokenRecordSchema = z.looseObject({
  version: z.literal(1),
  provider: z.string(),
  accessToken: z.string().min(1),
  tokenType: z.string().min(1),
  refreshToken: z.string().min(1).optional(),
  scopes: z.array(z.string()),
  expiresAt: z.iso.datetime().nullable(),
  obtainedAt: z.iso.datetime(),
  account: z.object({ id: z.string(), name: z.string() }).nullable(),
  /** The client the tokens belong to: only it can refresh or revoke them. */
  clientId: z.string().min(1),
  /** What the login asked for; the scopes are what it was given. */
  requestedScopes: z.array(z.string()).optional(),
  /** True where those were chosen for the login, in place of the provider's own. */
  scopesChosen: z.boolean().optional(),
  /** When the person logged in; `obtainedAt` is of the newest token. */
  loggedInAt: z.iso.datetime().optional(),
  /** When the refresh token ends, where the provider said so. */
  refreshExpiresAt: z.iso.datetime().optional(),
  /** Set once the provider has refused the refresh token: why, in words, and when. */
  ended: z.object({ at: z.iso.datetime(), cause: z.string() }).optional(),
  /** True once the provider was seen to end a new login together with the tokens of an older one. */
  endsTogether: z.boolean().optional(),
})
export type TokenRecord = z.infer<typeof tokenRecordSchema>

/** What a login asked for, and with which client. */
type Asked = {
  readonly provider: Pick<Provider, 'name'>
  readonly client: Client
  readonly scopes: readonly string[]
  readonly areScopesChosen: boolean
}

/** The record of a grant that was obtained at this time (milliseconds since 1970). */
export const tokenRecordOf = (
  { provider, client, scopes, areScopesChosen }: Asked,
  grant: Grant,
  account: Account | null,
  obtainedAt: number,
): TokenRecord => ({
  version: 1,
  provider: provider.name,
  account,
  scopes: [...(grant.scopes ?? scopes)],
  ...tokensOf(grant, obtainedAt),
  clientId: client.clientId,
  requestedScopes: [...scopes],
  ...(areScopesChosen && { scopesChosen: true }),
  loggedInAt: new Date(obtainedAt).toISOString(),
})

/**
 * A record after a refresh. What the answer does not name stays: most providers keep the refresh token
 * (RFC 6749 section 6), and the scopes unless they say otherwise.
 */
export const refreshedRecord = (
  record: TokenRecord,
  grant: Grant,
  obtainedAt: number,
): TokenRecord => {
  const { ended: _, ...kept } = record
  return {
    ...kept,
    ...tokensOf(grant, obtainedAt),
    ...(grant.scopes && { scopes: [...grant.scopes] }),
  }
}

const tokensOf = (grant: Grant, obtainedAt: number) => ({
  tokenType: grant.tokenType,
  accessToken: grant.accessToken,
  ...(grant.refreshToken !== undefined && { refreshToken: grant.refreshToken }),
  expiresAt: timeAfter(obtainedAt, grant.expiresInSeconds) ?? null,
  obtainedAt: new Date(obtainedAt).toISOString(),
  ...(grant.refreshExpiresInSeconds !== undefined && {
    refreshExpiresAt: timeAfter(obtainedAt, grant.refreshExpiresInSeconds),
  }),
})

const timeAfter = (start: number, seconds: number | undefined): string | undefined =>
  seconds === undefined
    ? undefined
    : new Date(start + Math.min(seconds, tenYears) * 1000).toISOString()

/** In seconds; a longer lifetime would not fit a date. */
const tenYears = 10 * 365 * 24 * 60 * 60

/**
 * What others may know of a token record: never a value. `now` in milliseconds since 1970; `implied` are
 * the scopes that the provider grants with others.
 */
export const summaryOf = (
  record: TokenRecord,
  now: number,
  implied: Readonly<Record<string, readonly string[]>> = {},
): TokenSummary => ({
  provider: record.provider,
  status: statusOf(record, now),
  account: record.account && { id: record.account.id, name: record.account.name },
  scopes: record.scopes,
  ...missingIn(record, implied),
  expiresAt: record.expiresAt,
  ...(record.refreshExpiresAt !== undefined && { loginExpiresAt: record.refreshExpiresAt }),
  refreshable: record.refreshToken !== undefined && !record.ended,
  obtainedAt: record.obtainedAt,
})

/** What the login asked for and was not given; nothing where nothing is missing. */
export const missingIn = (
  { requestedScopes, scopes, refreshToken }: TokenRecord,
  implied: Readonly<Record<string, readonly string[]>>,
): { readonly missingScopes?: string[] } => {
  const granted = { scopes, hasRefreshToken: refreshToken !== undefined }
  const missing = missingScopes(requestedScopes ?? [], granted, implied)
  return missing.length === 0 ? {} : { missingScopes: missing }
}

/** True once a login is over: nothing but a new one brings a token. */
export const isLoginOver = (record: TokenRecord, now: number): boolean =>
  statusOf(record, now) === 'needs-login'

const statusOf = (record: TokenRecord, now: number): TokenSummary['status'] => {
  if (record.ended) return 'needs-login'
  if (record.expiresAt === null || Date.parse(record.expiresAt) > now) return 'ok'
  return record.refreshToken === undefined ? 'needs-login' : 'expired'
}
