import type { KeyedMutex } from '../util/concurrency.ts'
import type { OAuthDependencies } from './dependencies.ts'
import type { Revocations } from './logout/revocations.ts'
import type { Discover } from './providers/discovery.ts'
import type { TokenBroker } from './tokens/token-broker.ts'

/** The services that logins and logouts share. */
export type OAuthServices = {
  readonly dependencies: OAuthDependencies
  readonly discover: Discover
  /** Held for the name of a login while its files are changed. */
  readonly withLock: KeyedMutex
  readonly tokens: TokenBroker
  readonly revocations: Revocations
}
