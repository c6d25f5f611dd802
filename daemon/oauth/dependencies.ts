import { setTimeout as delay } from 'node:timers/promises'
import type { AccessToken } from '../../shared/api/api.ts'
import type { Gateway } from '../../shared/config/schema.ts'
import type { TokenHome } from './tokens/keychain.ts'

/** The part of a pino logger that is used here. Fields never hold a token, code, verifier or secret. */
export type Log = {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Something that happened to an account; the event store keeps it as an event of kind `oauth`. */
export type OAuthEvent = {
  readonly what:
    | 'login'
    | 'login-failed'
    | 'logout'
    /** A token was issued. */
    | 'token'
    | 'refresh'
    | 'refresh-failed'
    | 'needs-login'
    /** The tokens of an earlier login, after attempts that failed. */
    | 'revoked'
    | 'revocation-failed'
  readonly provider: string
  readonly state: 'done' | 'failed'
  readonly code?: string
  readonly detail?: string
}

/** The counters, each by provider. */
export type OAuthCount = 'token-given' | 'token-not-given' | 'token-renewed' | 'renewal-failed'

export type OAuthDependencies = {
  readonly home: TokenHome
  readonly gateway: Gateway
  /** The environment of `client_secret_env`. */
  readonly env: NodeJS.ProcessEnv
  /** The environment of the process, without `.env`, for the keychain's helper. */
  readonly processEnv?: NodeJS.ProcessEnv
  readonly log: Log
  readonly announce: (event: OAuthEvent) => void
  /** Called for known providers only. */
  readonly count?: (what: OAuthCount, provider: string) => void
  /** Reads `.env` again, after a secret was written there. */
  readonly reload?: () => Promise<unknown>
  /** True once another daemon refreshes the tokens of this home; waits while that is being decided. */
  readonly isReplaced?: () => Promise<boolean>
  /** The pause between two requests of a device login; by default the clock. */
  readonly wait?: Wait
  /** How long a login waits for the user; by default ten minutes. */
  readonly loginTimeoutMs?: number
}

export type TokenRequest = {
  /** How long the token must be valid, in milliseconds; by default a minute. */
  readonly minValidityMs?: number | undefined
  /** True where the name is that of one login, and not of the provider's default account. */
  readonly isExact?: boolean
  /** The origin to which git sends the token: it must be one of the provider. */
  readonly gitOrigin?: string | undefined
  /** The API to which the token is sent: that of a bot is for the bot's own; other logins ignore it. */
  readonly apiUrl?: string | undefined
  /** The repository of a bot's token, `owner/name`; other logins ignore it. */
  readonly repository?: string | undefined
  /** What a bot's token may do there; by default it reads contents. */
  readonly permissions?: Readonly<Record<string, 'read' | 'write'>> | undefined
  /** The program that asks, as far as known, in one line of plain text. */
  readonly asker: string
}

/** Issues access tokens. */
export type Tokens = {
  /**
   * A valid token. Throws `not-logged-in`, `needs-login`, `provider-unavailable` or another reason why an
   * expired token cannot be renewed.
   */
  readonly access: (provider: string, request: TokenRequest) => Promise<AccessToken>
}

/** Waits this many milliseconds; resolves early when the signal is aborted. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** Waits by the clock; keeps no process alive. */
export const wait: Wait = async (ms, signal) => {
  try {
    await delay(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
