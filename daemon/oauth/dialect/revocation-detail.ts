import { DoorwardError } from '../../../shared/errors.ts'
import { providerError } from '../provider/provider-error.ts'
import type { GrantTokens, Revocation } from './dialect.ts'

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
export const revocationOf = (ends: readonly (readonly [TokenKind, TokenEnd])[]): Revocation => {
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
