import { type AuthorizationServer, discoveryRequest } from 'oauth4webapi'
import { isLoopbackUrl } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import type { Provider } from './providers.ts'
import { jsonObjectIn, requestOptions } from './request.ts'
import type { Quirks } from './templates.ts'

/** Where to talk to a provider, with both endpoints known. */
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
type Entry = { readonly server: AuthorizationServer; readonly askAgainAt: number }

/**
 * Looks up endpoints: configured ones win, the others come from the issuer's metadata. Those are fetched
 * once an hour, with one request for all callers, and only where an endpoint is missing. While the issuer
 * does not answer within `patienceMs`, old metadata are used; a failure is not remembered. Throws
 * `provider-unavailable` or `provider-misconfigured`.
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
          ? withTimeLimit(patienceMs, ending, (limited) => fetchMetadata(issuer, limited))
          : fetchMetadata(issuer, ending),
      )
      const endpoints = withEndpoints(provider, server)
      known.set(issuer, { server, askAgainAt: now() + keepMs })
      return endpoints
    } catch (error) {
      if (signal.aborted)
        throw new DoorwardError(
          'provider-unavailable',
          `the request to ${new URL(issuer).host} was cancelled`,
        )
      const isDown = error instanceof DoorwardError && error.code === 'provider-unavailable'
      if (!old || !isDown) throw error
      known.set(issuer, { server: old.server, askAgainAt: now() + keepOldMs })
      return withEndpoints(provider, old.server)
    }
  }
}

/** The library requires an issuer; no answer can have this one. */
const unknownIssuer = 'https://issuer.invalid'

/**
 * For an issuer whose metadata are not fetched: all algorithms with a key pair (RFC 7518 section 3.1, RFC
 * 8037), since the library would accept RS256 only. TLS vouches for an id token of the token endpoint
 * (OpenID Connect Core section 3.1.3.7).
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
      { hint: `set both endpoints of providers.${provider.key} in gateway.yaml` },
    )
  return {
    isIssuerKnown: provider.issuer !== undefined,
    quirks: provider.quirks,
    server: {
      ...discovered,
      ...(provider.quirks.clientAuthentication && {
        token_endpoint_auth_methods_supported: [provider.quirks.clientAuthentication],
      }),
      authorization_endpoint: authorization,
      token_endpoint: token,
      revocation_endpoint: endpoint('revocation_endpoint'),
      userinfo_endpoint: endpoint('userinfo_endpoint'),
      device_authorization_endpoint: endpoint('device_authorization_endpoint'),
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
  if (isSafeEndpoint(endpoint, isLoopbackUrl(discovered.issuer))) return endpoint
  throw new DoorwardError(
    'provider-misconfigured',
    `the metadata of the issuer ${issuer} have a ${endpointName} that is not an https address`,
    { hint: `set providers.${key}.${endpointName} in gateway.yaml if you know the right one` },
  )
}

const isSafeEndpoint = (endpoint: string, isLocalIssuer: boolean): boolean => {
  if (!URL.canParse(endpoint)) return false
  const { protocol, username, password } = new URL(endpoint)
  if (username !== '' || password !== '') return false
  if (protocol === 'https:') return true
  return protocol === 'http:' && isLocalIssuer && isLoopbackUrl(endpoint)
}

/*
 * Metadata of an issuer: OpenID Connect Discovery puts the well-known part after the issuer's path, RFC 8414
 * before it. The document is used only if it names the same issuer.
 */

/** The endpoints that are read from the metadata. */
const endpointNames = [
  'authorization_endpoint',
  'token_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint',
  'device_authorization_endpoint',
] as const
type EndpointName = (typeof endpointNames)[number]

/** Why an address has no metadata, for a message; `isAbsent` is a 404. */
type NoMetadata = { readonly why: string; readonly hint?: string; readonly isAbsent?: true }

/**
 * Fetches the metadata of an issuer. Endpoints are not checked. Throws `provider-unavailable`, or
 * `provider-misconfigured` with what was found instead.
 */
const fetchMetadata = async (issuer: string, signal: AbortSignal): Promise<AuthorizationServer> => {
  const url = new URL(issuer)
  let missing: NoMetadata | undefined
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const response = await discoveryRequest(url, { algorithm, ...requestOptions(issuer, signal) })
    const found = readMetadata(issuer, response.status, await response.text())
    if ('issuer' in found) return found
    // Any other answer says more than a 404.
    if (!missing || missing.isAbsent) missing = found
  }
  throw new DoorwardError(
    'provider-misconfigured',
    `${url.host} has no metadata of the issuer ${issuer}: ${missing?.why ?? 'no reason given'}`,
    { hint: missing?.hint ?? 'check the issuer in gateway.yaml, or set both endpoints instead' },
  )
}

