import {
  AuthorizationResponseError,
  JWT_TIMESTAMP_CHECK,
  OperationProcessingError,
  PARSE_ERROR,
  RESPONSE_IS_NOT_CONFORM,
  RESPONSE_IS_NOT_JSON,
  ResponseBodyError,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import { safeErrorCode } from './shown-text.ts'
import {
  type RefusedClient,
  isPassing,
  tokenRefusalError,
  tokenRefusalOf,
} from './token-refusal.ts'

/**
 * Turns what `oauth4webapi` throws into an error of ours. The original is dropped, not wrapped: its
 * `cause` holds the provider's whole answer, tokens included. Only an error code of RFC 6749 survives,
 * and with the client that was refused by a token endpoint, what that code means for it.
 */
export const providerError = (
  error: unknown,
  what: string,
  refused?: RefusedClient,
): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const refusal = refused && tokenRefusalOf(error)
  if (refusal) return tokenRefusalError(refusal, refused)
  const code = oauthErrorOf(error)
  if (code && isPassing(code))
    return new DoorwardError('provider-unavailable', `${what}: ${code}`, {
      hint: 'try again later',
    })
  const why = code ?? faultOf(error)
  return new DoorwardError('provider-refused', why === undefined ? what : `${what}: ${why}`, {
    hint: code ? undefined : hintOf(error),
  })
}

/** What an `error` at the callback means. RFC 6749 section 4.1.2.1; the code is safe to show. */
export const refusalError = (refused: RefusedClient, error: string): DoorwardError => {
  const { name, title } = refused.provider
  if (error === 'access_denied')
    return new DoorwardError('login-denied', `access was not allowed at ${title}`, {
      hint: `doorward oauth login ${name}`,
    })
  return tokenRefusalError({ code: error }, refused)
}

/** The RFC 6749 error code a provider answered with, where it is safe to show. */
export const oauthErrorOf = (error: unknown): string | undefined =>
  error instanceof ResponseBodyError || error instanceof AuthorizationResponseError
    ? safeErrorCode(error.error)
    : undefined

/**
 * What of an answer cannot be used: its status, or the name of a field, both from the library's own words.
 * Never a value.
 */
const faultOf = (error: unknown): string | undefined => {
  if (!(error instanceof OperationProcessingError)) return undefined
  if (error.code === RESPONSE_IS_NOT_CONFORM && error.cause instanceof Response)
    return `an answer with status ${error.cause.status}, which is none of OAuth`
  if (error.code === RESPONSE_IS_NOT_JSON || error.code === PARSE_ERROR)
    return 'an answer that is no JSON'
  const [, field] = /^"response" body "([a-z_]{1,40})" property /.exec(error.message) ?? []
  return field === undefined ? undefined : `an answer without a usable ${field}`
}

const hintOf = (error: unknown): string | undefined => {
  if (!(error instanceof OperationProcessingError)) return undefined
  return error.code === JWT_TIMESTAMP_CHECK
    ? 'the clock of this machine differs from the provider’s: set it, then log in again'
    : 'the answer was not what the OAuth standard asks for: check the endpoints in gateway.yaml'
}
