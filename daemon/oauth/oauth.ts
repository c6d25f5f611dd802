import type { Router } from '@koa/router'
import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { listProblems, listProviders, listTokens } from './accounts.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { createDiscover } from './provider/discovery.ts'
import { createLogOut } from './logout/logout.ts'
import { createLogins } from './login/login.ts'
import { createOneAtATime } from './one-at-a-time.ts'
import { createRoutes } from './routes.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type OAuth = {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
  readonly tokens: () => Promise<TokenSummary[]>
  readonly providers: () => Promise<ProviderSummary[]>
  /** Token files that stop a provider. */
  readonly problems: () => Promise<StatusProblem[]>
  /** Cancels the logins that wait, closes the callback listener and ends requests to providers. */
  readonly close: () => Promise<void>
}

/** Everything that has to do with logins and tokens, ready to be mounted. */
export const createOAuth = (dependencies: OAuthDependencies): OAuth => {
  const closing = new AbortController()
  const discover = createDiscover()
  const inTurn = createOneAtATime()
  const logins = createLogins(dependencies, discover, inTurn)
  const logOut = createLogOut(dependencies, discover, inTurn, closing.signal)
  const tokens = () => listTokens(dependencies)
  return {
    routes: createRoutes(logins, logOut, tokens),
    tokens,
    providers: () => listProviders(dependencies),
    problems: () => listProblems(dependencies),
    close: async () => {
      closing.abort()
      await logins.close()
    },
  }
}
