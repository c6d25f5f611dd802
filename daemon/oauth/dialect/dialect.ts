import type { Account } from '../../../shared/api.ts'
import type { Client } from '../provider/client-file.ts'
import type { Endpoints } from '../provider/discovery.ts'

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
