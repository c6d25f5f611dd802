import type { Router } from '@koa/router'
import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { readDefaultAccounts, resolveLogin } from '../../shared/home/default-accounts.ts'
import { createKeyedMutex, trackPending } from '../util/concurrency.ts'
import {
  explainNotLoggedIn,
  listProblems,
  listProviders,
  listTokens,
  setDefaultAccount,
} from './accounts.ts'
import type { OAuthDependencies, Tokens } from './dependencies.ts'
import { createImport } from './login/import-login.ts'
import { Logins } from './login/login.ts'
import { createLogOut } from './logout/logout.ts'
import { RevocationQueue } from './logout/revocation-queue.ts'
import { createDiscover } from './providers/discovery.ts'
import { createRoutes } from './routes.ts'
import { Sealing } from './sealing.ts'
import { Keychain } from './tokens/keychain.ts'
import { TokenBroker } from './tokens/token-broker.ts'
import type { TokenRecord } from './tokens/token-record.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type OAuth = Tokens & {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
  readonly tokens: () => Promise<TokenSummary[]>
  readonly providers: () => Promise<ProviderSummary[]>
  /** Token files that cannot be used, logins that have ended, and pending revocations. */
  readonly problems: () => Promise<StatusProblem[]>
  /** Recovers from a crash; refreshes tokens and tries revocations in the background from now on. */
  readonly start: () => Promise<void>
  /** Follows a changed `tokens.store`, in the background. */
  readonly configured: () => void
  /** Refuses new logins with `stopping`; pending logins and tokens continue. */
  readonly refuseLogins: () => void
  /** Cancels pending logins, closes the callback listener and ends requests to providers. */
  readonly close: (options?: CloseOptions) => Promise<void>
  /** New tokens that the disk refused: no one else has them. */
  readonly unsaved: () => TokenRecord[]
}

export type CloseOptions = {
  /** The message of a login that is cancelled. */
  readonly reason: string
  /** How long running refreshes are waited for, in milliseconds. */
  readonly refreshLimitMs: number
}

/** How long a stop waits for logouts, whose requests it has aborted. */
const logoutLimitMs = 2000

/** All of logins and tokens. `unsaved` are the unsaved tokens of the previous one. */
export const createOAuth = (
  given: OAuthDependencies,
  unsaved: readonly TokenRecord[] = [],
): OAuth => {
  const closing = new AbortController()
  const { signal } = closing
  const { gateway, processEnv: env = process.env, log } = given
  const keychain = new Keychain({ gateway, env, log, onKey: async () => sealing.onKey() })
  const home = { ...given.home, keychain }
  const dependencies = { ...given, home }
  const discover = createDiscover()
  const withLock = createKeyedMutex()
  const logouts = trackPending()
  const broker = new TokenBroker(dependencies, discover, withLock, unsaved)
  const revocations = new RevocationQueue(dependencies, discover, withLock)
  const shared = { dependencies, discover, withLock, tokens: broker, revocations }
  const logins = new Logins(shared)
  const importLogin = createImport({ ...shared, signal })
  const logOut = createLogOut({ ...shared, signal })
  const sealing = new Sealing({ home, keychain, withLock, broker, revocations, log, signal })
  const tokens = () => listTokens(dependencies)
  /** A valid token is always issued; one that needs a refresh waits while another daemon takes over. */
  const access: Tokens['access'] = async (name, request) => {
    const defaults = request.isExact ? {} : await readDefaultAccounts(home)
    const provider = resolveLogin(name, defaults)
    try {
      return await sealing.retry(() => broker.access(provider, request))
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      if (error.code === 'not-logged-in')
        throw await explainNotLoggedIn(home, { name, login: provider }, error)
      if (error.code !== 'stopping') throw error
      const other = await dependencies.elsewhere?.()
      if (!other) throw error
      return other(provider, request)
    }
  }
  return {
    routes: createRoutes(
      logins,
      (request) => logouts.track(importLogin(request)),
      (provider, forget) => logouts.track(sealing.retry(() => logOut(provider, forget))),
      access,
      tokens,
      (provider, account) =>
        withLock('accounts.json', () => setDefaultAccount(dependencies, provider, account)),
    ),
    access,
    tokens,
    providers: () => listProviders(dependencies),
    problems: async () => [
      ...keychain.problems(),
      ...(await listProblems(dependencies)),
      ...(await revocations.problems()),
    ],
    start: async () => sealing.start(),
    configured: () => sealing.configured(),
    refuseLogins: () => logins.refuseNew(),
    close: async (options) => {
      closing.abort()
      await Promise.all([
        logins.close(options?.reason ?? 'the daemon stopped'),
        broker.close(options?.refreshLimitMs),
        logouts.settled(logoutLimitMs),
        sealing.close(logoutLimitMs),
      ])
      await revocations.close()
    },
    unsaved: () => broker.allUnsaved(),
  }
}
