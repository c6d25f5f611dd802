import { processRevocationResponse, revocationRequest } from 'oauth4webapi'
import { clientAuthentication } from '../provider/client-authentication.ts'
import { oauthErrorOf, providerError } from '../provider/provider-error.ts'
import { requestOptions } from '../provider/request-provider.ts'
import type { Dialect, Revocation, RevocationRequest } from './dialect.ts'

/**
 * Takes the tokens back at the revocation endpoint, the refresh token first, since with it goes what
 * was made from it. RFC 7009.
 */
export const revokeByStandard = async ({
  tokens,
  client,
  endpoints,
  signal,
}: RevocationRequest): Promise<Revocation> => {
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
    return notRevoked(error)
  }
  if (tokens.refreshToken === undefined) return { revokedAtProvider: true }
  try {
    await revoke(tokens.accessToken, 'access_token')
  } catch {
    // Most providers have ended it together with the refresh token and say that it is unknown.
  }
  return { revokedAtProvider: true }
}

/** What to say of a revocation that an error ended; one to try again where nobody answered. */
export const notRevoked = (error: unknown): Revocation => {
  const { code, message } = providerError(error, 'the provider did not revoke the tokens')
  return {
    revokedAtProvider: false,
    detail: message,
    ...(code === 'provider-unavailable' && { isWorthRetry: true }),
  }
}

/** OAuth as the RFCs have it. */
export const standard: Dialect = {
  normalise: (answer) => answer,
  revoke: revokeByStandard,
  endsAllLogins: false,
  impliedScopes: {},
}
