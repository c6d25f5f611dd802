import type { Gateway } from '../../../shared/config/schema.ts'
import { dialectOf } from '../dialect/dialects.ts'
import { type Provider, findProvider } from '../provider/providers.ts'
import type { TokenRecord } from '../token/token-record.ts'
import type { PendingRevocation } from './pending-revocation.ts'
import { type RevokeGrant, notAsked } from './revoke-grant.ts'
import { whatToRevoke } from './what-to-revoke.ts'

/**
 * What came of one try: done; nothing left that may be revoked; to be tried again; refused for good.
 * The detail is safe to show.
 */
export type Tried =
  | { readonly kind: 'revoked' | 'spared' }
  | { readonly kind: 'failed' | 'refused'; readonly detail: string }

export type TryRevocation = (
  pending: PendingRevocation,
  /** The login of this provider that goes on, and must not be harmed. */
  current: TokenRecord | undefined,
  signal: AbortSignal,
) => Promise<Tried>

/** Tries one pending revocation once. Never throws. */
export const createTryRevocation =
  (gateway: Gateway, revokeGrant: RevokeGrant): TryRevocation =>
  async (pending, current, signal) => {
    let provider: Provider
    try {
      provider = findProvider(pending.provider, gateway)
    } catch (error) {
      // gateway.yaml may name it again tomorrow.
      return { kind: 'failed', detail: notAsked(error).detail ?? '' }
    }
    const what = whatToRevoke(pending, current, dialectOf(provider))
    if (!what) return { kind: 'spared' }
    const { revokedAtProvider, isWorthRetry, detail } = await revokeGrant(
      provider,
      pending.client,
      what,
      signal,
    )
    if (revokedAtProvider) return { kind: 'revoked' }
    return {
      kind: isWorthRetry ? 'failed' : 'refused',
      detail: detail ?? 'the provider did not say why',
    }
  }
