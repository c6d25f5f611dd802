import type { Account } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { providerError } from '../providers/errors.ts'

/** A token endpoint's answer: HTTP status and JSON object. */
export type TokenAnswer = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

/** The tokens of one grant. */
export type GrantTokens = {
  readonly accessToken: string
  readonly refreshToken?: string | undefined
}

export type RevocationRequest = {
  readonly tokens: GrantTokens
  readonly client: Client
  readonly endpoints: Endpoints
  /** Base of the dialect's API without a slash at the end; undefined if not known. */
  readonly apiUrl: string | undefined
  /**
   * `grant`: all that the user allowed this client, for a logout. `tokens`: these tokens only, because a
   * newer login of the same user must continue.
   */
  readonly extent: 'grant' | 'tokens'
  readonly signal: AbortSignal
}

/** The result of a revocation; the detail is safe to show and names each token. */
export type Revocation = {
  readonly revokedAtProvider: boolean
  readonly detail?: string
  /** True when it may work later: the provider could not be reached, or answered 429. */
  readonly isWorthRetry?: boolean
}

/** How a provider differs from the standard: data and a few small functions. */
export type Dialect = {
  /** Turns an answer into one of RFC 6749 sections 5.1 and 5.2; the provider's own error code is `provider_error`. */
  readonly normalise: (answer: TokenAnswer) => TokenAnswer
  /** Revokes tokens. Never throws. */
  readonly revoke: (request: RevocationRequest) => Promise<Revocation>
  /** Asks the provider's API who has logged in; throws or returns undefined when it does not say. */
  readonly identify?: (
    accessToken: string,
    apiUrl: string,
    signal: AbortSignal,
  ) => Promise<Account | undefined>
  /**
   * True where revoking any token of a user ends every login of that user with this client, so that an
   * earlier login of the same user must not be revoked.
   */
  readonly endsAllLogins: boolean
  /** True where a refresh immediately ends the old access token, even while a program uses it. */
  readonly refreshEndsAccessToken?: true
  /** True where the device flow uses no client secret, not even for an app that has one. */
  readonly isDeviceFlowPublic?: true
  /** Scopes that another scope includes, so that answers do not name them. */
  readonly impliedScopes: Readonly<Record<string, readonly string[]>>
}

/**
 * An error answer with an error code of RFC 6749 section 5.2 and its status 400. The table translates the
 * provider's own codes; other codes are kept. The own code is kept as `provider_error`: it says more.
 */
export const errorAnswer = (
  { body }: TokenAnswer,
  table: Readonly<Record<string, string>>,
): TokenAnswer => {
  const own = typeof body['error'] === 'string' ? body['error'] : 'invalid_request'
  const error = Object.hasOwn(table, own) ? table[own] : own
  return { status: 400, body: { ...body, error, ...(error !== own && { provider_error: own }) } }
}

export type TokenKind = 'refresh token' | 'access token'

/**
 * The result for one token: revoked now; ended before or together with another; left to expire, since the
 * provider does not revoke its kind; or still valid, for this reason.
 */
export type TokenEnd = 'revoked' | 'ended' | 'left' | DoorwardError

/** The tokens of a grant by kind. The refresh token comes first: revoking it may end the access token. */
export const tokensByKind = ({
  refreshToken,
  accessToken,
}: GrantTokens): readonly (readonly [TokenKind, string])[] => [
  ...(refreshToken === undefined ? [] : [['refresh token', refreshToken] as const]),
  ['access token', accessToken],
]

/** Describes the result for each token; safe to show. */
export const combineRevocation = (
  ends: readonly (readonly [TokenKind, TokenEnd])[],
): Revocation => {
  const failures = ends.map(([, end]) => end).filter((end) => end instanceof DoorwardError)
  const named = (wanted: TokenEnd | undefined) =>
    ends
      .filter(([, end]) => end === wanted)
      .map(([kind]) => kind)
      .join(' and ')
  const describe = (kinds: string, what: string): string[] =>
    kinds === '' ? [] : [`${kinds} ${what}`]
  const detail = [
    ...describe(named('revoked'), 'revoked'),
    ...describe(named('ended'), 'had ended before'),
    ...describe(named('left'), 'left to expire, since the provider cannot revoke it'),
    ...[...new Set(failures)].flatMap((end) => describe(named(end), `not revoked: ${end.message}`)),
  ].join('; ')
  return {
    revokedAtProvider: failures.length === 0,
    detail,
    ...(failures.some(({ code }) => code === 'provider-unavailable') && { isWorthRetry: true }),
  }
}

/** The end of a token whose revocation failed; these secrets are not shown. */
export const notEnded = (
  error: unknown,
  secrets: readonly (string | undefined)[] = [],
): DoorwardError => providerError(error, 'the provider refused', { secrets })
