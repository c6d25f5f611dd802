import { processRevocationResponse, revocationRequest } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { clientAuthentication } from '../providers/client-store.ts'
import { getOAuthError } from '../providers/errors.ts'
import { requestOptions } from '../providers/request.ts'
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

/** Takes the tokens back at the revocation endpoint, one by one. RFC 7009. */
const revokeByStandard = async (request: RevocationRequest): Promise<Revocation> => {
  if (!request.endpoints.server.revocation_endpoint)
    return { revokedAtProvider: false, detail: 'the provider has no standard way to revoke' }
  const ends: [TokenKind, TokenEnd][] = []
  for (const [kind, token] of tokensByKind(request.tokens)) {
    const before = ends[0]?.[1]
    // A provider that cannot be reached is not waited for twice.
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
      clientAuthentication(client, endpoints),
      token,
      {
        ...requestOptions(server.revocation_endpoint ?? '', signal),
        additionalParameters: { token_type_hint: kind.replace(' ', '_') },
      },
    )
    await processRevocationResponse(response)
    return 'revoked'
  } catch (error) {
    // Not in RFC 7009, which has 200 for it, but Google and others say so of a token they do not know.
    return getOAuthError(error) === 'invalid_token' ? 'ended' : notEnded(error)
  }
}

/**
 * Once the refresh token is gone, an access token that is refused does not matter: the server has ended
 * it with the refresh token, or never takes access tokens back (RFC 7009 sections 2.1 and 2.2.1).
 */
const endAfter = (before: TokenEnd | undefined, end: TokenEnd): TokenEnd =>
  (before === 'revoked' || before === 'ended') &&
  end instanceof DoorwardError &&
  !isUnavailable(end)
    ? 'left'
    : end

const isUnavailable = (end: TokenEnd | undefined): end is DoorwardError =>
  end instanceof DoorwardError && end.code === 'provider-unavailable'

/** An error that comes with HTTP 200, as from servers that took after GitHub's, is one all the same. */
const normalise: Dialect['normalise'] = (answer) => {
  const { status, body } = answer
  const isError = typeof body['error'] === 'string' && body['access_token'] === undefined
  return status === 200 && isError ? errorAnswer(answer, {}) : answer
}

/** OAuth as the RFCs have it. */
export const standard: Dialect = {
  normalise,
  revoke: revokeByStandard,
  endsAllLogins: false,
  impliedScopes: {},
}
