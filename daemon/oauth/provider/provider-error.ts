import {
  AuthorizationResponseError,
  JWT_TIMESTAMP_CHECK,
  OperationProcessingError,
  ResponseBodyError,
} from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Provider } from './providers.ts'
import { safeErrorCode } from '../login/read-callback.ts'

/**
 * Turns what `oauth4webapi` throws into an error of ours. The original is dropped, not wrapped: its
 * `cause` holds the provider's whole answer, tokens included. Only an error code of RFC 6749 survives.
 */
export const providerError = (error: unknown, what: string): DoorwardError => {
  if (error instanceof DoorwardError) return error
  const code = oauthErrorOf(error)
  if (code && passingErrors.has(code))
    return new DoorwardError('provider-unavailable', `${what}: ${code}`, {
      hint: 'try again later',
    })
  return new DoorwardError('provider-refused', code ? `${what}: ${code}` : what, {
    hint: hintOf(error, code),
  })
}

/** RFC 6749 section 4.1.2.1; some send them from the token endpoint too. */
const passingErrors = new Set(['server_error', 'temporarily_unavailable'])

/** What an `error` at the callback means. RFC 6749 section 4.1.2.1; the code is safe to show. */
export const refusalError = (
  { name, title }: Pick<Provider, 'name' | 'title'>,
  error: string,
): DoorwardError => {
  if (error === 'access_denied')
    return new DoorwardError('login-denied', `access was not allowed at ${title}`, {
      hint: `doorward oauth login ${name}`,
    })
  const isPassing = passingErrors.has(error)
  return new DoorwardError(
    isPassing ? 'provider-unavailable' : 'provider-refused',
    `${title} refused the login: ${error}`,
    { hint: isPassing ? 'try again later' : 'check the client, its redirect URI and the scopes' },
  )
}

/** The RFC 6749 error code a provider answered with, where it is safe to show. */
export const oauthErrorOf = (error: unknown): string | undefined =>
  error instanceof ResponseBodyError || error instanceof AuthorizationResponseError
    ? safeErrorCode(error.error)
    : undefined

const hintOf = (error: unknown, code: string | undefined): string | undefined => {
  if (code) return hints[code]
  if (error instanceof OperationProcessingError)
    return error.code === JWT_TIMESTAMP_CHECK
      ? 'the clock of this machine differs from the provider’s: set it, then log in again'
      : 'the answer was not what the OAuth standard asks for: check the endpoints in gateway.yaml'
  return undefined
}

const hints: Readonly<Record<string, string>> = {
  invalid_client: 'check the client id and the client secret of your app',
  unauthorized_client: 'check what kind of app the client id belongs to: it must be a desktop app',
  invalid_grant: 'the approval was used or is too old: log in again',
  invalid_scope:
    'check the scopes: the provider does not know them or your app may not ask for them',
  invalid_request: 'check the client secret and the redirect URI of your app',
  redirect_uri_mismatch: 'register the redirect URI of doorward at the provider',
}
