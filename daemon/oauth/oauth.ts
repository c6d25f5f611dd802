import type { Router } from '@koa/router'
import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { listProblems, listProviders, listTokens } from './accounts.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { OAuthDependencies, Tokens } from './dependencies.ts'
import { createDiscover } from './providers/discovery.ts'
import { createLogOut } from './logout/logout.ts'
import { RevocationQueue } from './logout/revocation-queue.ts'
import { Logins } from './login/login.ts'
import { createKeyedMutex, trackPending } from '../util/concurrency.ts'
import { createRoutes } from './routes.ts'
import type { TokenRecord } from './tokens/token-record.ts'
import { createTokens } from './tokens/token-broker.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type OAuth = {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
  /** A token that is in memory and good, in this turn. */
  readonly atOnce: Tokens['atOnce']
  /** A token that works, for a part of the daemon itself. */
  readonly access: Tokens['access']
  readonly tokens: () => Promise<TokenSummary[]>
  readonly providers: () => Promise<ProviderSummary[]>
  /** Token files that stop a provider, and revocations that wait. */
  readonly problems: () => Promise<StatusProblem[]>
  /**
   * Takes up what a killed daemon left; renews tokens and tries revocations in the background from now
   * on.
   */
  readonly start: () => Promise<void>
  /** Refuses new logins with `stopping`; those that wait, and tokens, go on. */
  readonly takeNoLogins: () => void
  /** Cancels the logins that wait, closes the callback listener and ends requests to providers. */
  readonly close: (ending?: Ending) => Promise<void>
  /** New tokens that the disk refused, and that nobody else has. */
  readonly unsaved: () => TokenRecord[]
}

export type Ending = {
  /** What a login that is cancelled says. */
  readonly why: string
  /** How long refreshes on their way are waited for, in milliseconds. */
  readonly refreshLimitMs: number
}

/**
 * Everything that has to do with logins and tokens, ready to be mounted. `left` are the unsaved tokens of
 * the one before.
 */
export const createOAuth = (
  dependencies: OAuthDependencies,
  left: readonly TokenRecord[] = [],
): OAuth => {
  const closing = new AbortController()
  const discover = createDiscover()
  const withLock = createKeyedMutex()
  const logouts = trackPending()
  const broker = createTokens(dependencies, discover, withLock, left)
  const revocations = new RevocationQueue(dependencies, discover, withLock)
  const shared = { dependencies, discover, withLock, tokens: broker, revocations }
  const logins = new Logins(shared)
  const logOut = createLogOut({ ...shared, signal: closing.signal })
  const tokens = () => listTokens(dependencies)
  /** A token that is good is given out all the time; while another daemon takes over that renews them, wait. */
  const access: Tokens['access'] = async (...asked) => {
    try {
      return await broker.access(...asked)
    } catch (error) {
      if (!(error instanceof DoorwardError) || error.code !== 'stopping') throw error
      const other = await dependencies.elsewhere?.()
      if (!other) throw error
      return other(...asked)
    }
  }
  return {
    routes: createRoutes(logins, (...request) => logouts.track(logOut(...request)), access, tokens),
    atOnce: broker.atOnce,
    access,
    tokens,
    providers: () => listProviders(dependencies),
    problems: async () => [
      ...(await listProblems(dependencies)),
      ...(await revocations.problems()),
    ],
    start: async () => {
      await revocations.start()
      await broker.start()
    },
    takeNoLogins: () => logins.refuseNew(),
    close: async (ending) => {
      closing.abort()
      await Promise.all([
        logins.close(ending?.why ?? 'the daemon stopped'),
        broker.close(ending?.refreshLimitMs),
        logouts.settled(logoutLimitMs),
      ])
      await revocations.close()
    },
    unsaved: broker.allUnsaved,
  }
}

/** How long a stop waits for logouts, whose requests it has broken off. */
const logoutLimitMs = 2000
