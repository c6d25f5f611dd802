import type { Account } from '../../../shared/api/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import type { Revocation } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Client } from '../providers/client-store.ts'
import type { Discover } from '../providers/discovery.ts'
import { describeServer, findServerError } from '../providers/login-server.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import type { PendingRevocation } from './revocation-store.ts'

/** A caller may be waiting for the logout; a slow provider is asked again in the background. */
const limitMs = 10_000

/**
 * Revokes tokens in the provider's dialect, within 10 s, and as far as these other logins of the provider
 * allow: see `getEndedBy`. Never throws.
 */
export const revoke = async (
  discover: Discover,
  provider: Provider,
  pending: PendingRevocation,
  others: readonly TokenRecord[],
  signal: AbortSignal,
): Promise<Revocation> => {
  const { tokens, client } = pending
  const extent = getExtentBeside(pending, others)
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
  { provider, accessToken, refreshToken, account, server }: TokenRecord,
  client: Client,
  extent: PendingRevocation['extent'],
): PendingRevocation => ({
  version: 1,
  provider,
  tokens: { accessToken, refreshToken },
  client,
  server,
  account,
  extent,
  since: new Date().toISOString(),
})

/**
 * The logins that the revocation would end too: they have the same token, or the provider ends all logins of
 * account and client. Nothing may be revoked then.
 */
export const getEndedBy = (
  pending: PendingRevocation,
  others: readonly TokenRecord[],
  { endsAllLogins }: { readonly endsAllLogins: boolean },
): TokenRecord[] =>
  others.filter(
    (other) =>
      isSameGrant(pending, other) ||
      (endsAllLogins &&
        pending.client.clientId === other.clientId &&
        !isOtherAccount(pending.account, other.account)),
  )

/** Only its tokens, and not the whole grant, while another login may be of the same account. */
export const getExtentBeside = (
  { account, extent }: PendingRevocation,
  others: readonly TokenRecord[],
): PendingRevocation['extent'] =>
  others.every((other) => isOtherAccount(account, other.account)) ? extent : 'tokens'

export const isSameGrant = (
  { tokens: { accessToken, refreshToken } }: PendingRevocation,
  login: TokenRecord,
): boolean =>
  accessToken === login.accessToken ||
  (refreshToken !== undefined && refreshToken === login.refreshToken)

/**
 * True for accounts that are certainly not the same one. By id and name: the id may be a number in one login
 * and an address in the other.
 */
export const isOtherAccount = (one: Account | null, other: Account | null): boolean =>
  one !== null &&
  other !== null &&
  one.id !== other.id &&
  one.name.toLowerCase() !== other.name.toLowerCase()

/** Where a person can revoke the access, as the end of a sentence. */
export const describeManualWay = (
  login: Pick<TokenRecord, 'provider' | 'server'>,
  gateway: Gateway,
): string => {
  const there = login.server ? `at ${describeServer(login.server)}` : 'there'
  const elsewhere = `in your account settings ${there}`
  if (findServerError(login, gateway)) return elsewhere
  try {
    const { permissionsPage } = findProvider(login.provider, gateway)
    return permissionsPage ? `at ${permissionsPage}` : 'in your account settings there'
  } catch {
    // No longer in gateway.yaml.
    return elsewhere
  }
}
