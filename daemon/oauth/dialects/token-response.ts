import { jsonObjectIn } from '../providers/request.ts'
import type { Dialect } from './dialect.ts'
import type { Endpoints } from '../providers/discovery.ts'

/**
 * A token endpoint's answer as in the standard: normalised by the provider's dialect, and without an id token
 * that cannot be checked. An answer that is not a JSON object is returned unchanged.
 */
export const standardAnswer = async (
  response: Response,
  dialect: Dialect,
  { isIssuerKnown }: Pick<Endpoints, 'isIssuerKnown'>,
): Promise<Response> => {
  const text = await response.text()
  const headers = new Headers(response.headers)
  const document = jsonObjectIn(text)
  if (!document) return new Response(text || null, { status: response.status, headers })
  const { status, body } = dialect.normalise({
    status: response.status,
    body: withoutEmptyFields(document),
  })
  const { id_token: _, ...rest } = body
  // The library would use a challenge (RFC 6749 section 5.2 has one with 401) instead of the error.
  if (typeof body['error'] === 'string') headers.delete('www-authenticate')
  return new Response(JSON.stringify(isIssuerKnown ? body : rest), { status, headers })
}

/**
 * Many servers send null, or an empty refresh token, where the standard omits the field, and some send the
 * scopes as a list: https://dev.twitch.tv/docs/authentication/getting-tokens-oidc
 */
const withoutEmptyFields = (
  document: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(document)
      .filter(([name, value]) => value !== null && !(name === 'refresh_token' && value === ''))
      .map(([name, value]) => [name, name === 'scope' ? joinScopes(value) : value]),
  )

/** A list of strings as in RFC 6749 section 3.3; other values unchanged. */
const joinScopes = (scope: unknown): unknown =>
  Array.isArray(scope) && scope.every((item) => typeof item === 'string') ? scope.join(' ') : scope