/** The metadata of this issuer in an answer, or why there are none in it. */
const readMetadata = (
  issuer: string,
  status: number,
  text: string,
): AuthorizationServer | NoMetadata => {
  if (status === 404 || status === 410) return { why: 'there is no such page', isAbsent: true }
  if (status >= 300 && status < 400)
    return {
      why: 'it redirects the request',
      hint: 'set the issuer to the target of the redirect, as its own metadata name it',
    }
  if (status !== 200) return { why: `it answered ${status}` }
  const document = jsonObjectIn(text)
  if (!document) return { why: 'the answer is not a JSON document' }
  const named = document['issuer']
  if (typeof named !== 'string' || !URL.canParse(named))
    return { why: 'the metadata name no issuer' }
  return isSameIssuer(named, issuer) ? parseMetadata(named, document) : mismatch(issuer, named)
}

/** RFC 8414 section 3.3, but ignoring a slash at the end. */
const isSameIssuer = (named: string, issuer: string): boolean =>
  withoutSlash(named) === withoutSlash(issuer)

const withoutSlash = (issuer: string): string => new URL(issuer).href.replace(/\/$/, '')

/** Metadata of another issuer must not be used: RFC 9207 and id tokens are checked against it. */
const mismatch = (issuer: string, named: string): NoMetadata => {
  // Microsoft's, for apps of many tenants: no token has this issuer.
  if (/[{}]/.test(named) || /%7B|%7D/i.test(named))
    return {
      why: 'the metadata are for many tenants and name a pattern instead of an issuer',
      hint: 'set the issuer to that of your own tenant (its id instead of "common"), or set authorization_endpoint, token_endpoint and userinfo_endpoint instead of the issuer',
    }
  const { href, origin } = new URL(named)
  return origin === new URL(issuer).origin && href.length <= 200
    ? { why: `the metadata are of ${href}`, hint: `if that is the one you mean: issuer: ${href}` }
    : { why: 'the metadata are of an issuer on another host' }
}

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
    token_endpoint_auth_methods_supported: textsIn(
      document['token_endpoint_auth_methods_supported'],
    ) ?? ['client_secret_basic'],
    revocation_endpoint_auth_methods_supported: textsIn(
      document['revocation_endpoint_auth_methods_supported'],
    ),
    id_token_signing_alg_values_supported: textsIn(
      document['id_token_signing_alg_values_supported'],
    ),
    authorization_response_iss_parameter_supported:
      document['authorization_response_iss_parameter_supported'] === true,
  }
}

const textsIn = (value: unknown): string[] | undefined =>
  Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined

/** Runs a task once for all concurrent callers with this key. */
type Shared<Result> = (
  key: string,
  signal: AbortSignal,
  task: (signal: AbortSignal) => Promise<Result>,
) => Promise<Result>

type Running<Result> = {
  readonly result: Promise<Result>
  readonly control: AbortController
  waiting: number
}

/**
 * A caller whose signal is aborted stops waiting with that signal's reason; the task is aborted when no
 * caller waits any more.
 */
const createShared = <Result>(): Shared<Result> => {
  const running = new Map<string, Running<Result>>()

  const begin = (key: string, task: (signal: AbortSignal) => Promise<Result>) => {
    const control = new AbortController()
    const result = task(control.signal)
    const entry: Running<Result> = { result, control, waiting: 0 }
    const forget = (): void => {
      if (running.get(key) === entry) running.delete(key)
    }
    result.then(forget, forget)
    running.set(key, entry)
    return entry
  }

  return async (key, signal, task) => {
    signal.throwIfAborted()
    const entry = running.get(key) ?? begin(key, task)
    entry.waiting += 1
    let rejectAborted = (): void => undefined
    const aborted = new Promise<never>((_, reject) => {
      rejectAborted = () => reject(signal.reason as Error)
    })
    signal.addEventListener('abort', rejectAborted, { once: true })
    try {
      return await Promise.race([entry.result, aborted])
    } finally {
      signal.removeEventListener('abort', rejectAborted)
      entry.waiting -= 1
      if (entry.waiting === 0) {
        if (running.get(key) === entry) running.delete(key)
        entry.control.abort()
      }
    }
  }
}
