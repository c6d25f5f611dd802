import type { StatusProblem } from '../../../shared/api.ts'
import { getProviderName } from '../../../shared/config/name-forms.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { type KeyedMutex, trackPending } from '../../util/concurrency.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { Revocation } from '../dialects/dialect.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { readAccounts, readToken, removeToken } from '../tokens/token-store.ts'
import {
  addPending,
  isPendingOutdated,
  listPending,
  parseProvider,
  type PendingRevocation,
  readPending,
  removePending,
  removeTemporaryFiles,
  writePending,
} from './revocation-store.ts'
import {
  describeManualWay,
  getExtentBeside,
  isUnfinishedLogout,
  notAsked,
  revoke,
} from './revoke.ts'

const retryMs = 60 * 60 * 1000
const keepMs = 30 * 24 * 60 * 60 * 1000
const closeLimitMs = 2000

/** `2026-12-21`: the last day on which a revocation from that time is tried (milliseconds since 1970). */
export const getLastDay = (since: number): string =>
  new Date(since + keepMs).toISOString().slice(0, 10)

/**
 * Revocations that a provider has not confirmed yet: one file each, tried at start and every hour, until
 * the provider confirms or refuses, or for 30 days. None is tried while a login of its provider is pending,
 * which it could end. Removing a file cancels its revocation.
 */
export class RevocationQueue {
  readonly #dependencies: OAuthDependencies
  readonly #discover: Discover
  readonly #withLock: KeyedMutex
  readonly #closing = new AbortController()
  readonly #work = trackPending()
  readonly #running = new Set<string>()
  readonly #paused = new Map<string, number>()
  #timer: NodeJS.Timeout | undefined

  constructor(dependencies: OAuthDependencies, discover: Discover, withLock: KeyedMutex) {
    this.#dependencies = dependencies
    this.#discover = discover
    this.#withLock = withLock
  }

  /** Finishes logouts that were interrupted, then tries everything, now and every hour. */
  async start(): Promise<void> {
    await this.#recover()
    this.#retryAll()
    this.#timer = setInterval(() => this.#retryAll(), retryMs).unref()
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
    const name = await this.keep(pending)
    if (name === undefined) void this.#work.track(this.#attempt(pending))
    else this.#retry(name)
  }

  /** Seals the plain files, or makes the sealed ones plain, as the configuration says; returns how many. */
  async convert(): Promise<number> {
    const { home } = this.#dependencies
    let changed = 0
    for (const name of await listPending(home).catch(() => [])) {
      // An attempt may write or remove it.
      if (this.#running.has(name) || !(await isPendingOutdated(home, name))) continue
      this.#running.add(name)
      try {
        const pending = await readPending(home, name).catch(() => undefined)
        if (pending) await writePending(home, name, pending)
        if (pending) changed += 1
      } finally {
        this.#running.delete(name)
      }
    }
    return changed
  }

  async forget(name: string): Promise<void> {
    await removePending(this.#dependencies.home, name)
  }

  /** Tries nothing of this login's provider until the returned function is called. */
  pause(login: string): () => void {
    const provider = getProviderName(login)
    const count = (): number => this.#paused.get(provider) ?? 0
    this.#paused.set(provider, count() + 1)
    return () => {
      if (count() > 1) this.#paused.set(provider, count() - 1)
      else {
        this.#paused.delete(provider)
        this.#retryAll(provider)
      }
    }
  }

  /** One problem for each provider with pending revocations, and one for each file that cannot be used. */
  async problems(): Promise<StatusProblem[]> {
    const { home, gateway } = this.#dependencies
    const problems: StatusProblem[] = []
    const waiting = new Map<string, PendingRevocation[]>()
    const addProblem = (error: unknown): string[] => {
      if (!(error instanceof DoorwardError)) throw error
      problems.push({ code: error.code, detail: error.message, hint: error.hint ?? '' })
      return []
    }
    for (const name of await listPending(home).catch(addProblem)) {
      const pending = await readPending(home, name).catch(addProblem)
      if (!pending || Array.isArray(pending)) continue
      waiting.set(pending.provider, [...(waiting.get(pending.provider) ?? []), pending])
    }
    return [
      ...problems,
      ...[...waiting].map(([provider, all]) => toProblem(provider, all, gateway)),
    ]
  }

  /** Stops within seconds; the rest stays on the disk for the next daemon. */
  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#work.settled(closeLimitMs)
    this.#closing.abort()
    await this.#work.settled(closeLimitMs)
  }

  async #recover(): Promise<void> {
    const { home, log } = this.#dependencies
    try {
      await removeTemporaryFiles(home)
      for (const name of await listPending(home))
        // `problems` reports a file that cannot be used.
        await this.#finishLogout(name).catch(() => undefined)
    } catch (error) {
      log.warn({ error: errorName(error) }, 'pending revocations cannot be used')
    }
  }

