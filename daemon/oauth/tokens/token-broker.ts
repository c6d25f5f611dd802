import { unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import type { AccessToken } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import type { OAuthDependencies, OAuthEvent, TokenRequest, Tokens } from '../dependencies.ts'
import type { Discover } from '../providers/discovery.ts'
import { requireSameServer, withServer } from '../providers/login-server.ts'
import { findProvider } from '../providers/providers.ts'
import { CrashRecovery, type Leftover, recoverFile, recoverFiles } from './crash-recovery.ts'
import { refreshedEvent, RefreshScheduler } from './refresh-scheduler.ts'
import { isFromFuture, isRenewable, validityMs, wantedMs } from './refresh-time.ts'
import { createRefresh, needsLogin, notLoggedIn } from './refresh.ts'
import type { TokenRecord } from './token-record.ts'
import { readToken, TokenCache, tokenProviders, writeToken } from './token-store.ts'
import { withDeadline } from '../../../shared/deadline.ts'

/** How long a reader waits for a refresh while the stored token is still valid. */
const patienceMs = 5000
const closeLimitMs = 10_000
const storedLimitMs = 10_000
const stepMs = 100

/**
 * One token for one asker: look at the record in memory -> valid for long enough? -> otherwise join or start
 * a refresh -> note who got the token -> issue it. Scheduled refreshes keep the answer to the second step at
 * yes nearly always. A provider that cannot be reached costs nothing while the token is valid; only the
 * provider's own word ends a login.
 */
export class TokenBroker implements Tokens {
  readonly #dependencies: OAuthDependencies
  readonly #abort = new AbortController()
  readonly #cache: TokenCache
  readonly #accessLog: AccessLog
  readonly #refresher: ReturnType<typeof createRefresh>
  readonly #scheduler: RefreshScheduler
  readonly #recovery: CrashRecovery
  readonly #withLock: KeyedMutex
  /** Files of a killed daemon, and logins, that wait for the key of the keychain. */
  #waitingFiles: readonly Leftover[] = []
  #waitingLogins: readonly string[] = []

  /** `unsaved` are new tokens that the previous daemon could not write to the disk. */
  constructor(
    dependencies: OAuthDependencies,
    discover: Discover,
    withLock: KeyedMutex,
    unsaved: readonly TokenRecord[] = [],
  ) {
    const { signal } = this.#abort
    this.#dependencies = dependencies
    this.#withLock = withLock
    this.#cache = new TokenCache(dependencies.home)
    this.#accessLog = new AccessLog(dependencies.announce)
    this.#refresher = createRefresh(dependencies, discover, withLock, signal, unsaved)
    this.#scheduler = new RefreshScheduler(dependencies, this.#refresher.refresh)
    this.#recovery = new CrashRecovery(dependencies, this.#scheduler)
  }

  async access(provider: string, request: TokenRequest): Promise<AccessToken> {
    try {
      const record = await this.#getRecord(provider, request)
      return this.#issue(record, provider, request)
    } catch (error) {
      if (!(error instanceof DoorwardError && error.code === 'provider-unknown'))
        this.#dependencies.count?.('token-not-given', provider)
      throw error
    }
  }

  /**
   * The token that another daemon of this home has stored; waits for one that is valid. Throws `stopping` when
   * none comes in 10 s.
   */
  async stored(provider: string, request: TokenRequest): Promise<AccessToken> {
    for (let waitedMs = 0; ; waitedMs += stepMs) {
      const record = await this.#cache.get(provider)
      if (!record) throw notLoggedIn(provider)
      if (validityMs(record, Date.now()) > 0) return this.#issue(record, provider, request)
      if (waitedMs >= storedLimitMs)
        throw new DoorwardError('stopping', 'the daemon was restarted: send the request again')
      await wait(stepMs)
    }
  }

  /** The newest tokens of a provider, if they could not be written to the disk. */
  unsaved(provider: string): TokenRecord | undefined {
    return this.#refresher.unsaved(provider)
  }

  allUnsaved(): TokenRecord[] {
    return this.#refresher.unsavedProviders().flatMap((provider) => this.unsaved(provider) ?? [])
  }

  /** To be called when a login or logout has changed the file of a provider. */
  changed(provider: string): void {
    this.#refresher.forgetUnsaved(provider)
    this.#scheduler.forget(provider)
    void this.#recovery.resume(provider)
  }

  /** Recovers from a crash, and refreshes in the background from now on. */
  async start(): Promise<void> {
    const { home } = this.#dependencies
    const { recovered, waiting } = await recoverFiles(home)
    this.#waitingFiles = waiting
    for (const provider of recovered) this.#reportRecovered(provider)
    await this.#resume(await tokenProviders(home))
    this.#saveUnsaved()
  }

  /** Continues with the sealed logins, after the keychain has given its key. */
  async unsealed(): Promise<void> {
    const { home } = this.#dependencies
    const [files, logins] = [this.#waitingFiles, this.#waitingLogins]
    this.#waitingFiles = []
    for (const file of files)
      await this.#withLock(file.provider, async () => {
        const result = await recoverFile(home, file)
        if (result === 'recovered') this.#reportRecovered(file.provider)
        if (result === 'useless') await unlink(join(home.tokens, file.name))
      })
    await this.#resume(logins)
  }

  /**
   * Waits for running refreshes, for at most this many milliseconds, and tries again to write what the disk
   * refused, so that no new token is lost.
   */
  async close(limitMs = closeLimitMs): Promise<void> {
    // A user who has freed space on a full disk may well restart the daemon next.
    this.#saveUnsaved()
    const closed = this.#scheduler.close()
    await withDeadline(limitMs, closed, async () => {
      this.#abort.abort()
      await closed
    })
    this.#abort.abort()
  }

  async #resume(providers: readonly string[]): Promise<void> {
    const waiting: string[] = []
    for (const provider of providers) {
      await this.#adopt(provider)
      if (!(await this.#recovery.resume(provider))) waiting.push(provider)
    }
    this.#waitingLogins = waiting
  }

  /**
   * Ties a login of an earlier version to the server that is configured now, once. At the start, so that a later
   * change of the configuration finds it tied.
   */
  async #adopt(provider: string): Promise<void> {
    const { home, gateway, log } = this.#dependencies
    const adopt = async (): Promise<void> => {
      const record = await readToken(home, provider)
      const adopted = record && withServer(record, gateway)
      if (!adopted || adopted === record) return
      await writeToken(home, adopted)
      log.info({ provider, server: adopted.server }, 'the login is tied to its server from now on')
    }
    // A file that cannot be used is reported elsewhere, and tied at its next use.
    await this.#withLock(provider, adopt).catch(() => undefined)
  }

  #reportRecovered(provider: string): void {
    const { log, announce } = this.#dependencies
    log.warn({ provider }, 'a daemon was killed while it saved the renewed token: saved now')
    const detail = 'a renewal was interrupted while it was saved; nothing is lost'
    announce(refreshedEvent(provider, detail))
  }

  #saveUnsaved(): void {
    for (const provider of this.#refresher.unsavedProviders())
      this.#scheduler.refreshInBackground(provider)
  }

  #issue(record: TokenRecord, provider: string, { asker }: TokenRequest): AccessToken {
    requireSameServer(record, this.#dependencies.gateway)
    this.#accessLog.add(provider, asker)
    this.#dependencies.count?.('token-given', provider)
    const { accessToken, tokenType, expiresAt, scopes } = record
    return { provider, accessToken, tokenType, expiresAt, scopes }
  }

  async #getRecord(provider: string, { minValidityMs }: TokenRequest): Promise<TokenRecord> {
    // After a crash the stored token may be void: wait for the first refresh.
    if (this.#recovery.isRecovering(provider))
      await this.#scheduler.running(provider)?.catch(() => undefined)
    const isUnsaved = this.#refresher.isUnsaved(provider)
    const stored = isUnsaved ? undefined : await this.#cache.get(provider)
    if (!stored && !isUnsaved) {
      // Throws for an unknown name: a typing error needs no login.
      findProvider(provider, this.#dependencies.gateway)
      throw notLoggedIn(provider)
    }
    // A running refresh does it, and must not be waited for.
    if (stored && !stored.server && !this.#scheduler.running(provider)) await this.#adopt(provider)
    if (!stored || !isFreshEnough(stored, minValidityMs, Date.now()))
      return this.#refreshed(provider, stored)
    if (!this.#scheduler.isEndingToken(provider)) return stored
    try {
      return await this.#refreshed(provider, stored)
    } catch (error) {
      // The rest of a login that has ended is still issued.
      if (error instanceof DoorwardError && error.code === 'needs-login') return stored
      throw error
    }
  }

  async #refreshed(provider: string, stored: TokenRecord | undefined): Promise<TokenRecord> {
    if (stored) requireSameServer(stored, this.#dependencies.gateway)
    const isValid = stored !== undefined && validityMs(stored, Date.now()) > 0
    if (stored && !isRenewable(stored)) throw needsLogin(stored)
    if (stored && this.#scheduler.isJustRefreshed(stored)) return stored
    try {
      const refresh = this.#scheduler.refreshForReader(provider)
      // A slow provider keeps no one from a token that is still valid.
      return await (isValid ? withDeadline(patienceMs, refresh, () => stored) : refresh)
    } catch (error) {
      // New tokens that the disk refused have most likely ended the stored one.
      if (isValid && isTransientError(error) && !this.#refresher.isUnsaved(provider)) return stored
      throw error
    }
  }
}

/** Valid for as long as the caller wants. */
const isFreshEnough = (
  record: TokenRecord,
  minValidityMs: number | undefined,
  now: number,
): boolean => {
  const left = validityMs(record, now)
  if (isRenewable(record) && record.expiresAt !== null && isFromFuture(record, now)) return false
  return left > 0 && left >= wantedMs(record, minValidityMs)
}

/** An error that may not occur next time, and says nothing about the stored token. */
const isTransientError = (error: unknown): boolean =>
  error instanceof DoorwardError && !['needs-login', 'not-logged-in'].includes(error.code)

const windowMs = 60_000
const maxAskers = 20

/**
 * Reports who was issued a token: once a minute for each provider and asker, and at most 20 askers of a
 * provider, since an asker chooses its own name.
 */
export class AccessLog {
  readonly #announce: (event: OAuthEvent) => void
  readonly #now: () => number
  /** By provider: the askers in the order of their reports, with the times of those. */
  readonly #reported = new Map<string, Map<string, number>>()

  constructor(announce: (event: OAuthEvent) => void, now: () => number = Date.now) {
    this.#announce = announce
    this.#now = now
  }

  /** `asker` is one line of plain text. */
  add(provider: string, asker: string): void {
    const now = this.#now()
    const askers = this.#reported.get(provider) ?? new Map<string, number>()
    this.#reported.set(provider, askers)
    // A time in the future is one from before the clock was set back.
    for (const [name, time] of askers) if (Math.abs(now - time) >= windowMs) askers.delete(name)
    if (askers.has(asker) || askers.size >= maxAskers) return
    askers.set(asker, now)
    this.#announce({ what: 'token', provider, state: 'done', detail: `token issued to ${asker}` })
  }
}
