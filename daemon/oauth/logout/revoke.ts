import type { Account } from '../../../shared/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import type { Revocation, RevocationRequest } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Client } from '../providers/client-store.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import type { PendingRevocation } from './revocation-store.ts'

/** A caller may be waiting for the logout; a slow provider is asked again in the background. */
const limitMs = 10_000

/** Revokes tokens in the provider's dialect, within 10 s. Never throws. */
export const revoke = async (
  discover: Discover,
  provider: Provider,
  { tokens, client, extent }: Pick<RevocationRequest, 'tokens' | 'client' | 'extent'>,
  signal: AbortSignal,
): Promise<Revocation> => {
  try {
    return await withTimeLimit(limitMs, signal, async (limited) => {
      const endpoints = await discover(provider, limited)
      const { apiUrl } = provider
      const request = { tokens, client, endpoints, apiUrl, extent, signal: limited }
      return getDialect(provider).revoke(request)
    })
  } catch (error) {
    return notAsked(error)
  }
}

/** The result where the provider could not even be asked. */
export const notAsked = (error: unknown): Revocation => ({
  revokedAtProvider: false,
  detail: error instanceof DoorwardError ? error.message : 'the provider was not asked',
  ...(error instanceof DoorwardError &&
    error.code === 'provider-unavailable' && { isWorthRetry: true }),
})

/** The tokens of a record as they are kept until the provider has revoked them. */
export const toPendingRevocation = (
  { provider, accessToken, refreshToken, account }: TokenRecord,
  client: Client,
  extent: PendingRevocation['extent'],
): PendingRevocation => ({
  version: 1,
  provider,
  tokens: { accessToken, refreshToken },
  client,
  account,
  extent,
  since: new Date().toISOString(),
})

/**
 * How much of an earlier login may be revoked while a newer one exists. Undefined where revoking it would
 * end the newer one too: both have the same token, or the provider ends all logins of account and client.
 */
export const getAllowedExtent = (
  { tokens, client, account, extent }: PendingRevocation,
  current: TokenRecord | undefined,
  { endsAllLogins }: { readonly endsAllLogins: boolean },
): PendingRevocation['extent'] | undefined => {
  if (!current) return extent
  if (isSameGrant(tokens, current)) return undefined
  if (isOtherAccount(account, current.account)) return extent
  return endsAllLogins && client.clientId === current.clientId ? undefined : 'tokens'
}

/** The same beside several logins: those of all accounts of the provider. */
export const getExtentBeside = (
  pending: PendingRevocation,
  logins: readonly TokenRecord[],
  dialect: { readonly endsAllLogins: boolean },
): PendingRevocation['extent'] | undefined => {
  const extents = logins.map((login) => getAllowedExtent(pending, login, dialect))
  if (extents.includes(undefined)) return undefined
  return extents.includes('tokens') ? 'tokens' : pending.extent
}

/** True when a logout stored these tokens for revocation and was killed before it removed the token file. */
export const isUnfinishedLogout = (
  { tokens, extent, since }: PendingRevocation,
  current: TokenRecord,
): boolean =>
  extent === 'grant' &&
  Date.parse(current.obtainedAt) <= Date.parse(since) &&
  isSameGrant(tokens, current)

const isSameGrant = (
  { accessToken, refreshToken }: PendingRevocation['tokens'],
  current: TokenRecord,
): boolean =>
  accessToken === current.accessToken ||
  (refreshToken !== undefined && refreshToken === current.refreshToken)

/**
 * True for accounts that are certainly not the same one. By id and name: the id may be a number in one login
 * and an address in the other.
 */
export const isOtherAccount = (one: Account | null, other: Account | null): boolean =>
  one !== null &&
  other !== null &&
  one.id !== other.id &&
  one.name.toLowerCase() !== other.name.toLowerCase()

/** Where a person can revoke the access without doorward, as the end of a sentence. */
export const describeManualWay = (provider: string, gateway: Gateway): string => {
  try {
    const { permissionsPage } = findProvider(provider, gateway)
    if (permissionsPage) return `at ${permissionsPage}`
  } catch {
    // No longer in gateway.yaml.
  }
  return 'in your account settings there'
}
