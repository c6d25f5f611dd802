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
import { DoorwardError, errorName, type ErrorCode } from '../../../shared/errors.ts'
import type { Client } from './client-store.ts'
import type { Provider } from './providers.ts'
import { safeErrorCode, toExplanation } from './request.ts'

/** Options of `doorward oauth login`. */
export type LoginOptions = {
  readonly clientId?: string
  /** The command asks for the client secret. */
  readonly secret?: true
  readonly device?: true
}

/** How to log in again. */
type NextLogin = {
  readonly provider: string
  /** A step before that, without a full stop. */
  readonly first?: string | undefined
  readonly options?: LoginOptions
}

export const toLoginCommand = (
  provider: string,
  { clientId, secret, device }: LoginOptions = {},
): string => {
  const id = clientId === undefined ? '' : ` --client-id ${clientId}`
  return `doorward oauth login ${provider}${id}${secret ? ' --client-secret-stdin' : ''}${device ? ' --device' : ''}`
}

/** An error after which a person logs in again. */
export class LoginError extends DoorwardError {
  readonly next: NextLogin

  constructor(code: ErrorCode, message: string, next: NextLogin) {
    const { provider, first, options } = next
    const command = toLoginCommand(provider, options)
    super(code, message, {
      hint: first === undefined ? command : `${first}, then: ${command}`,
      about: { provider },
    })
    this.next = next
  }

  /** The same error of a login that needs these options too. */
  withOptions(options: LoginOptions): LoginError {
    const { code, message, next } = this
    return new LoginError(code, message, { ...next, options: { ...options, ...next.options } })
  }
}

/** Values that were sent beside the client secret; a provider may repeat them, and they must not be shown. */
type Secrets = { readonly secrets?: readonly (string | undefined)[] }

/** The request that a provider refused; a refresh has no redirect URI. */
type RefusedRequest = Secrets & {
  readonly provider: Provider
  readonly client: Client
  readonly redirectUri?: string | undefined
  /** True for a login by device code. */
  readonly device?: true
}

/** Why a provider refused, safe to show. */
export type Refusal = {
  /** The code of RFC 6749 or RFC 8628. */
  readonly code: string
  /** The provider's own code, if it has another. */
  readonly ownCode?: string | undefined
  /** The provider's own explanation (`error_description`). */
  readonly explanation?: string | undefined
}

/**
 * Turns an error of `oauth4webapi` into a DoorwardError. The original is dropped, not wrapped: its `cause`
 * contains the provider's whole answer, tokens included. Kept are an error code of RFC 6749, with its meaning
 * for the request that was refused, and the provider's explanation without the secrets.
 */
export const providerError = (
  error: unknown,
  what: string,
  refused: RefusedRequest | Secrets = {},
): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const request = 'client' in refused ? refused : undefined
  const explanation = explain(error, [...(refused.secrets ?? []), request?.client.clientSecret])
  const code = getOAuthError(error)
  if (request && code !== undefined && error instanceof ResponseBodyError)
    return refusalError(request, {
      code,
      ownCode: safeErrorCode(error.cause['provider_error']),
      explanation,
    })
  const why = [code ?? describeFault(error), explanation].filter((text) => text !== undefined)
  const message = `${what}: ${why.join(': ')}`
  if (code !== undefined && isTransientOAuthError(code)) return unavailable(message)
  const hint = code === undefined ? { hint: getHint(error) } : {}
  return new DoorwardError('provider-refused', message, hint)
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

/** True for a fault of the provider. RFC 6749 section 4.1.2.1; some token endpoints send it too. */
export const isTransientOAuthError = (code: string): boolean =>
  code === 'server_error' || code === 'temporarily_unavailable'

const unavailable = (message: string): DoorwardError =>
  new DoorwardError('provider-unavailable', message, { hint: 'try again later' })

/** Why an answer cannot be used, in words that have no values of the answer. */
const describeFault = (error: unknown): string => {
  if (error instanceof ResponseBodyError || error instanceof WWWAuthenticateChallengeError)
    return `an error with status ${error.status}`
  // The library's messages name fields of the answer, never their values.
  if (error instanceof UnsupportedOperationError) return error.message
  if (!(error instanceof OperationProcessingError)) return `an unexpected ${errorName(error)}`
  const status = error.cause instanceof Response ? error.cause.status : 200
  const isForeign = [RESPONSE_IS_NOT_CONFORM, RESPONSE_IS_NOT_JSON, PARSE_ERROR].some(
    (code) => code === error.code,
  )
  return isForeign ? `an answer with status ${status} that is not an OAuth answer` : error.message
}

