import { type AuthorizationServer, discoveryRequest } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/concurrency.ts'
import type { Provider } from './providers.ts'
import { isSafeAddress, jsonObjectIn, requestOptions } from './request.ts'
import type { Quirks } from './templates.ts'

/** The server metadata of a provider, with both endpoints known. */
export type Endpoints = {
  readonly server: AuthorizationServer & {
    readonly authorization_endpoint: string
    readonly token_endpoint: string
  }
  /** False when no issuer is known: then `iss` and id tokens cannot be checked and are not used. */
  readonly isIssuerKnown: boolean
  readonly quirks?: Quirks
}

export type Discover = (provider: Provider, signal: AbortSignal) => Promise<Endpoints>

const keepMs = 60 * 60 * 1000
/** How long old metadata are used before an issuer that did not answer is asked again. */
const keepOldMs = 60 * 1000

/**
 * Looks up endpoints: configured ones win, the others come from the issuer's metadata. Those are fetched
 * once an hour, and only where an endpoint is missing. While the issuer does not answer within `patienceMs`,
 * old metadata are used; a failure is not remembered. Throws `provider-unavailable` or
 * `provider-misconfigured`.
 */
export const createDiscover = (now: () => number = Date.now, patienceMs = 5000): Discover => {
  const known = new Map<string, { server: AuthorizationServer; askAgainAt: number }>()

  return async (provider, signal) => {
    const { issuer } = provider
    if (issuer === undefined || (provider.authorizationEndpoint && provider.tokenEndpoint))
      return withEndpoints(provider, {
        issuer: issuer ?? unknownIssuer,
        // The library would accept RS256 only.
        id_token_signing_alg_values_supported: keyPairAlgorithms,
      })
    const old = known.get(issuer)
    if (old && now() < old.askAgainAt) return withEndpoints(provider, old.server)
    try {
      const fetchAll = (limited: AbortSignal) => fetchMetadata(issuer, limited)
      const server = await (old ? withTimeLimit(patienceMs, signal, fetchAll) : fetchAll(signal))
      const endpoints = withEndpoints(provider, server)
      known.set(issuer, { server, askAgainAt: now() + keepMs })
      return endpoints
    } catch (error) {
      const isDown = error instanceof DoorwardError && error.code === 'provider-unavailable'
      if (!old || !isDown || signal.aborted) throw error
      known.set(issuer, { server: old.server, askAgainAt: now() + keepOldMs })
      return withEndpoints(provider, old.server)
    }
  }
}

/** The library requires an issuer; no answer can have this one. */
const unknownIssuer = 'https://issuer.invalid'

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
      { hint: `set both endpoints of providers.${provider.key} in gateway.yaml` },
    )
  const method = provider.quirks.clientAuthentication
  return {
    isIssuerKnown: provider.issuer !== undefined,
    quirks: provider.quirks,
    server: {
      ...discovered,
      ...(method && {
        token_endpoint_auth_methods_supported: [method],
        revocation_endpoint_auth_methods_supported: [method],
      }),
      authorization_endpoint: authorization,
      token_endpoint: token,
      revocation_endpoint: endpoint('revocation_endpoint'),
      userinfo_endpoint: endpoint('userinfo_endpoint'),
      device_authorization_endpoint: endpoint('device_authorization_endpoint'),
      [pushedEndpoint]: discovered.require_pushed_authorization_requests
        ? endpoint(pushedEndpoint)
        : undefined,
    },
  }
}

/** An issuer on the internet must not send a browser or a token to an unsafe address or to loopback. */
const safeEndpoint = (
  { key, issuer }: Provider,
  endpointName: EndpointName,
  discovered: AuthorizationServer,
): string | undefined => {
  const endpoint = discovered[endpointName]
  if (endpoint === undefined) return undefined
  if (isSafeAddress(endpoint, discovered.issuer)) return endpoint
  throw new DoorwardError(
    'provider-misconfigured',
    `the metadata of the issuer ${issuer} have a ${endpointName} that is not an https address of at most 2,048 characters`,
    {
      hint:
        endpointName === pushedEndpoint
          ? `its metadata are wrong: ask who runs ${issuer}`
          : `set providers.${key}.${endpointName} in gateway.yaml if you know the right one`,
    },
  )
}

