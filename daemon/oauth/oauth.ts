import type { Router } from '@koa/router'
import type { ProviderSummary, StatusProblem, TokenSummary } from '../../shared/api.ts'
import { DoorwardError, errorName } from '../../shared/errors.ts'
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
import { isKeychainUnavailable, Keychain } from './tokens/keychain.ts'
import { TokenBroker } from './tokens/token-broker.ts'
import type { TokenRecord } from './tokens/token-record.ts'
import { convertTokens, hasSealedFiles } from './tokens/token-store.ts'

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
  const { gateway, processEnv: env = process.env, log } = given
  const keychain = new Keychain({ gateway, env, log, onKey: async () => onKey() })
  const home = { ...given.home, keychain }
  const dependencies = { ...given, home }
  const discover = createDiscover()
  const withLock = createKeyedMutex()
  const logouts = trackPending()
  const broker = new TokenBroker(dependencies, discover, withLock, unsaved)
  const revocations = new RevocationQueue(dependencies, discover, withLock)
  const shared = { dependencies, discover, withLock, tokens: broker, revocations }
  const logins = new Logins(shared)
  const importLogin = createImport({ ...shared, signal: closing.signal })
  const logOut = createLogOut({ ...shared, signal: closing.signal })
  const tokens = () => listTokens(dependencies)
  const conversions = trackPending()
  let started: Promise<void> | undefined

  /** Seals all files, or makes them plain, as `tokens.store` says; `done` of them were changed before. */
  const convert = async (done = 0): Promise<void> => {
    try {
      const changed =
        done + (await revocations.convert()) + (await convertTokens(home, withLock, closing.signal))
      if (changed === 0) return
      const how = keychain.isWanted ? 'sealed with the key in the keychain' : 'made plain again'
      log.info({ files: changed }, `token files were ${how}`)
    } catch (error) {
      log.warn({ error: errorName(error) }, 'not all token files follow tokens.store')
    }
  }
  /** The key came after the start, or later: sealed logins continue. */
  const onKey = async (): Promise<void> => {
    if (!started || closing.signal.aborted) return
    try {
      await started
      await broker.unsealed()
    } catch (error) {
      log.warn({ error: errorName(error) }, 'not all sealed logins continue')
    }
    void conversions.track(convert())
  }
  const askKeychain = async (): Promise<void> => {
    const hasSealed = await hasSealedFiles(home)
    // A new key would make the sealed files look lost where a keychain hides what is locked.
    if (keychain.isWanted || hasSealed) await keychain.ask({ mayCreate: !hasSealed })
  }
  const begin = async (): Promise<void> => {
    // Before they are tried: an attempt may write its file.
    const done = await revocations.convert().catch(() => 0)
    await revocations.start()
    await broker.start()
    // Not waited for: a refresh may run, for as long as its provider takes.
    void conversions.track(convert(done))
  }
  /** Asks the keychain once more where a task fails for want of it. */
  const withKeychain = async <Result>(task: () => Promise<Result>): Promise<Result> => {
    try {
      return await task()
    } catch (error) {
      if (!isKeychainUnavailable(error) || !keychain.isWorthAsking) throw error
      if (!(await keychain.ask({ mayCreate: false }))) throw error
      return task()
    }
  }
  /** A valid token is always issued; one that needs a refresh waits while another daemon takes over. */
  const access: Tokens['access'] = async (name, request) => {
    const defaults = request.isExact ? {} : await readDefaultAccounts(dependencies.home)
    const provider = resolveLogin(name, defaults)
    try {
      return await withKeychain(() => broker.access(provider, request))
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      if (error.code === 'not-logged-in')
        throw await explainNotLoggedIn(dependencies.home, { name, login: provider }, error)
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
      (provider, forget) => logouts.track(withKeychain(() => logOut(provider, forget))),
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
    start: async () => {
      await askKeychain()
      started = begin()
      await started
    },
    configured: () => {
      if (!started || closing.signal.aborted) return
      void conversions.track(keychain.hasKey ? convert() : askKeychain())
    },
    refuseLogins: () => logins.refuseNew(),
    close: async (options) => {
      closing.abort()
      keychain.close()
      await Promise.all([
        logins.close(options?.reason ?? 'the daemon stopped'),
        broker.close(options?.refreshLimitMs),
        logouts.settled(logoutLimitMs),
        conversions.settled(logoutLimitMs),
      ])
      await revocations.close()
    },
    unsaved: () => broker.allUnsaved(),
  }
}
