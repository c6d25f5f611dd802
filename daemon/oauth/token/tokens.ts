import type { AccessToken } from '../../../shared/api.ts'
import type { TokenRecord } from './token-record.ts'

export type TokenRequest = {
  /** How long the token is to be good for, in milliseconds; by default a minute. */
  readonly minValidityMs?: number | undefined
  /** Who asks, as far as that is known, in one line of plain text. */
  readonly asker: string
}

export type Tokens = {
  /** The same token where it is in memory and good for long enough; else undefined, and nothing done. */
  readonly atOnce: (provider: string, request: TokenRequest) => AccessToken | undefined
  /**
   * A token that works. Throws `not-logged-in`, `needs-login`, `provider-unavailable` or what else keeps
   * an expired one from being renewed.
   */
  readonly access: (provider: string, request: TokenRequest) => Promise<AccessToken>
  /** The newest tokens of a provider, where they could not be written to the disk. */
  readonly unsaved: (provider: string) => TokenRecord | undefined
  /** All of these. */
  readonly allUnsaved: () => TokenRecord[]
  /** Tells that a login or logout has changed the file of a provider. */
  readonly changed: (provider: string) => void
  /** Takes up what a killed daemon left, and renews in the background from now on. */
  readonly start: () => Promise<void>
  /**
   * Waits for refreshes on their way, 10 s at most or so many milliseconds, and tries once more to write
   * what the disk refused, so that no new token is lost.
   */
  readonly close: (limitMs?: number) => Promise<void>
}
