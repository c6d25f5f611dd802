import {
  AuthorizationResponseError,
  JWT_TIMESTAMP_CHECK,
  OperationProcessingError,
  PARSE_ERROR,
  RESPONSE_IS_NOT_CONFORM,
  RESPONSE_IS_NOT_JSON,
  ResponseBodyError,
  UnsupportedOperationError,
  WWWAuthenticateChallengeError,
} from 'oauth4webapi'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import type { Client } from './client-store.ts'
import type { Provider } from './providers.ts'
import { safeErrorCode, toExplanation } from './request.ts'

/**
 * Turns an error of `oauth4webapi` into a DoorwardError. The original is dropped, not wrapped: its `cause`
 * contains the provider's whole answer, tokens included. Kept are an error code of RFC 6749, with its meaning
 * for the client that a token endpoint refused, and the provider's explanation without the secrets.
 */
export const providerError = (
  error: unknown,
  what: string,
  refused: RefusedClient | Pick<RefusedClient, 'secrets'> = {},
): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const isClient = 'client' in refused
  const secrets = [...(refused.secrets ?? []), isClient ? refused.client.clientSecret : undefined]
  const refusal = isClient ? toTokenRefusal(error, secrets) : undefined
  if (isClient && refusal) return tokenRefusalError(refusal, refused)
  const code = getOAuthError(error)
  const explanation = explain(error, secrets)
  const why = [code ?? describeFault(error), explanation].filter((text) => text !== undefined)
  const message = `${what}: ${why.join(': ')}`
  if (code && isTransientOAuthError(code))
    return new DoorwardError('provider-unavailable', message, { hint: 'try again later' })
  return new DoorwardError('provider-refused', message, {
    hint: code ? undefined : getHint(error),
  })
}

/** The `error` of an authorization response, safe to show. RFC 6749 section 4.1.2.1. */
export type AuthorizationError = {
  readonly error: string
  readonly explanation?: string | undefined
}

/** The meaning of an error at the callback. */
export const refusalError = (
  refused: RefusedClient,
  { error, explanation }: AuthorizationError,
): DoorwardError => {
  const { name, title } = refused.provider
  if (error === 'access_denied')
    return new DoorwardError(
      'login-denied',
      `access was not allowed at ${title}${explanation === undefined ? '' : ` (${explanation})`}`,
      { hint: `doorward oauth login ${name}` },
    )
  return tokenRefusalError({ code: error, explanation }, refused)
}

/** The provider's own explanation in an error answer, if there is one. */
export const explain = (
  error: unknown,
  secrets: readonly (string | undefined)[],
): string | undefined =>
  error instanceof ResponseBodyError ? toExplanation(error.error_description, secrets) : undefined

/** The RFC 6749 error code of a provider's answer, if it is safe to show. */
export const getOAuthError = (error: unknown): string | undefined =>
  error instanceof ResponseBodyError || error instanceof AuthorizationResponseError
    ? safeErrorCode(error.error)
    : undefined

/**
 * Why an answer cannot be used: its status, the name of a field, or what is wrong with its id token. From
 * the library's messages, which have no values of the answer.
 */
const describeFault = (error: unknown): string => {
  if (error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError)
    return `an error with status ${error.status}`
  if (error instanceof UnsupportedOperationError)
    return `an answer that cannot be used: ${error.message}`
  if (!(error instanceof OperationProcessingError)) return `an unexpected ${errorName(error)}`
  const status = error.cause instanceof Response ? error.cause.status : 200
  if (error.code === RESPONSE_IS_NOT_CONFORM)
    return `an answer with status ${status}, which is not an OAuth answer`
  if (error.code === RESPONSE_IS_NOT_JSON || error.code === PARSE_ERROR)
    return `an answer ${status === 200 ? '' : `with status ${status} `}that is not JSON`
  const [, field] = /^"response" body "([a-z_]{1,40})" property /.exec(error.message) ?? []
  if (field !== undefined) return `an answer without a usable ${field}`
  return /JWT|ID Token/.test(error.message)
    ? `an id token that cannot be accepted: ${error.message}`
    : error.message
}