/** RFC 9126 section 5. Used only where the server demands it. */
const pushedEndpoint = 'pushed_authorization_request_endpoint'

const endpointNames = [
  'authorization_endpoint',
  'token_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint',
  'device_authorization_endpoint',
  pushedEndpoint,
] as const
type EndpointName = (typeof endpointNames)[number]

/**
 * Fetches the metadata of an issuer. Endpoints are not checked. Throws `provider-unavailable`, or
 * `provider-misconfigured` with what was found instead.
 */
const fetchMetadata = async (issuer: string, signal: AbortSignal): Promise<AuthorizationServer> => {
  const url = new URL(issuer)
  let why = noSuchPage
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const response = await discoveryRequest(url, { algorithm, ...requestOptions(issuer, signal) })
    const found = readMetadata(issuer, response.status, await response.text())
    if (typeof found !== 'string') return found
    // Any other answer says more than a 404.
    if (why === noSuchPage) why = found
  }
  throw new DoorwardError(
    'provider-misconfigured',
    `${url.host} has no metadata of the issuer ${issuer}: ${why}`,
    { hint: 'check the issuer in gateway.yaml, or set both endpoints instead' },
  )
}

const noSuchPage = 'there is no such page'

/** The metadata of this issuer in an answer, or why there are none in it. */
const readMetadata = (
  issuer: string,
  status: number,
  text: string,
): AuthorizationServer | string => {
  if (status === 404 || status === 410) return noSuchPage
  if (status !== 200) return `it answered ${status}`
  const document = jsonObjectIn(text)
  if (!document) return 'the answer is not a JSON document'
  const named = document['issuer']
  if (typeof named !== 'string' || !URL.canParse(named)) return 'the metadata name no issuer'
  // RFC 8414 section 3.3, but ignoring a slash at the end: RFC 9207 and id tokens are checked against it.
  if (withoutSlash(named) === withoutSlash(issuer)) return parseMetadata(named, document)
  const { href, origin } = new URL(named)
  return origin === new URL(issuer).origin && href.length <= 200
    ? `the metadata are of ${href}`
    : 'the metadata are of an issuer on another host'
}

const withoutSlash = (issuer: string): string => new URL(issuer).href.replace(/\/$/, '')

const parseMetadata = (
  issuer: string,
  document: Readonly<Record<string, unknown>>,
): AuthorizationServer => {
  const endpoints = endpointNames.flatMap((name) =>
    document[name] === undefined || document[name] === null
      ? []
      : [[name, typeof document[name] === 'string' ? document[name] : ''] as const],
  )
  return {
    issuer,
    ...Object.fromEntries(endpoints),
    // RFC 8414 section 2 and OpenID Connect Discovery section 3 have this default.
    token_endpoint_auth_methods_supported: knownIn(
      document['token_endpoint_auth_methods_supported'],
      authenticationMethods,
    ) ?? ['client_secret_basic'],
    revocation_endpoint_auth_methods_supported: knownIn(
      document['revocation_endpoint_auth_methods_supported'],
      authenticationMethods,
    ),
    id_token_signing_alg_values_supported: knownIn(
      document['id_token_signing_alg_values_supported'],
      keyPairAlgorithms,
    ),
    authorization_response_iss_parameter_supported:
      document['authorization_response_iss_parameter_supported'] === true,
    require_pushed_authorization_requests:
      document['require_pushed_authorization_requests'] === true,
  }
}

/** The methods by which `clientAuthentication` chooses. */
const authenticationMethods = ['client_secret_basic', 'client_secret_post', 'none']

/**
 * The algorithms of an id token whose key the provider does not share with its clients (RFC 7518 section 3.1,
 * RFC 8037).
 */
export const keyPairAlgorithms: string[] =
  'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ')

/** The known values that a list has, or undefined where there is no list. */
const knownIn = (list: unknown, known: readonly string[]): string[] | undefined =>
  Array.isArray(list) ? known.filter((item) => list.includes(item)) : undefined
