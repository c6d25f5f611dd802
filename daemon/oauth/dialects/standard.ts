import { processRevocationResponse, revocationRequest } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { clientAuthentication } from '../providers/client-proof.ts'
import { getOAuthError } from '../providers/errors.ts'
import { askProvider, refusedBy } from '../providers/request.ts'
import {
  type Dialect,
  errorAnswer,
  notEnded,
  type Revocation,
  combineRevocation,
  type RevocationRequest,
  type TokenEnd,
  type TokenKind,
  tokensByKind,
} from './dialect.ts'
import { tokenRequestOptions } from './token-endpoint.ts'

/** Revokes the tokens one by one at the revocation endpoint. RFC 7009. */
const revokeByStandard = async (request: RevocationRequest): Promise<Revocation> => {
  const endpoint = request.endpoints.server.revocation_endpoint
  if (!endpoint)
    return { revokedAtProvider: false, detail: 'the provider has no standard way to revoke' }
  if (request.endpoints.quirks?.revocation === 'bearer') return revokeAsBearer(request, endpoint)
  const ends: [TokenKind, TokenEnd][] = []
  for (const [kind, token] of tokensByKind(request.tokens)) {
    const before = ends[0]?.[1]
    // Do not wait twice for a provider that cannot be reached.
    if (isUnavailable(before)) ends.push([kind, before])
    else ends.push([kind, endAfter(before, await revokeOne(request, kind, token))])
  }
  return combineRevocation(ends)
}

const revokeOne = async (
  { client, endpoints, signal }: RevocationRequest,
  kind: TokenKind,
  token: string,
): Promise<TokenEnd> => {
  try {
    const { server } = endpoints
    const response = await revocationRequest(
      server,
      { client_id: client.clientId },
      clientAuthentication(client, endpoints, 'revocation'),
      token,
      {
        ...tokenRequestOptions(server.revocation_endpoint ?? '', endpoints, signal),
        // The hint may be left out, and a server with a body of its own may not know it.
        ...(endpoints.quirks?.requestBody === undefined && {
          additionalParameters: { token_type_hint: kind.replace(' ', '_') },
        }),
      },
    )
    await processRevocationResponse(response)
    return 'revoked'
  } catch (error) {
    // RFC 7009 has 200 for an unknown token, but Google and others answer with this error.
    return getOAuthError(error) === 'invalid_token'
      ? 'ended'
      : notEnded(error, [token, client.clientSecret])
  }
}

/** Revokes the access token by a request that carries it, and with it the refresh token. */
const revokeAsBearer = async (
  { tokens, signal }: RevocationRequest,
  endpoint: string,
): Promise<Revocation> => {
  const end = await askAsBearer(endpoint, tokens.accessToken, signal)
  return combineRevocation(tokensByKind(tokens).map(([kind]) => [kind, end]))
}

const askAsBearer = async (
  endpoint: string,
  token: string,
  signal: AbortSignal,
): Promise<TokenEnd> => {
  try {
    const headers = { authorization: `Bearer ${token}` }
    const reply = await askProvider(endpoint, { method: 'POST', headers }, signal)
    return reply.status === 200 ? 'revoked' : refusedBy(endpoint, reply, undefined, [token])
  } catch (error) {
    return notEnded(error, [token])
  }
}

/**
 * Once the refresh token is revoked, a refusal for the access token does not matter: the server has ended it
 * with the refresh token, or never revokes access tokens (RFC 7009 sections 2.1 and 2.2.1).
 */
const endAfter = (before: TokenEnd | undefined, end: TokenEnd): TokenEnd =>
  (before === 'revoked' || before === 'ended') &&
  end instanceof DoorwardError &&
  !isUnavailable(end)
    ? 'left'
    : end

const isUnavailable = (end: TokenEnd | undefined): end is DoorwardError =>
  end instanceof DoorwardError && end.code === 'provider-unavailable'

/** An error may come with HTTP 200, from servers that imitate GitHub. */
const normalise: Dialect['normalise'] = (answer) => {
  const { status, body } = answer
  const isError = typeof body['error'] === 'string' && body['access_token'] === undefined
  return status === 200 && isError ? errorAnswer(answer, {}) : answer
}

/** OAuth by the RFCs. */
export const standard: Dialect = {
  normalise,
  revoke: revokeByStandard,
  endsAllLogins: false,
  impliedScopes: {},
}