const getHint = (error: unknown): string =>
  error instanceof OperationProcessingError && error.code === JWT_TIMESTAMP_CHECK
    ? 'the clock of this machine differs from the provider’s: set it, then log in again'
    : 'the answer does not follow the OAuth standard: check the endpoints in gateway.yaml'

/**
 * Explains a refusal of this request, and the way out. RFC 6749 sections 4.1.2.1 and 5.2, RFC 8628
 * section 3.5.
 */
export const refusalError = (refused: RefusedRequest, refusal: Refusal): DoorwardError => {
  const { provider, device } = refused
  const { name, title } = provider
  const { code, ownCode, explanation } = refusal
  const says = [ownCode ?? code, explanation].filter((text) => text !== undefined).join(': ')
  const own = [ownCode, explanation].filter((text) => text !== undefined).join(': ')
  const again = { provider: name, ...(device && { options: { device } }) }
  if (isTransientOAuthError(code)) return unavailable(`${title} answered ${says}`)
  // Google answers with invalid_request where the secret is missing.
  const isSecretMissing =
    code === 'invalid_request' &&
    provider.app.secret === 'required' &&
    refused.client.clientSecret === undefined
  const error = (message: string, hint: string) =>
    new DoorwardError('provider-refused', `${message} (${says})`, { hint })
  switch (isSecretMissing ? 'invalid_client' : code) {
    case 'access_denied':
    // https://learn.microsoft.com/entra/identity-platform/v2-oauth2-device-code#expected-errors
    case 'authorization_declined':
      return new LoginError(
        'login-denied',
        `access was not allowed at ${title}${inBrackets(own)}`,
        again,
      )
    case 'expired_token':
      return new LoginError('login-expired', `the code was not entered at ${title} in time`, again)
    case 'invalid_grant':
      return new LoginError(
        'provider-refused',
        `${title} does not accept the approval: it was used, is too old, or is another app’s (${says})`,
        again,
      )
    case 'invalid_client':
      return clientError(refused, says)
    case 'redirect_uri_mismatch':
      return error(
        `${title} does not know the redirect URI of this login`,
        toRegisterHint(provider, refused.redirectUri ?? 'the redirect URI'),
      )
    case 'unauthorized_client':
    case 'unsupported_grant_type':
      return error(
        `${title} does not allow this app to log in this way`,
        `check in the settings of the app${at(provider)} that it ${device ? 'may use the device flow, or log in without --device' : 'is a desktop app with PKCE'}`,
      )
    case 'invalid_scope':
      return error(
        `${title} does not grant these scopes to this app`,
        `check the spelling of the scopes, and what the app may ask for${at(provider)}`,
      )
    default:
      return error(
        `${title} refused the request`,
        `check the client, its redirect URI and the scopes${at(provider)}`,
      )
  }
}

const inBrackets = (text: string): string => (text === '' ? '' : ` (${text})`)

/** The client id or the client secret is wrong, or the secret is missing. */
const clientError = ({ provider, client, device }: RefusedRequest, says: string): DoorwardError => {
  const { name, title, clientSecretEnv, tokenAuth, dialect } = provider
  const settings = `the settings of the app${at(provider)}`
  const hasSecret = client.clientSecret !== undefined
  if (device && !hasSecret)
    return new DoorwardError(
      'provider-refused',
      `${title} does not know this client id (${says})`,
      {
        hint: `compare it with ${settings}, and enable the device flow there`,
      },
    )
  const message = `${title} does not accept the client id ${hasSecret ? 'and' : 'without a'} secret (${says})`
  const pkce = dialect === 'slack' ? ', or turn on PKCE for the app' : ''
  const both = tokenAuth === undefined ? 'both' : `both, and token_auth (${tokenAuth}),`
  const first = hasSecret
    ? `compare ${both} with ${settings}`
    : `compare the client id with ${settings} and copy its secret${pkce}`
  const options: LoginOptions = { secret: true }
  return clientSecretEnv === undefined
    ? new LoginError('provider-refused', message, { provider: name, first, options })
    : new DoorwardError('provider-refused', message, {
        hint: `${first}, set ${clientSecretEnv} in .env`,
      })
}

/** Says which redirect URI to register at the provider. */
export const toRegisterHint = (
  { app, clientPage, redirectHost, redirectPath }: Provider,
  redirectUri: string,
): string => {
  const where = clientPage ? ` at ${clientPage}` : ''
  if (app.redirect === 'none')
    return `make a client of the type desktop app${where}: it accepts ${redirectUri} without registration`
  const uri = app.redirect === 'any-port' ? `http://${redirectHost}${redirectPath}` : redirectUri
  return `register exactly ${uri} as ${app.redirectName} of the app${where}`
}

const at = ({ clientPage }: Provider): string => (clientPage ? ` at ${clientPage}` : '')
