import { jsonObjectIn } from './json-object.ts'
import { type AuthorizationServer, discoveryRequest } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { requestOptions } from './request-provider.ts'

/*
 * Metadata of an issuer: OpenID Connect Discovery puts the well-known part behind the issuer's path,
 * RFC 8414 before it. The document is taken only when it is of the issuer that was asked.
 */

/** What is kept of the metadata: nothing else of a provider's document has a say here. */
const endpointNames = [
  'authorization_endpoint',
  'token_endpoint',
  'revocation_endpoint',
  'userinfo_endpoint',
  'device_authorization_endpoint',
] as const
export type EndpointName = (typeof endpointNames)[number]

/** Why a place has no metadata: the words go into a message, and the last resort is 404. */
type Nothing = { readonly why: string; readonly hint?: string; readonly isAbsent?: true }

/**
 * Asks an issuer for its metadata. Endpoints are as the issuer names them, not checked. Throws
 * `provider-unavailable`, or `provider-misconfigured` with what was found instead.
 */
export const askIssuer = async (
  issuer: string,
  signal: AbortSignal,
): Promise<AuthorizationServer> => {
  const url = new URL(issuer)
  let nothing: Nothing | undefined
  for (const algorithm of ['oidc', 'oauth2'] as const) {
    const response = await discoveryRequest(url, { algorithm, ...requestOptions(issuer, signal) })
    const found = readMetadata(issuer, response.status, await response.text())
    if ('issuer' in found) return found
    // What a place says tells more than that the other one has nothing.
    if (!nothing || nothing.isAbsent) nothing = found
  }
  throw new DoorwardError(
    'provider-misconfigured',
    `${url.host} has no metadata of the issuer ${issuer}: ${nothing?.why ?? 'it did not say why'}`,
    { hint: nothing?.hint ?? 'check the issuer in gateway.yaml, or set both endpoints instead' },
  )
}

/** The metadata of this issuer in an answer, or why there are none. */
const readMetadata = (
  issuer: string,
  status: number,
  text: string,
): AuthorizationServer | Nothing => {
  if (status === 404 || status === 410) return { why: 'there is no such page', isAbsent: true }
  if (status >= 300 && status < 400)
    return {
      why: 'it sends the request elsewhere',
      hint: 'set the issuer to where that leads, as its own metadata name it',
    }
  if (status !== 200) return { why: `it answered ${status}` }
  const document = jsonObjectIn(text)
  if (!document) return { why: 'it answered with something that is no JSON document' }
  const named = document['issuer']
  if (typeof named !== 'string' || !URL.canParse(named))
    return { why: 'the metadata name no issuer' }
  return isSameIssuer(named, issuer) ? metadataOf(named, document) : mismatch(issuer, named)
}

/** RFC 8414 section 3.3, but for a slash at the end, by which people write issuers differently. */
const isSameIssuer = (named: string, issuer: string): boolean =>
  withoutSlash(named) === withoutSlash(issuer)

const withoutSlash = (issuer: string): string => new URL(issuer).href.replace(/\/$/, '')

/** Metadata of another issuer must not be used: RFC 9207 and id tokens are checked against it. */
const mismatch = (issuer: string, named: string): Nothing => {
  // Microsoft's, for apps of many tenants: no token is ever of this issuer.
  if (/[{}]/.test(named) || /%7B|%7D/i.test(named))
    return {
      why: 'the metadata are for many tenants and name a pattern instead of an issuer',
      hint: 'set the issuer to that of your own tenant (its id in the place of "common"), or set authorization_endpoint, token_endpoint and userinfo_endpoint instead of the issuer',
    }
  const { href, origin } = new URL(named)
  return origin === new URL(issuer).origin && href.length <= 200
    ? { why: `the metadata are of ${href}`, hint: `if that is the one you mean: issuer: ${href}` }
    : { why: 'the metadata are of an issuer elsewhere' }
}

const metadataOf = (
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
