import type { Router } from '@koa/router'
import type { BotSummary } from '../../shared/api/bots.ts'
import type {
  AccessToken,
  ProviderSummary,
  StatusProblem,
  TokenSummary,
  ImportLogin,
} from '../../shared/api/api.ts'
import { askGh, getGitHubHost } from '../../shared/gh.ts'
import { gitHosts } from '../../shared/config/git-hosts.ts'
import { getProviderName } from '../../shared/config/name-forms.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { readDefaultAccounts, resolveLogin } from '../../shared/home/default-accounts.ts'
import type { HeldSecret } from '../delivery/secrets/held.ts'
import { BoundedMap } from '../util/collections.ts'
import { createKeyedMutex, trackPending } from '../util/concurrency.ts'
import {
  explainNotLoggedIn,
  listProblems,
  listProviders,
  listTokens,
  setDefaultAccount,
} from './accounts.ts'
import type { OAuthDependencies, TokenRequest, Tokens } from './dependencies.ts'
import { Bots } from '../bots/bots.ts'
import { botCallbackPath } from '../bots/create-bot.ts'
import { botRoutes } from '../bots/routes.ts'
import { HeldFiles, ofTokens, toLoginToken } from './held-secrets.ts'
import { CallbackServer } from './login/callback-server.ts'
import { Logins } from './login/login.ts'
import { importLogin } from './login/save-grant.ts'
import { createLogOut } from './logout/logout.ts'
import { Revocations } from './logout/revocations.ts'
import { adoptClients } from './providers/client-store.ts'
import { createDiscover } from './providers/discovery.ts'
import { createRoutes } from './routes.ts'
import { Sealing } from './sealing.ts'
import { Keychain } from './tokens/keychain.ts'
import { TokenBroker } from './tokens/token-broker.ts'
import type { TokenRecord } from './tokens/token-record.ts'

export type { Log, OAuthDependencies, OAuthEvent } from './dependencies.ts'

export type CloseOptions = {
  /** The message of a login that is cancelled. */
  readonly reason: string
  /** How long running refreshes are waited for, in milliseconds. */
  readonly refreshLimitMs: number
}

/** How long a stop waits for logouts, whose requests it has aborted. */
const logoutLimitMs = 2000

/** Tokens that were issued and may be valid yet, though a newer one has replaced them. */
const maxIssued = 1000

/** All of logins and tokens. */
export class OAuth implements Tokens {
  /** `/oauth/…`, to be mounted behind the guard. Handlers throw `DoorwardError`. */
  readonly routes: Router
  /** `/bots/…`, in the same way. */
  readonly botRoutes: Router
  readonly bots: Bots
  readonly #dependencies: OAuthDependencies
  readonly #keychain: Keychain
  readonly #tokens: TokenBroker
  readonly #revocations: Revocations
  readonly #logins: Logins
  readonly #callback: CallbackServer
  readonly #sealing: Sealing
  readonly #logouts = trackPending()
  readonly #closing = new AbortController()
  readonly #heldFiles: HeldFiles
  #lastHeld:
    | {
        readonly files: readonly HeldSecret[]
        readonly issued: number
        readonly all: readonly HeldSecret[]
      }
    | undefined
  /** How many tokens were issued. */
  #issuedCount = 0
  /** The login of each token that was issued. */
  readonly #issued = new BoundedMap<string, string>(maxIssued)

