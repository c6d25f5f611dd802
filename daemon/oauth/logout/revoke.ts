import { processRevocationResponse, revocationRequest } from 'oauth4webapi'
import { type Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'
import { clientAuthentication } from '../login/exchange.ts'
import { oauthErrorOf, providerError } from '../provider/provider-error.ts'
import { requestOptions } from '../provider/request-provider.ts'

export type Revocation = { readonly revokedAtProvider: boolean; readonly detail?: string }

/**
 * Takes the tokens back at the provider, the refresh token first, since with it goes what was made from
 * it. RFC 7009. Never throws: a logout goes on, and says honestly what the provider confirmed.
 */
export const revokeTokens = async (
  tokens: { readonly accessToken: string; readonly refreshToken?: string | undefined },
  client: Client,
  endpoints: Endpoints,
  signal: AbortSignal,
): Promise<Revocation> => {
  const endpoint = endpoints.server.revocation_endpoint
  if (!endpoint)
    return { revokedAtProvider: false, detail: 'the provider has no standard way to revoke' }
  const revoke = async (token: string, kind: 'refresh_token' | 'access_token') => {
    const response = await revocationRequest(
      endpoints.server,
      { client_id: client.clientId },
      clientAuthentication(client, endpoints),
      token,
      { ...requestOptions(endpoint, signal), additionalParameters: { token_type_hint: kind } },
    )
    await processRevocationResponse(response)
  }
  try {
    if (tokens.refreshToken !== undefined) await revoke(tokens.refreshToken, 'refresh_token')
    else await revoke(tokens.accessToken, 'access_token')
  } catch (error) {
    if (oauthErrorOf(error) === 'invalid_token')
      return { revokedAtProvider: true, detail: 'the provider had ended it before' }
    return {
      revokedAtProvider: false,
      detail: providerError(error, 'the provider did not revoke the tokens').message,
    }
  }
  if (tokens.refreshToken === undefined) return { revokedAtProvider: true }
  try {
    await revoke(tokens.accessToken, 'access_token')
  } catch {
    // Most providers have ended it together with the refresh token and say that it is unknown.
  }
  return { revokedAtProvider: true }
}
