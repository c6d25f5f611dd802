import { type AuthorizationServer, discoveryRequest, processDiscoveryResponse } from 'oauth4webapi'
import { isLoopbackUrl } from '../../../shared/config.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Provider } from './providers.ts'
import { requestOptions } from './request-provider.ts'

/** Where to talk to a provider, with both endpoints known. */
export type Endpoints = {
  readonly server: AuthorizationServer & {
    readonly authorization_endpoint: string
    readonly token_endpoint: string
  }
  /** False when no issuer is known: then `iss` and id tokens cannot be checked and are not used. */
  readonly isIssuerKnown: boolean
}

export type Discover = (provider: Provider, signal: AbortSignal) => Promise<Endpoints>

const keepMs = 60 * 60 * 1000

/**
 * Makes the look-up of endpoints: those given win, the others come from the issuer's metadata (OpenID
 * Connect Discovery, then RFC 8414), which is asked for once an hour and only where one is missing.
 * Throws `provider-unavailable` or `provider-misconfigured`.
 */
export const createDiscover = (now: () => number = Date.now): Discover => {
  const known = new Map<string, { readonly at: number; readonly server: AuthorizationServer }>()
  return async (provider, signal) => {
    if (provider.authorizationEndpoint && provider.tokenEndpoint)
      return withEndpoints(provider, { issuer: provider.issuer ?? unknownIssuer })
    const issuer = provider.issuer ?? unknownIssuer
    const entry = known.get(issuer)
    if (entry && now() - entry.at < keepMs) return withEndpoints(provider, entry.server)
    const server = await askIssuer(issuer, signal)
    checkEndpoints(issuer, server)
    known.set(issuer, { at: now(), server })
    return withEndpoints(provider, server)
  }
}

/** The library wants some issuer; nothing can answer with this one. */
const unknownIssuer = 'https://issuer.invalid'

const withEndpoints = (provider: Provider, discovered: AuthorizationServer): Endpoints => {
  const { authorizationEndpoint, tokenEndpoint, revocationEndpoint, userinfoEndpoint } = provider
  const authorization = authorizationEndpoint ?? discovered.authorization_endpoint
  const token = tokenEndpoint ?? discovered.token_endpoint
  if (!authorization || !token)
    throw new DoorwardError(
      'provider-misconfigured',
      `the issuer of ${provider.name} names no ${authorization ? 'token' : 'authorization'} endpoint`,
      { hint: `set both endpoints of providers.${provider.name} in gateway.yaml` },
    )
  return {
    isIssuerKnown: provider.issuer !== undefined,
    server: {
      ...discovered,
      authorization_endpoint: authorization,
      token_endpoint: token,
      ...(revocationEndpoint && { revocation_endpoint: revocationEndpoint }),
      ...(userinfoEndpoint && { userinfo_endpoint: userinfoEndpoint }),
    },
  }
}

const askIssuer = async (issuer: string, signal: AbortSignal): Promise<AuthorizationServer> => {
  const url = new URL(issuer)
  for (const algorithm of ['oidc', 'oauth2'] as const)
    try {
      const response = await discoveryRequest(url, { algorithm, ...requestOptions(issuer, signal) })
      return await processDiscoveryResponse(url, response)
    } catch (error) {
      if (error instanceof DoorwardError) throw error
      // No such document, or not one of this issuer: the other place may have it.
    }
  throw new DoorwardError(
    'provider-misconfigured',
    `${url.host} has no metadata of the issuer ${issuer}`,
    { hint: 'check the issuer in gateway.yaml, or set both endpoints instead' },
  )
}

/** An issuer on the internet must not send a browser or a token to an unsafe address or back to us. */
const checkEndpoints = (issuer: string, server: AuthorizationServer): void => {
  const endpoints = [
    server.authorization_endpoint,
    server.token_endpoint,
    server.revocation_endpoint,
    server.userinfo_endpoint,
  ]
  for (const endpoint of endpoints)
    if (endpoint !== undefined && !isSafeEndpoint(endpoint, isLoopbackUrl(issuer)))
      throw new DoorwardError(
        'provider-misconfigured',
        `the metadata of the issuer ${issuer} has an endpoint that is not an https address`,
        { hint: 'set the endpoints in gateway.yaml' },
      )
}

const isSafeEndpoint = (endpoint: unknown, isLocalIssuer: boolean): boolean => {
  if (typeof endpoint !== 'string' || !URL.canParse(endpoint)) return false
  const { protocol } = new URL(endpoint)
  if (protocol === 'https:') return true
  return protocol === 'http:' && isLocalIssuer && isLoopbackUrl(endpoint)
}
