import type { Router } from '@koa/router'
import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { listProblems, listProviders, listTokens } from './accounts.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { createDiscover } from './provider/discovery.ts'
import { createLogOut } from './logout/logout.ts'
import { createPendingRevocations } from './logout/pending-revocations.ts'
import { createRevokeGrant } from './logout/revoke-grant.ts'
import { createLogins } from './login/login.ts'
import { createOneAtATime } from './one-at-a-time.ts'
import { createRoutes } from './routes.ts'
import { type Tokens, createTokens } from './token/token.ts'
import { createUnfinished } from './unfinished.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type OAuth = {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
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
  /** Cancels the logins that wait, closes the callback listener and ends requests to providers. */
  readonly close: () => Promise<void>
}

/** Everything that has to do with logins and tokens, ready to be mounted. */
export const createOAuth = (dependencies: OAuthDependencies): OAuth => {
  const closing = new AbortController()
  const discover = createDiscover()
  const inTurn = createOneAtATime()
  const unfinished = createUnfinished()
  const broker = createTokens(dependencies, discover, inTurn)
  const shared = {
    dependencies,
    discover,
    inTurn,
    broker,
    revokeGrant: createRevokeGrant(discover),
  }
  const revocations = createPendingRevocations(shared)
  const logins = createLogins({ ...shared, revocations })
  const logOut = createLogOut({ ...shared, revocations }, closing.signal)
  const tokens = () => listTokens(dependencies)
  return {
    routes: createRoutes(
      logins,
      (...request) => unfinished.track(logOut(...request)),
      broker.access,
      tokens,
    ),
    access: broker.access,
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
    close: async () => {
      closing.abort()
      await Promise.all([logins.close(), broker.close(), unfinished.settled(logoutLimitMs)])
      await revocations.close()
    },
  }
}

/** How long a stop waits for logouts, whose requests it has broken off. */
const logoutLimitMs = 2000
