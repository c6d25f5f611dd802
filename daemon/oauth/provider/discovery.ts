import type { AuthorizationServer } from 'oauth4webapi'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../time-limit.ts'
import { type EndpointName, askIssuer } from './ask-issuer.ts'
import type { Provider } from './providers.ts'
import { createShared } from './shared-request.ts'

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

/** Metadata are asked for once in this time. */
const keepMs = 60 * 60 * 1000
/** Old ones are used for so long before an issuer that did not answer is asked again. */
const keepOldMs = 60 * 1000
type Entry = { readonly server: AuthorizationServer; readonly askAgainAt: number }

/**
 * Makes the look-up of endpoints: those given win, the others come from the issuer's metadata, which are
 * asked for once an hour, by all who need them together, and only where an endpoint is missing. While the
 * issuer does not answer, the old ones go on; a failure is not remembered. Throws `provider-unavailable`
 * or `provider-misconfigured`. With old metadata in hand the issuer is waited for no longer than
 * `patienceMs`.
 */
export const createDiscover = (now: () => number = Date.now, patienceMs = 5000): Discover => {
  const known = new Map<string, Entry>()
  const shared = createShared<AuthorizationServer>()

  return async (provider, signal) => {
    const { issuer } = provider
    if (issuer === undefined || (provider.authorizationEndpoint && provider.tokenEndpoint))
      return withEndpoints(provider, {
        issuer: issuer ?? unknownIssuer,
        id_token_signing_alg_values_supported: idTokenAlgorithms,
      })
    const old = known.get(issuer)
    if (old && now() < old.askAgainAt) return withEndpoints(provider, old.server)
    try {
      const server = await shared(issuer, signal, (ending) =>
        old
          ? withTimeLimit(patienceMs, ending, (limited) => askIssuer(issuer, limited))
          : askIssuer(issuer, ending),
      )
      const endpoints = withEndpoints(provider, server)
      known.set(issuer, { server, askAgainAt: now() + keepMs })
      return endpoints
    } catch (error) {
      if (signal.aborted)
        throw new DoorwardError(
          'provider-unavailable',
          `${new URL(issuer).host} was not waited for`,
        )
      const isDown = error instanceof DoorwardError && error.code === 'provider-unavailable'
      if (!old || !isDown) throw error
      known.set(issuer, { server: old.server, askAgainAt: now() + keepOldMs })
      return withEndpoints(provider, old.server)
    }
  }
}

/** The library wants some issuer; nothing can answer with this one. */
const unknownIssuer = 'https://issuer.invalid'

/**
 * Of an issuer that was not asked: all that sign with a key pair (RFC 7518 section 3.1, RFC 8037), where the
 * library would take RS256 alone. What vouches for an id token of the token endpoint is TLS (OpenID
 * Connect Core section 3.1.3.7).
 */
const idTokenAlgorithms =
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

const withEndpoints = (provider: Provider, discovered: AuthorizationServer): Endpoints => {
  const given: Readonly<Partial<Record<EndpointName, string | undefined>>> = {
    authorization_endpoint: provider.authorizationEndpoint,
    token_endpoint: provider.tokenEndpoint,
    revocation_endpoint: provider.revocationEndpoint,
    userinfo_endpoint: provider.userinfoEndpoint,
    device_authorization_endpoint: provider.deviceAuthorizationEndpoint,
  }
  const endpoint = (name: EndpointName): string | undefined =>
    given[name] ?? safeEndpoint(provider, name, discovered)
  const authorization = endpoint('authorization_endpoint')
  const token = endpoint('token_endpoint')
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
      revocation_endpoint: endpoint('revocation_endpoint'),
      userinfo_endpoint: endpoint('userinfo_endpoint'),
      device_authorization_endpoint: endpoint('device_authorization_endpoint'),
    },
  }
}

/** An issuer on the internet must not send a browser or a token to an unsafe address or back to us. */
const safeEndpoint = (
  { name, issuer }: Provider,
  endpointName: EndpointName,
  discovered: AuthorizationServer,
): string | undefined => {
  const endpoint = discovered[endpointName]
  if (endpoint === undefined) return undefined
  if (isSafeEndpoint(endpoint, isLoopbackUrl(discovered.issuer))) return endpoint
  throw new DoorwardError(
    'provider-misconfigured',
    `the metadata of the issuer ${issuer} have a ${endpointName} that is not an https address`,
    { hint: `set providers.${name}.${endpointName} in gateway.yaml if you know the right one` },
  )
}

const isSafeEndpoint = (endpoint: string, isLocalIssuer: boolean): boolean => {
  if (!URL.canParse(endpoint)) return false
  const { protocol, username, password } = new URL(endpoint)
  if (username !== '' || password !== '') return false
  if (protocol === 'https:') return true
  return protocol === 'http:' && isLocalIssuer && isLoopbackUrl(endpoint)
}
