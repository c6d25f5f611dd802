import type { StatusProblem } from '../../../shared/api/api.ts'
import { getProviderName } from '../../../shared/config/name-forms.ts'
import { errorName } from '../../../shared/errors.ts'
import { type KeyedMutex, trackPending } from '../../util/concurrency.ts'
import { toProblem } from '../accounts.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { Revocation } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Discover } from '../providers/discovery.ts'
import { findServerError, withServer } from '../providers/login-server.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import { readAccounts, readToken, removeToken } from '../tokens/token-store.ts'
import {
  addPending,
  listPending,
  type PendingRevocation,
  readPending,
  removePending,
  removeTemporaryFiles,
  writePending,
} from './revocation-store.ts'
import { describeManualWay, getEndedBy, isSameGrant, notAsked, revoke } from './revoke.ts'

const retryMs = 60 * 60 * 1000
const keepMs = 30 * 24 * 60 * 60 * 1000
const closeLimitMs = 2000

/** `2026-12-21`: the last day on which a revocation from that time is tried (milliseconds since 1970). */
export const getLastDay = (since: number): string =>
  new Date(since + keepMs).toISOString().slice(0, 10)

/**
 * Revocations that a provider has not confirmed yet: one file each, tried at start and every hour, until
 * the provider confirms or refuses, or for 30 days. A pending login of the same provider
 * pauses them: they could end it. Removing a file cancels its revocation.
 */
export class Revocations {
  readonly #dependencies: OAuthDependencies
  readonly #discover: Discover
  readonly #withLock: KeyedMutex
  readonly #closing = new AbortController()
  readonly #work = trackPending()
  /** The providers of pending logins. */
  readonly #pendingLogins = new Set<{ readonly provider: string }>()
  #timer: NodeJS.Timeout | undefined

  constructor(dependencies: OAuthDependencies, discover: Discover, withLock: KeyedMutex) {
    this.#dependencies = dependencies
    this.#discover = discover
    this.#withLock = withLock
  }

  /** Finishes logouts that were interrupted, then tries everything, now and every hour. */
  async start(): Promise<void> {
    const { home, log } = this.#dependencies
    try {
      await removeTemporaryFiles(home)
      // `problems` reports a file that cannot be used.
      for (const name of await listPending(home)) {
        await this.#adopt(name).catch(() => undefined)
        await this.#finishLogout(name).catch(() => undefined)
      }
    } catch (error) {
      log.warn({ error: errorName(error) }, 'pending revocations cannot be used')
    }
    this.tryAll()
    this.#timer = setInterval(() => this.tryAll(), retryMs).unref()
  }