  /** `unsaved` are the unsaved tokens of the previous one. */
  constructor(given: OAuthDependencies, unsaved: readonly TokenRecord[] = []) {
    const { gateway, processEnv: env = process.env, log } = given
    const { signal } = this.#closing
    this.#keychain = new Keychain({ gateway, env, warn: log.warn.bind(log) })
    const dependencies = { ...given, home: { ...given.home, keychain: this.#keychain } }
    this.#heldFiles = new HeldFiles(dependencies.home)
    const discover = createDiscover()
    const withLock = createKeyedMutex()
    this.#dependencies = dependencies
    this.#tokens = new TokenBroker(dependencies, discover, withLock, unsaved)
    this.#revocations = new Revocations(dependencies, discover, withLock)
    const tokens = this.#tokens
    const services = { dependencies, discover, withLock, tokens, revocations: this.#revocations }
    this.#callback = new CallbackServer((parameters, address) =>
      new URL(address).pathname === botCallbackPath
        ? this.bots.creations.finish(parameters)
        : this.#logins.finishInBrowser(parameters, address),
    )
    this.#logins = new Logins(services, this.#callback)
    this.bots = new Bots({ dependencies, callback: this.#callback, signal })
    this.botRoutes = botRoutes(this.bots)
    this.#sealing = new Sealing({ ...services, keychain: this.#keychain, signal })
    const logOut = createLogOut({ ...services, signal })
    const importToken = async (request: ImportLogin) => {
      await this.bots.refuseLogin(request.provider)
      return this.#logouts.track(importLogin(services, request, signal))
    }
    this.routes = createRoutes({
      logins: this.#logins,
      startLogin: async (request) => {
        await this.bots.refuseLogin(request.provider)
        return this.#logins.start(request)
      },
      importLogin: importToken,
      importGh: async () => {
        const host = getGitHubHost({ providers: dependencies.gateway.providers })
        return importToken({ provider: 'github', accessToken: await askGh(host) })
      },
      logOut: async (provider, forget) => {
        await this.bots.refuseLogin(provider)
        return this.#logouts.track(this.#sealing.retry(() => logOut(provider, forget)))
      },
      access: (name, request) => this.access(name, request),
      listTokens: () => this.tokens(),
      setDefault: (provider, account) =>
        withLock('accounts.json', () => setDefaultAccount(dependencies, provider, account)),
    })
  }

  /** A valid token is always issued; after a restart one that needs a refresh waits for the other daemon. */
  async access(name: string, request: TokenRequest): Promise<AccessToken> {
    const token = await this.#access(name, request)
    if (this.#issued.get(token.accessToken) === undefined) this.#issuedCount += 1
    this.#issued.set(token.accessToken, token.provider)
    return token
  }

  /** All that must not leave this machine: what the files have now, and each token that was issued before. */
  async held(): Promise<readonly HeldSecret[]> {
    const files = await this.#heldFiles.read()
    const unsaved = this.unsaved()
    const last = this.#lastHeld
    if (last?.files === files && last.issued === this.#issuedCount && unsaved.length === 0)
      return last.all
    const all = [
      ...[...this.#issued].map(([value, login]) => toLoginToken(login, value)),
      ...unsaved.flatMap((record) => ofTokens(record.provider, record)),
      ...files,
    ]
    this.#lastHeld = unsaved.length === 0 ? { files, issued: this.#issuedCount, all } : undefined
    return all
  }

  async #access(name: string, request: TokenRequest): Promise<AccessToken> {
    const { home, isReplaced } = this.#dependencies
    const defaults = request.isExact ? {} : await readDefaultAccounts(home)
    const provider = resolveLogin(name, defaults)
    const { gitOrigin } = request
    if (gitOrigin !== undefined) this.#requireGitHost(provider, gitOrigin)
    const bot = await this.#sealing.retry(() => this.bots.find(provider))
    if (bot) return this.bots.access(bot, request)
    try {
      return await this.#sealing.retry(() => this.#tokens.access(provider, request))
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      if (error.code === 'not-logged-in')
        throw await explainNotLoggedIn(home, { name, login: provider }, error)
      if (error.code !== 'stopping' || !(await isReplaced?.())) throw error
      return this.#tokens.stored(provider, request)
    }
  }

  /** git reads gateway.yaml itself, and an invalid file changes nothing here. */
  #requireGitHost(login: string, gitOrigin: string): void {
    const provider = getProviderName(login)
    const hosts = gitHosts(this.#dependencies.gateway)
    if (hosts.some((host) => host.origin === gitOrigin && host.provider === provider)) return
    throw new DoorwardError(
      'config-invalid',
      `the configuration that is in use has no login of ${provider} for git at this host`,
      { hint: 'doorward config check', about: { provider } },
    )
  }

  async tokens(): Promise<TokenSummary[]> {
    const bots = await this.bots.list()
    return [...(await listTokens(this.#dependencies)), ...bots.map(toTokenSummary)]
  }

  async providers(): Promise<ProviderSummary[]> {
    return listProviders(this.#dependencies)
  }

  /** Token files that cannot be used, logins that have ended, and pending revocations. */
  async problems(): Promise<StatusProblem[]> {
    return [
      ...this.#keychain.problems(),
      ...(await listProblems(this.#dependencies)),
      ...(await this.#revocations.problems()),
      ...(await this.bots.problems()),
    ]
  }

  /** Recovers from a crash; refreshes tokens and tries revocations in the background from now on. */
  async start(): Promise<void> {
    await adoptClients(this.#dependencies.home, this.#dependencies.gateway)
    await this.#sealing.start()
  }

  /** The key of the keychain, where tokens.store is that. */
  get sealing(): { readonly isWanted: boolean; readonly key: Keychain['sealKey'] } {
    return { isWanted: this.#keychain.isWanted, key: this.#keychain.sealKey }
  }

  /** Follows a changed `tokens.store`, in the background. */
  configured(): void {
    this.#sealing.configured()
  }

  /** Refuses new logins with `stopping`; pending logins and tokens continue. */
  refuseLogins(): void {
    this.#logins.refuseNew()
  }

  /** Cancels pending logins, closes the callback listener and ends requests to providers. */
  async close(options?: CloseOptions): Promise<void> {
    this.#closing.abort()
    this.bots.creations.close()
    await Promise.all([
      this.#logins.close(options?.reason ?? 'the daemon stopped'),
      this.#tokens.close(options?.refreshLimitMs),
      this.#logouts.settled(logoutLimitMs),
      this.#sealing.close(logoutLimitMs),
    ])
    this.#callback.close()
    await this.#revocations.close()
  }

  /** New tokens that the disk refused: no one else has them. */
  unsaved(): TokenRecord[] {
    return this.#tokens.allUnsaved()
  }
}

/** A bot as a login: its tokens are minted for each step. */
const toTokenSummary = ({ login, name, createdAt }: BotSummary): TokenSummary => ({
  provider: login,
  status: 'ok',
  account: { id: name, name: `${name}[bot]` },
  scopes: [],
  expiresAt: null,
  refreshable: true,
  obtainedAt: createdAt,
  isBot: true,
})
