import { z } from 'zod'
import type { Account, TokenSummary } from '../../../shared/api.ts'
import type { Grant } from '../login/exchange.ts'
import type { Attempt } from '../login/pending.ts'

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
})
export type TokenRecord = z.infer<typeof tokenRecordSchema>

/** The record of a grant that was obtained at this time (milliseconds since 1970). */
export const tokenRecordOf = (
  { provider, client, scopes }: Pick<Attempt, 'provider' | 'client' | 'scopes'>,
  grant: Grant,
  account: Account | null,
  obtainedAt: number,
): TokenRecord => ({
  version: 1,
  provider: provider.name,
  account,
  scopes: [...(grant.scopes ?? scopes)],
  tokenType: grant.tokenType,
  accessToken: grant.accessToken,
  ...(grant.refreshToken === undefined ? {} : { refreshToken: grant.refreshToken }),
  expiresAt:
    grant.expiresInSeconds === undefined
      ? null
      : new Date(obtainedAt + Math.min(grant.expiresInSeconds, tenYears) * 1000).toISOString(),
  obtainedAt: new Date(obtainedAt).toISOString(),
  clientId: client.clientId,
})

/** In seconds; a longer lifetime would not fit a date. */
const tenYears = 10 * 365 * 24 * 60 * 60

/** What others may know of a token record: never a value. `now` in milliseconds since 1970. */
export const summaryOf = (record: TokenRecord, now: number): TokenSummary => ({
  provider: record.provider,
  status: statusOf(record, now),
  account: record.account && { id: record.account.id, name: record.account.name },
  scopes: record.scopes,
  expiresAt: record.expiresAt,
  refreshable: record.refreshToken !== undefined,
  obtainedAt: record.obtainedAt,
})

const statusOf = (record: TokenRecord, now: number): TokenSummary['status'] => {
  if (record.expiresAt === null || Date.parse(record.expiresAt) > now) return 'ok'
  return record.refreshToken === undefined ? 'needs-login' : 'expired'
}
