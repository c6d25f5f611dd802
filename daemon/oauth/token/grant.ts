import { type IDToken, type TokenEndpointResponse, getValidatedIdTokenClaims } from 'oauth4webapi'
import { DoorwardError } from '../../../shared/errors.ts'

/** What a provider granted. The lifetimes count from the answer; undefined means it did not say. */
export type Grant = {
  readonly accessToken: string
  readonly tokenType: string
  readonly refreshToken: string | undefined
  readonly expiresInSeconds: number | undefined
  /** Of the refresh token: `refresh_token_expires_in` (GitHub, Google) or `refresh_expires_in` (Keycloak). */
  readonly refreshExpiresInSeconds: number | undefined
  /** What was really granted, or undefined when the answer does not say (then all that was asked). */
  readonly scopes: readonly string[] | undefined
  readonly idClaims: IDToken | undefined
}

/** Makes a grant of an answer that the library has checked. Throws `provider-refused`. */
export const grantOf = (answer: TokenEndpointResponse): Grant => {
  const { access_token: accessToken, refresh_token: refreshToken } = answer
  // RFC 6749 appendix A.12 and A.17: a token with a line break would forge headers and lines wherever
  // it is used.
  if (![accessToken, refreshToken ?? ' '].every((token) => /^[\x20-\x7e]+$/.test(token)))
    throw new DoorwardError(
      'provider-refused',
      'the provider sent a token with characters that no token can have',
      { hint: 'check the token endpoint in gateway.yaml' },
    )
  return {
    accessToken,
    tokenType: answer.token_type === 'bearer' ? 'Bearer' : answer.token_type,
    refreshToken,
    expiresInSeconds: answer.expires_in,
    refreshExpiresInSeconds: secondsOf(
      answer['refresh_token_expires_in'] ?? answer['refresh_expires_in'],
    ),
    scopes: answer.scope === undefined ? undefined : scopesOf(answer.scope),
    idClaims: getValidatedIdTokenClaims(answer),
  }
}

/** Some send the number as text; 0 is how Keycloak says that there is no end. */
const secondsOf = (value: unknown): number | undefined => {
  const seconds = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value
  return typeof seconds === 'number' && Number.isFinite(seconds) && seconds > 0
    ? seconds
    : undefined
}

/**
 * Scopes of an answer: RFC 6749 separates them with spaces, GitHub and Slack with commas. What cannot
 * be one (appendix A.4) is left out: they are shown to people.
 */
export const scopesOf = (text: string): string[] => [
  ...new Set(text.split(/[ ,]+/).filter((scope) => /^[\x21-\x7e]+$/.test(scope))),
]