const getHint = (error: unknown): string =>
  error instanceof OperationProcessingError && error.code === JWT_TIMESTAMP_CHECK
    ? 'the clock of this machine differs from the provider’s: set it, then log in again'
    : 'the answer does not follow the OAuth standard: check the endpoints in gateway.yaml'

/** Why a token endpoint refused: RFC 6749 section 5.2, and more if the answer tells. Safe to show. */
export type TokenRefusal = {
  readonly code: string
  /** The provider's own code, if it has another. */
  readonly ownCode?: string | undefined
  /** The provider's own explanation (`error_description`). */
  readonly explanation?: string | undefined
  /** Whether the answer says that the client id or the client secret is wrong. */
  readonly about?: 'client-id' | 'client-secret' | undefined
}

/** A refresh has no redirect URI. */
type RefusedClient = {
  readonly provider: Provider
  readonly client: Client
  readonly redirectUri?: string | undefined
  /** What was sent, beside the client secret, and must not be shown if the provider repeats it. */
  readonly secrets?: readonly (string | undefined)[]
}

/** True for a fault of the provider. RFC 6749 section 4.1.2.1; some token endpoints send it too. */
export const isTransientOAuthError = (code: string): boolean =>
  code === 'server_error' || code === 'temporarily_unavailable'

/** The refusal in a token endpoint's error, or undefined when there is none that is safe to show. */
export const toTokenRefusal = (
  error: unknown,
  secrets: readonly (string | undefined)[] = [],
): TokenRefusal | undefined => {
  if (!(error instanceof ResponseBodyError)) return undefined
  const code = safeErrorCode(error.error)
  const ownCode = safeErrorCode(error.cause['provider_error'])
  const { error_description: description } = error
  return code === undefined
    ? undefined
    : {
        code,
        ownCode,
        about: getErrorSubject(error, description),
        explanation: explain(error, secrets),
      }
}

const getErrorSubject = (
  { cause }: ResponseBodyError,
  description: unknown,
): TokenRefusal['about'] => {
  const own = cause['provider_error']
  if (own === 'invalid_client_id' || own === 'Not Found') return 'client-id'
  const text = typeof description === 'string' ? description.slice(0, 500) : ''
  if (/client[_ ]secret/i.test(text)) return 'client-secret'
  return /client (id |was )?(is )?(unknown|not found)/i.test(text) ? 'client-id' : undefined
}

/**
 * The error of a token endpoint's refusal, at a login or a refresh: what the provider says, what it means for
 * this client, and where to fix it.
 */
export const tokenRefusalError = (refusal: TokenRefusal, refused: RefusedClient): DoorwardError => {
  const { provider, client } = refused
  const { title } = provider
  const isSecretMissing =
    refusal.code === 'invalid_request' &&
    refusal.about === 'client-secret' &&
    client.clientSecret === undefined
  const explanation =
    refusal.explanation ?? (isSecretMissing ? 'client_secret is missing' : undefined)
  const code = refusal.ownCode ?? refusal.code
  const says = explanation === undefined ? code : `${code}: ${explanation}`
  const error = (message: string, hint?: string) =>
    new DoorwardError('provider-refused', `${message} (${says})`, { hint })
  if (isTransientOAuthError(refusal.code))
    return new DoorwardError('provider-unavailable', `${title} answered ${says}`, {
      hint: 'try again later',
    })
  switch (refusal.code) {
    case 'redirect_uri_mismatch':
      return error(
        `${title} does not know the redirect URI of this login`,
        refused.redirectUri && registerHint(provider, refused.redirectUri),
      )
    case 'unauthorized_client':
      return error(
        `${title} does not allow this app to log in this way`,
        appHint(provider, refusal.ownCode),
      )
    case 'invalid_scope':
      return error(
        `${title} does not grant these scopes to this app`,
        `check the spelling of the scopes, and what the app may ask for${at(provider)}`,
      )
    case 'invalid_grant':
      return error(
        `${title} does not accept the approval: it was used, is too old, or is another app’s`,
        `doorward oauth login ${provider.name}`,
      )
    case 'access_denied':
      return error(`${title} did not allow access`, `doorward oauth login ${provider.name}`)
  }
  if (refusal.about === 'client-id')
    return error(`${title} knows no app with this client id`, clientIdHint(provider))
  if (refusal.code === 'invalid_client' || refusal.about === 'client-secret') {
    if (client.clientSecret !== undefined)
      return error(`${title} does not accept the client id and secret`, wrongSecretHint(provider))
    const isUnclear = provider.dialect === 'standard' && provider.app.secret !== 'required'
    return isUnclear && refusal.about === undefined
      ? error(`${title} does not accept the client id without a secret`, eitherHint(provider))
      : error(`${title} also requires the client secret of your app`, missingSecretHint(provider))
  }
  return error(
    `${title} refused the request`,
    `check the client, its redirect URI and the scopes${at(provider)}`,
  )
}