  /** Tries all of them in the background. Each file that stays is written again: sealed, or plain, as configured. */
  tryAll(): void {
    const tryEach = async (): Promise<void> => {
      // `problems` reports a folder that cannot be used.
      for (const name of await listPending(this.#dependencies.home).catch(() => []))
        await this.#tryFile(name)
    }
    void this.#work.track(this.#withLock('tokens/revoke', tryEach))
  }

  /**
   * Writes a revocation to the disk and returns the name of its file; undefined, and logged, where the
   * disk refuses it.
   */
  async keep(pending: PendingRevocation): Promise<string | undefined> {
    const { home, log } = this.#dependencies
    try {
      return await addPending(home, pending)
    } catch (error) {
      const fields = { provider: pending.provider, error: errorName(error) }
      log.error(fields, 'a pending revocation cannot be written to the disk')
      return undefined
    }
  }

  /** Revokes tokens that no one uses, in the background. */
  async revokeUnused(pending: PendingRevocation): Promise<void> {
    if ((await this.keep(pending)) === undefined) void this.#work.track(this.#attempt(pending))
    else this.tryAll()
  }

  /** Tries nothing of this login's provider until the signal is aborted. */
  pauseFor(login: string, signal: AbortSignal): void {
    const pendingLogin = { provider: getProviderName(login) }
    this.#pendingLogins.add(pendingLogin)
    signal.addEventListener('abort', () => {
      this.#pendingLogins.delete(pendingLogin)
      this.tryAll()
    })
  }

  /** One problem for each pending revocation, and for each file that cannot be used. */
  async problems(): Promise<StatusProblem[]> {
    const { home, gateway } = this.#dependencies
    const problems: StatusProblem[] = []
    try {
      for (const name of await listPending(home)) {
        const problem = await readPending(home, name).then(
          (pending) => pending && describePending(pending, gateway),
          (error: unknown) => toProblem(error),
        )
        if (problem) problems.push(problem)
      }
    } catch (error) {
      problems.push(toProblem(error))
    }
    return problems
  }

  /** Stops within seconds; the rest stays on the disk for the next daemon. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#work.settled(closeLimitMs)
    this.#closing.abort()
    await this.#work.settled(closeLimitMs)
  }

  /** Ties a file of an earlier version to the configured server, before a change of the configuration. */
  async #adopt(name: string): Promise<void> {
    const { home, gateway } = this.#dependencies
    const pending = await readPending(home, name)
    const adopted = pending && withServer(pending, gateway)
    if (adopted && adopted !== pending) await writePending(home, name, adopted)
  }

  /** A daemon that was killed in the middle of a logout has left the token file too. */
  async #finishLogout(name: string): Promise<void> {
    const { home, log } = this.#dependencies
    const pending = await readPending(home, name)
    if (pending?.extent !== 'grant') return
    const { provider, since } = pending
    await this.#withLock(provider, async () => {
      const login = await readToken(home, provider)
      if (!login || !isSameGrant(pending, login)) return
      // A later login may have got the same tokens.
      if (Date.parse(login.obtainedAt) > Date.parse(since)) return
      await removeToken(home, provider)
      log.info({ provider }, 'finished a logout that was interrupted')
    })
  }

  async #tryFile(name: string): Promise<void> {
    const { home, log } = this.#dependencies
    try {
      const pending = await readPending(home, name)
      if (pending) await this.#attempt(pending, name)
    } catch (error) {
      log.warn({ file: name, error: errorName(error) }, 'a revocation was not tried')
    }
  }

  /** Asks the provider once, and keeps or removes the file by its answer. */
  async #attempt(kept: PendingRevocation, name?: string): Promise<void> {
    const { home, gateway } = this.#dependencies
    const pending = withServer(kept, gateway)
    const provider = getProviderName(pending.provider)
    const isPaused = [...this.#pendingLogins].some((login) => login.provider === provider)
    if (this.#closing.signal.aborted || (isPaused && name !== undefined)) return
    const revocation = await this.#revoke(pending)
    if (revocation?.isWorthRetry) {
      // A stop ends the request, and says nothing about the provider.
      if (this.#closing.signal.aborted) return
      if (name !== undefined && Date.now() < Date.parse(pending.since) + keepMs) {
        // Someone may have removed the file in the meantime.
        if (await readPending(home, name))
          await writePending(home, name, { ...pending, lastFailure: revocation.detail })
        return
      }
    }
    if (name !== undefined) await removePending(home, name)
    this.#report(pending, revocation)
  }

  /** Undefined where nothing may be revoked because of a newer login. */
  async #revoke(pending: PendingRevocation): Promise<Revocation | undefined> {
    const { home, gateway } = this.#dependencies
    const error = findServerError(pending, gateway)
    // gateway.yaml may name the server again tomorrow.
    if (error) return { ...notAsked(error), isWorthRetry: true }
    let provider: Provider
    try {
      provider = findProvider(pending.provider, gateway)
    } catch (error) {
      return { ...notAsked(error), isWorthRetry: true }
    }
    const logins = await readAccounts(home, provider.name)
    if (getEndedBy(pending, logins, getDialect(provider)).length > 0) return undefined
    return revoke(this.#discover, provider, pending, logins, this.#closing.signal)
  }

  #report(pending: PendingRevocation, revocation: Revocation | undefined): void {
    const { provider, account, since, lastFailure } = pending
    const { log, announce, gateway } = this.#dependencies
    if (!revocation)
      return log.info({ provider }, 'tokens are not revoked: that would end the newer login')
    const { revokedAtProvider, isWorthRetry, detail } = revocation
    if (revokedAtProvider) log.info({ provider }, 'revoked the tokens of an earlier login')
    else log.warn({ provider, detail }, 'gave up revoking the tokens of an earlier login')
    // Only a revocation that failed before was reported as pending.
    if (lastFailure === undefined) return
    if (revokedAtProvider) {
      const whose = account ? `of ${account.name} ` : ''
      const what = `the tokens ${whose}that were given up on ${since.slice(0, 10)}`
      return announce({ what: 'revoked', provider, state: 'done', detail: `revoked: ${what}` })
    }
    const why = isWorthRetry ? `${detail}, for 30 days` : detail
    announce({
      what: 'revocation-failed',
      provider,
      state: 'failed',
      code: isWorthRetry ? 'provider-unavailable' : 'provider-refused',
      detail: `the tokens of an earlier login are not revoked: ${why}; you can revoke the access ${describeManualWay(pending, gateway)}`,
    })
  }
}

const describePending = (
  pending: PendingRevocation,
  gateway: OAuthDependencies['gateway'],
): StatusProblem => {
  const { provider, since, lastFailure } = pending
  return {
    code: 'revocation-pending',
    detail: `the tokens of an earlier login at ${provider} are not revoked yet${lastFailure === undefined ? '' : `: ${lastFailure}`}`,
    hint: `nothing to do: it is tried again until ${getLastDay(Date.parse(since))}; by hand you can do it ${describeManualWay(pending, gateway)}`,
    about: { provider },
  }
}
