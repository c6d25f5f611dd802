import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Revocation } from '../dialect/dialect.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { Client } from '../provider/client-file.ts'
import type { Discover } from '../provider/discovery.ts'
import { type Provider, findProvider } from '../provider/providers.ts'
import type { WhatToRevoke } from './what-to-revoke.ts'

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
      return await dialectOf(provider).revoke({
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
  const page = permissionsPageOf(provider, gateway)
  return page ? `at ${page}` : 'in your account settings there'
}

const permissionsPageOf = (provider: string, gateway: Gateway): string | undefined => {
  try {
    return findProvider(provider, gateway).permissionsPage
  } catch {
    // No longer in gateway.yaml.
    return undefined
  }
}