  /** A daemon that was killed in the middle of a logout has left the token file too. */
  async #finishLogout(name: string): Promise<void> {
    const { home, log } = this.#dependencies
    const pending = await readPending(home, name)
    if (!pending) return
    const { provider } = pending
    await this.#withLock(provider, async () => {
      const current = await this.#currentLogin(provider)
      if (!current || !isUnfinishedLogout(pending, current)) return
      await removeToken(home, provider)
      log.info({ provider }, 'finished a logout that was interrupted')
    })
  }

  #retryAll(provider?: string): void {
    const retryAll = async (): Promise<void> => {
      // `problems` reports a folder that cannot be used.
      const names = await listPending(this.#dependencies.home).catch(() => [])
      for (const name of names)
        if (provider === undefined || getProviderName(parseProvider(name) ?? '') === provider)
          this.#retry(name)
    }
    void this.#work.track(retryAll())
  }

  #retry(name: string): void {
    const provider = parseProvider(name)
    if (provider === undefined || this.#running.has(name)) return
    if (this.#paused.has(getProviderName(provider))) return
    const { home, log } = this.#dependencies
    this.#running.add(name)
    const attempt = async (): Promise<void> => {
      try {
        const pending = await readPending(home, name)
        if (pending) await this.#attempt(pending, name)
      } catch (error) {
        log.warn({ provider, error: errorName(error) }, 'a revocation was not tried')
      } finally {
        this.#running.delete(name)
      }
    }
    void this.#work.track(attempt())
  }

  /** Asks the provider once, and keeps, removes or gives up the file by its answer. */
  async #attempt(pending: PendingRevocation, name?: string): Promise<void> {
    if (this.#closing.signal.aborted) return
    const { home, log } = this.#dependencies
    const revocation = await this.#revokeAllowed(pending)
    if (!revocation) {
      if (name !== undefined) await removePending(home, name)
      log.info(
        { provider: pending.provider },
        'tokens are not revoked: that would end the newer login',
      )
      return
    }
    const { revokedAtProvider, isWorthRetry, detail = 'no reason given' } = revocation
    if (!revokedAtProvider && isWorthRetry) {
      // Not waiting for the answer says nothing about the provider.
      if (this.#closing.signal.aborted) return
      if (name !== undefined && Date.now() < Date.parse(pending.since) + keepMs) {
        // Someone may have removed the file in the meantime.
        if (await readPending(home, name))
          await writePending(home, name, { ...pending, lastFailure: detail })
        return
      }
    }
    if (name !== undefined) await removePending(home, name)
    this.#report(pending, { revokedAtProvider, isWorthRetry: isWorthRetry === true, detail })
  }

  /** Undefined where nothing may be revoked because of a newer login. */
  async #revokeAllowed(pending: PendingRevocation): Promise<Revocation | undefined> {
    let provider: Provider
    try {
      provider = findProvider(pending.provider, this.#dependencies.gateway)
    } catch (error) {
      // gateway.yaml may name the provider again tomorrow.
      return { ...notAsked(error), isWorthRetry: true }
    }
    const logins = await readAccounts(this.#dependencies.home, provider.name)
    const extent = getExtentBeside(pending, logins, getDialect(provider))
    if (extent === undefined) return undefined
    return revoke(this.#discover, provider, { ...pending, extent }, this.#closing.signal)
  }

  /** A damaged file counts as no login; other errors are thrown, since they can be fixed. */
  async #currentLogin(provider: string): Promise<TokenRecord | undefined> {
    try {
      return await readToken(this.#dependencies.home, provider)
    } catch (error) {
      if (error instanceof DoorwardError && error.code === 'token-file-damaged') return undefined
      throw error
    }
  }

  #report(
    { provider, account, since, lastFailure }: PendingRevocation,
    { revokedAtProvider, isWorthRetry, detail }: Required<Revocation>,
  ): void {
    const { log, announce, gateway } = this.#dependencies
    if (revokedAtProvider) log.info({ provider }, 'revoked the tokens of an earlier login')
    else log.warn({ provider, detail }, 'gave up revoking the tokens of an earlier login')
    // Only a revocation that failed before was reported as pending.
    if (lastFailure === undefined) return
    if (revokedAtProvider) {
      const whose = account ? `of ${account.name} ` : ''
      announce({
        what: 'revoked',
        provider,
        state: 'done',
        detail: `revoked: the tokens ${whose}that were given up on ${since.slice(0, 10)}`,
      })
      return
    }
    const why = isWorthRetry ? `${detail}, for 30 days` : detail
    announce({
      what: 'revocation-failed',
      provider,
      state: 'failed',
      code: isWorthRetry ? 'provider-unavailable' : 'provider-refused',
      detail: `the tokens of an earlier login are not revoked: ${why}; you can revoke the access ${describeManualWay(provider, gateway)}`,
    })
  }
}

const toProblem = (
  provider: string,
  all: readonly PendingRevocation[],
  gateway: Gateway,
): StatusProblem => {
  const newest = Math.max(...all.map(({ since }) => Date.parse(since)))
  const failure = all.find(({ lastFailure }) => lastFailure !== undefined)?.lastFailure
  const count = all.length === 1 ? 'an earlier login' : `${all.length} earlier logins`
  return {
    code: 'revocation-pending',
    detail: `the tokens of ${count} at ${provider} are not revoked yet${failure === undefined ? '' : `: ${failure}`}`,
    hint: `nothing to do: it is tried again until ${getLastDay(newest)}; by hand you can do it ${describeManualWay(provider, gateway)}`,
  }
}
