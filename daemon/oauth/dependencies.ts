import { setTimeout as delay } from 'node:timers/promises'
import type { AccessToken } from '../../shared/api.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import type { Home } from '../../shared/home/home.ts'
import type { TokenRecord } from './tokens/token-record.ts'

/** The part of a pino logger that is used here. Fields never hold a token, code, verifier or secret. */
export type Log = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Something that happened to an account; the event store makes an event of kind `oauth` from it. */
export type OAuthEvent = {
  readonly what:
    | 'login'
    | 'login-failed'
    | 'logout'
    /** A token was given to somebody. */
    | 'token'
    | 'refresh'
    | 'refresh-failed'
    | 'needs-login'
    /** An earlier login's tokens, at last or never. */
    | 'revoked'
    | 'revocation-failed'
  readonly provider: string
  readonly state: 'done' | 'failed'
  readonly code?: string
  readonly detail?: string
}

/** What is counted, by provider. */
export type OAuthCount = 'token-given' | 'token-not-given' | 'token-renewed' | 'renewal-failed'

export type OAuthDependencies = {
  readonly home: Home
  readonly gateway: Gateway
  /** Where `client_secret_env` is looked up. */
  readonly env: NodeJS.ProcessEnv
  readonly log: Log
  readonly announce: (event: OAuthEvent) => void
  /** Only of providers that there are. */
  readonly count?: (what: OAuthCount, provider: string) => void
  /** Who gives out tokens once this is closed, if anybody does; waits while that is being decided. */
  readonly elsewhere?: () => Promise<Tokens['access'] | undefined>
  /** How time passes between two requests of a login by device code; left out: by the clock. */
  readonly wait?: Wait
}

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

/** Lets so many milliseconds pass; resolves early when the signal is aborted. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** By the clock of this machine; keeps no process alive. */
export const wait: Wait = async (ms, signal) => {
  try {
    await delay(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