/** What to register, and the alternative where a provider compares redirect URIs exactly. */
export const registerHint = (
  { key, dialect, app, clientPage, redirectHost }: Provider,
  redirectUri: string,
): string => {
  const where = clientPage ? ` at ${clientPage}` : ''
  if (app.redirect === 'none')
    return `make a client of the type desktop app${where}: it accepts ${redirectUri} without registration`
  if (app.redirect === 'any-port')
    return `register ${withoutPort(redirectUri)} as ${app.redirectName} of the app${where}: any port matches, but 127.0.0.1 and localhost are different hosts`
  const register = `register exactly ${redirectUri} as redirect URL of the app${where}`
  if (dialect !== 'slack') return register
  const other =
    redirectHost === 'localhost'
      ? ''
      : `, or set providers.${key}.redirect_host: localhost in gateway.yaml if only that is accepted`
  return `${register}: host and port must match exactly${other}`
}

const withoutPort = (redirectUri: string): string => {
  const url = new URL(redirectUri)
  url.port = ''
  return url.href
}

/** What to do in the settings of the app, and the command that then stores the secret. */
const secretHint = ({ name, clientSecretEnv }: Provider, first: string): string =>
  clientSecretEnv === undefined
    ? `${first}, then: doorward oauth login ${name} --client-secret-stdin`
    : `${first}, set ${clientSecretEnv} in .env`

const missingSecretHint = (provider: Provider): string => {
  const copy = `copy it from the settings of the app${at(provider)}`
  const isOptional = provider.dialect === 'slack'
  return secretHint(provider, isOptional ? `turn on PKCE for the app, or ${copy}` : copy)
}

const eitherHint = (provider: Provider): string =>
  secretHint(
    provider,
    `compare the client id with the settings of the app${at(provider)} and copy its secret, if it has one`,
  )

const wrongSecretHint = (provider: Provider): string =>
  secretHint(provider, `compare both with the settings of the app${at(provider)}`)

const clientIdHint = (provider: Provider): string => {
  const fix =
    provider.clientId === undefined
      ? `doorward oauth login ${provider.name} --client-id ID`
      : `correct providers.${provider.key}.client_id in gateway.yaml`
  return `find the id of your app${at(provider)}, then: ${fix}`
}

const appHint = (provider: Provider, ownCode: string | undefined): string => {
  if (ownCode === 'device_flow_disabled')
    return `turn on the device flow in the settings of the app${at(provider)}, or log in without --device`
  if (ownCode === 'pkce_not_allowed') return `turn on PKCE for the app${at(provider)}`
  return `check that the client is of the type desktop app${at(provider)}`
}

const at = ({ clientPage }: Provider): string => (clientPage ? ` at ${clientPage}` : '')
