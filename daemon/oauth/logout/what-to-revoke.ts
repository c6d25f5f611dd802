import type { GrantTokens, RevocationRequest } from '../dialect/dialect.ts'
import type { TokenRecord } from '../token/token-record.ts'
import type { PendingRevocation } from './pending-revocation.ts'
import { compareAccounts } from './same-account.ts'

type Old = Pick<PendingRevocation, 'tokens' | 'client' | 'account' | 'extent'>

/** What may be revoked, and how far. */
export type WhatToRevoke = {
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
