import type { OAuthDependencies } from '../dependencies.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { PendingRevocation } from '../logout/pending-revocation.ts'
import { isDead, whatToRevoke } from '../logout/what-to-revoke.ts'
import { findClient } from '../provider/client-file.ts'
import { type Provider } from '../provider/providers.ts'
import { readToken } from '../token/token-file.ts'
import type { TokenRecord } from '../token/token-record.ts'

/** The login that a new one takes the place of, or undefined when there is none that can be read. */
export const readReplaced = async (
  { home }: Pick<OAuthDependencies, 'home'>,
  provider: string,
): Promise<TokenRecord | undefined> => {
  try {
    return await readToken(home, provider)
  } catch (error) {
    // It is about to be replaced, whatever it is.
    if (error instanceof DoorwardError) return undefined
    throw error
  }
}

/**
 * The revocation of a login that is replaced by this one, or undefined where nothing may or need be
 * revoked. Must be made before the new login's client takes the place of the old one's.
 */
export const revocationOfReplaced = async (
  { home, env }: Pick<OAuthDependencies, 'home' | 'env'>,
  provider: Provider,
  replaced: TokenRecord | undefined,
  record: TokenRecord,
  now: number,
): Promise<PendingRevocation | undefined> => {
  if (!replaced || isDead(replaced, now)) return undefined
  const { accessToken, refreshToken, account, clientId } = replaced
  const client = await findClient(home, provider, env, { clientId })
  const old: PendingRevocation = {
    version: 1,
    provider: provider.name,
    tokens: { accessToken, refreshToken },
    client,
    account,
    extent: 'tokens',
    since: new Date(now).toISOString(),
    attempts: 0,
  }
  return whatToRevoke(old, record, dialectOf(provider)) ? old : undefined
}
