import type { Gateway } from '../../shared/config/schema.ts'
import type { Home } from '../../shared/home/home.ts'
import type { Wait } from './login/wait.ts'
import type { Promises } from './token/promises.ts'
import type { Tokens } from './token/tokens.ts'

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
  /** What was promised of tokens that were handed out before; left out: nothing. */
  readonly promises?: Promises
  /** How time passes between two requests of a login by device code; left out: by the clock. */
  readonly wait?: Wait
}
