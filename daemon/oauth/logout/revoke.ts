import type { Account } from '../../../shared/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { GrantTokens, Revocation, RevocationRequest } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Client } from '../providers/client-store.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import type { PendingRevocation } from './revocation-store.ts'

/** Asks a provider to take tokens back. Never throws. */
export type RevokeGrant = (
  provider: Provider,
  client: Client,
  what: WhatToRevoke,
  signal: AbortSignal,
) => Promise<Revocation>

/** Revokes in the provider's dialect, at the endpoints it has now. */
export const createRevokeGrant =
  (discover: Discover): RevokeGrant =>
  async (provider, client, { tokens, extent }, signal) => {
    try {
      const endpoints = await discover(provider, signal)
      const { apiUrl } = provider
      return await getDialect(provider).revoke({
        tokens,
        client,
        endpoints,
        apiUrl,
        extent,
        signal,
      })
    } catch (error) {
      return notAsked(error)
    }
  }

/** What to say when the provider could not even be asked; worth another try where nobody answered. */
export const notAsked = (error: unknown): Revocation => ({
  revokedAtProvider: false,
  detail: error instanceof DoorwardError ? error.message : 'the provider was not asked',
  ...(error instanceof DoorwardError &&
    error.code === 'provider-unavailable' && { isWorthRetry: true }),
})

/** Where a person takes a permission back without us, as the end of a sentence. */
export const byHand = (provider: string, gateway: Gateway): string => {
  const page = findPermissionsPage(provider, gateway)
  return page ? `at ${page}` : 'in your account settings there'
}

const findPermissionsPage = (provider: string, gateway: Gateway): string | undefined => {
  try {
    return findProvider(provider, gateway).permissionsPage
  } catch {
    // No longer in gateway.yaml.
    return undefined
  }
}

type Old = Pick<PendingRevocation, 'tokens' | 'client' | 'account' | 'extent'>

/** What may be revoked, and how far. */
type WhatToRevoke = {
  readonly tokens: GrantTokens
  readonly extent: RevocationRequest['extent']
}

/**
 * What of an old grant may be revoked while this login of the same provider goes on, or undefined when
 * nothing may. A token that both have is left alone (Slack may give the same one again); so is all of
 * the old one where the provider would end the new login with it.
 */
export const whatToRevoke = (
  old: Old,
  current: TokenRecord | undefined,
  { endsAllLogins }: { readonly endsAllLogins: boolean },
): WhatToRevoke | undefined => {
  const { tokens } = old
  if (!current) return { tokens, extent: old.extent }
  const isOther = compareAccounts(old.account, current.account) === 'other'
  const isSameClient = old.client.clientId === current.clientId
  const endsTogether = endsAllLogins || current.endsTogether === true
  if (endsTogether && isSameClient && !isOther) return undefined
  if (tokens.accessToken === current.accessToken) return undefined
  const sharesRefresh =
    tokens.refreshToken !== undefined && tokens.refreshToken === current.refreshToken
  return {
    tokens: sharesRefresh ? { accessToken: tokens.accessToken } : tokens,
    extent: isOther && !sharesRefresh ? old.extent : 'tokens',
  }
}

/** True for a record of which no token works any more, as far as it says so itself. */
export const isDead = ({ ended, expiresAt }: TokenRecord, now: number): boolean =>
  ended !== undefined && expiresAt !== null && Date.parse(expiresAt) <= now

/** True when a logout began with these tokens and was cut short before the file was removed. */
export const isCutShort = (old: PendingRevocation, current: TokenRecord): boolean =>
  old.extent === 'grant' &&
  Date.parse(current.obtainedAt) <= Date.parse(old.since) &&
  (old.tokens.accessToken === current.accessToken ||
    (old.tokens.refreshToken !== undefined && old.tokens.refreshToken === current.refreshToken))

/**
 * Whether two accounts are one person's: by id, or by name where the ids are of different kinds, as
 * when one login was identified by a number and the other by an address.
 */
export const compareAccounts = (
  one: Account | null,
  other: Account | null,
): 'same' | 'other' | 'unknown' => {
  if (!one || !other) return 'unknown'
  if (one.id === other.id) return 'same'
  if (classify(one.id) === classify(other.id)) return 'other'
  if (one.name.toLowerCase() === other.name.toLowerCase()) return 'same'
  return classify(one.name) === classify(other.name) ? 'other' : 'unknown'
}

const classify = (text: string): 'number' | 'address' | 'word' => {
  if (/^\d+$/.test(text)) return 'number'
  return text.includes('@') ? 'address' : 'word'
}
