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
import { createUnfinished } from './unfinished.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type OAuth = {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
  readonly tokens: () => Promise<TokenSummary[]>
  readonly providers: () => Promise<ProviderSummary[]>
  /** Token files that stop a provider, and revocations that wait. */
  readonly problems: () => Promise<StatusProblem[]>
  /** What goes on by itself begins: revocations that wait are tried again. */
  readonly start: () => void
  /** Cancels the logins that wait, closes the callback listener and ends requests to providers. */
  readonly close: () => Promise<void>
}

/** Everything that has to do with logins and tokens, ready to be mounted. */
export const createOAuth = (dependencies: OAuthDependencies): OAuth => {
  const closing = new AbortController()
  const discover = createDiscover()
  const inTurn = createOneAtATime()
  const unfinished = createUnfinished()
  const revokeGrant = createRevokeGrant(discover)
  const revocations = createPendingRevocations(dependencies, discover, inTurn, revokeGrant)
  const logins = createLogins(dependencies, discover, inTurn, revocations)
  const logOut = createLogOut(dependencies, revokeGrant, revocations, inTurn, closing.signal)
  const tokens = () => listTokens(dependencies)
  return {
    routes: createRoutes(logins, (...request) => unfinished.track(logOut(...request)), tokens),
    tokens,
    providers: () => listProviders(dependencies),
    problems: async () => [
      ...(await listProblems(dependencies)),
      ...(await revocations.problems()),
    ],
    start: () => revocations.start(),
    close: async () => {
      closing.abort()
      await Promise.all([logins.close(), unfinished.settled(logoutLimitMs)])
      await revocations.close()
    },
  }
}

/** How long a stop waits for logouts, whose requests it has broken off. */
const logoutLimitMs = 2000
