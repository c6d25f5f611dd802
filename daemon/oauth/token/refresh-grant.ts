import {
  ResponseBodyError,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { dialectOf } from '../dialect/dialects.ts'
import { clientAuthentication } from '../provider/client-authentication.ts'
import type { Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'
import { oauthErrorOf, providerError } from '../provider/provider-error.ts'
import type { Provider } from '../provider/providers.ts'
import { requestOptions } from '../provider/request-provider.ts'
import { type Grant, grantOf } from './grant.ts'
import { standardAnswer } from './read-answer.ts'

/** What a refresh came to: new tokens, or the provider's word that the refresh token is none any more. */
export type Refreshed =
  | { readonly kind: 'grant'; readonly grant: Grant }
  /** `providerTime` is the provider's clock, in milliseconds since 1970, where it told. */
  | { readonly kind: 'ended'; readonly providerTime: number | undefined }

/**
 * Exchanges a refresh token for new tokens. RFC 6749 section 6; only `invalid_grant` (section 5.2) means
 * that it is dead. Throws `provider-refused` or `provider-unavailable`; neither holds anything of the
 * provider's answer.
 */
export const refreshGrant = async (
  refreshToken: string,
  provider: Provider,
  client: Client,
  endpoints: Endpoints,
  signal: AbortSignal,
): Promise<Refreshed> => {
  const { server } = endpoints
  const wireClient = { client_id: client.clientId }
  try {
    const response = await refreshTokenGrantRequest(
      server,
      wireClient,
      clientAuthentication(client, endpoints),
      refreshToken,
      requestOptions(server.token_endpoint, signal),
    )
    // Of an id token here nothing is wanted: one that a wrong clock makes look old must not cost the
    // new refresh token beside it.
    const answer = await standardAnswer(response, dialectOf(provider), { isIssuerKnown: false })
    return {
      kind: 'grant',
      grant: grantOf(await processRefreshTokenResponse(server, wireClient, answer)),
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    if (oauthErrorOf(error) === 'invalid_grant')
      return { kind: 'ended', providerTime: timeIn(error) }
    const { host } = new URL(server.token_endpoint)
    throw providerError(error, `the token could not be renewed at ${host}`, { provider, client })
  }
}

const timeIn = (error: unknown): number | undefined => {
  const date = error instanceof ResponseBodyError ? error.response.headers.get('date') : null
  const time = date === null ? Number.NaN : Date.parse(date)
  return Number.isNaN(time) ? undefined : time
}
