import type { Account } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { providerError } from '../providers/errors.ts'

/** A token endpoint's answer: the HTTP status and the JSON object that came with it. */
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
  /** Base of the dialect's API without a slash at its end; undefined where it is not known. */
  readonly apiUrl: string | undefined
  /**
   * `grant`: all that the person allowed this client, as a logout wants it. `tokens`: these tokens and
   * no others, because a newer login of the same person goes on.
   */
  readonly extent: 'grant' | 'tokens'
  readonly signal: AbortSignal
}

/** What a provider made of a revocation; the detail is safe to show and names each token. */
export type Revocation = {
  readonly revokedAtProvider: boolean
  readonly detail?: string
  /** True when it may work later: the provider could not be reached, or asked to come back. */
  readonly isWorthRetry?: boolean
}

/** How a provider leaves the standard: data, and a few small functions. */
export type Dialect = {
  /** Says what RFC 6749 sections 5.1 and 5.2 would have said; the provider's own word for an error is `provider_error`. */
  readonly normalise: (answer: TokenAnswer) => TokenAnswer
  /** Takes tokens back. Never throws. */
  readonly revoke: (request: RevocationRequest) => Promise<Revocation>
  /** Asks the provider's own API who has logged in; throws, or undefined, when it does not say. */
  readonly identify?: (
    accessToken: string,
    apiUrl: string,
    signal: AbortSignal,
  ) => Promise<Account | undefined>
  /**
   * True where to revoke any token of a person ends every login of that person with this client, so
   * that a replaced login of the same person must be left alone.
   */
  readonly endsAllLogins: boolean
  /** True where a refresh ends the access token before it at once, also in the hands of who uses it. */
  readonly refreshEndsAccessToken?: true
  /** True where the device flow takes no client secret, not even from an app that has one. */
  readonly isDeviceFlowPublic?: true
  /** Scopes that are granted with another one, or under another name, and not named in an answer. */
  readonly impliedScopes: Readonly<Record<string, readonly string[]>>
}

/**
 * An answer that is an error, in the words of RFC 6749 section 5.2 and with the status 400 that it asks
 * for. The table has the provider's own words; a word it does not have stays. The own one is kept as
 * `provider_error`, because it tells more.
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
 * What became of one token: taken back now; ended before, or together with another; left to expire,
 * since the provider takes none of its kind back; or still alive, for this reason.
 */
export type TokenEnd = 'revoked' | 'ended' | 'left' | DoorwardError

/** The tokens of a grant by their kind, the refresh token first, since with it goes what it made. */
export const tokensByKind = ({
  refreshToken,
  accessToken,
}: GrantTokens): readonly (readonly [TokenKind, string])[] => [
  ...(refreshToken === undefined ? [] : [['refresh token', refreshToken] as const]),
  ['access token', accessToken],
]

/** Says what became of each token, in words that are safe to show. */
export const combineRevocation = (
  ends: readonly (readonly [TokenKind, TokenEnd])[],
): Revocation => {
  const failures = ends.map(([, end]) => end).filter((end) => end instanceof DoorwardError)
  const named = (wanted: TokenEnd | undefined) =>
    ends
      .filter(([, end]) => end === wanted)
      .map(([kind]) => kind)
      .join(' and ')
  const say = (kinds: string, what: string): string[] => (kinds === '' ? [] : [`${kinds} ${what}`])
  const detail = [
    ...say(named('revoked'), 'revoked'),
    ...say(named('ended'), 'had ended before'),
    ...say(named('left'), 'left to expire, the provider does not take it back'),
    ...[...new Set(failures)].flatMap((end) => say(named(end), `not revoked: ${end.message}`)),
  ].join('; ')
  return {
    revokedAtProvider: failures.length === 0,
    detail,
    ...(failures.some(({ code }) => code === 'provider-unavailable') && { isWorthRetry: true }),
  }
}

/** The end of a token whose revocation failed. */
export const notEnded = (error: unknown): DoorwardError =>
  providerError(error, 'the provider refused')
