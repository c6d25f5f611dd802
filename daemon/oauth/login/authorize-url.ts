import { codeChallengeOf } from './pkce.ts'
import type { Provider } from '../provider/providers.ts'

export type AuthorizationRequest = {
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  readonly state: string
  readonly codeVerifier: string
}

/**
 * The address a person opens to log in: the code flow with PKCE S256. Keeps what the endpoint's own
 * query holds (RFC 6749 section 3.1); nothing a provider's data adds can replace what protects the login.
 */
export const authorizeUrl = (
  endpoint: string,
  provider: Pick<Provider, 'scopeParameter' | 'scopeSeparator' | 'authorizationParameters'>,
  request: AuthorizationRequest,
): string => {
  const url = new URL(endpoint)
  const parameters = {
    ...provider.authorizationParameters,
    ...(request.scopes.length === 0
      ? {}
      : { [provider.scopeParameter]: request.scopes.join(provider.scopeSeparator) }),
    response_type: 'code',
    client_id: request.clientId,
    redirect_uri: request.redirectUri,
    state: request.state,
    code_challenge: codeChallengeOf(request.codeVerifier),
    code_challenge_method: 'S256',
  }
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return url.href
}
