import { jsonObjectIn } from '../providers/request.ts'
import type { Dialect } from './dialect.ts'
import type { Endpoints } from '../providers/discovery.ts'

/**
 * A token endpoint's answer as the standard has it: put right by the provider's dialect, and without an
 * id token that nothing could be checked against. What is no JSON object stays as it is.
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
  const { status, body } = dialect.normalise({ status: response.status, body: said(document) })
  const { id_token: _, ...rest } = body
  // The library would take a challenge (RFC 6749 section 5.2 has one with 401) for all that was said.
  if (typeof body['error'] === 'string') headers.delete('www-authenticate')
  return new Response(JSON.stringify(isIssuerKnown ? body : rest), { status, headers })
}

/**
 * Many servers write null, or an empty refresh token, where the standard leaves a field out, and some
 * their scopes as a list: https://dev.twitch.tv/docs/authentication/getting-tokens-oidc
 */
const said = (document: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    Object.entries(document)
      .filter(([name, value]) => value !== null && !(name === 'refresh_token' && value === ''))
      .map(([name, value]) => [name, name === 'scope' ? asText(value) : value]),
  )

/** A list of texts as RFC 6749 section 3.3 writes it; all else as it is. */
const asText = (scope: unknown): unknown =>
  Array.isArray(scope) && scope.every((item) => typeof item === 'string') ? scope.join(' ') : scope
