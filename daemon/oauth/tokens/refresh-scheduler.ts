import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { knownError } from '../../util/assets.ts'
import type { OAuthDependencies, OAuthEvent } from '../dependencies.ts'
import { getDialect } from '../dialects/dialects.ts'
import { findProvider } from '../providers/providers.ts'
import { backoffMs, isFromFuture, refreshTime } from './refresh-time.ts'
import type { Refresh } from './refresh.ts'
import type { TokenRecord } from './token-record.ts'

/** A token this young is as fresh as it can be: many readers at the same time cause one refresh. */
const justNowMs = 1000
/** After this many failures in a row, readers can cause one refresh a second. */
const freeFailures = 3
const longestPauseMs = 10 * 60_000

/** The last refresh of a provider. */
type LastRefresh = {
  readonly at: number
  /** Failures in a row. */
  readonly failures: number
  /** Until then every reader gets the same error. */
  readonly retryAt: number
  readonly error?: DoorwardError
  readonly accessToken: string | undefined
}

/**
 * One refresh of a provider at a time, shared by all who wait for it. Its result is logged, counted and
 * announced; then the next one, or the next try, is scheduled. A refresh that ends the old access
 * token, as at GitHub, never runs ahead of time: a program may be using that token.
 */
export class RefreshScheduler {
  readonly #dependencies: OAuthDependencies
  readonly #refresh: Refresh
  readonly #running = new Map<string, Promise<TokenRecord>>()
  readonly #last = new Map<string, LastRefresh>()
  readonly #timers = new WallClockTimers((provider) => this.refreshInBackground(provider))
  #isClosed = false

  constructor(dependencies: OAuthDependencies, refresh: Refresh) {
    this.#dependencies = dependencies
    this.#refresh = refresh
  }

  /** Joins the running refresh of this provider or starts one. */
  async refresh(provider: string): Promise<TokenRecord> {
    const running = this.#running.get(provider)
    if (running) return running
    if (this.#isClosed) throw new DoorwardError('stopping', 'the daemon is stopping')
    const started = this.#refresh(provider)
      .then(
        (record) => this.#onSuccess(provider, record),
        (error: unknown) => this.#onFailure(provider, error),
      )
      .finally(() => this.#running.delete(provider))
    this.#running.set(provider, started)
    return started
  }

  /** Calls `refresh`, or throws the last error again while it is too soon for the next try. */
  async refreshForReader(provider: string): Promise<TokenRecord> {
    const last = this.#last.get(provider)
    const now = Date.now()
    // A clock that was set back leaves times in the future: they delay no one.
    if (last?.error && last.at <= now && now < last.retryAt) throw last.error
    return this.refresh(provider)
  }

  refreshInBackground(provider: string): void {
    // A failure has been reported and is tried again.
    this.refresh(provider).catch(() => undefined)
  }

  running(provider: string): Promise<TokenRecord> | undefined {
    return this.#running.get(provider)
  }

  /** True while a refresh is running that ends the stored access token. */
  isEndingToken(provider: string): boolean {
    return this.#running.has(provider) && this.#endsOldToken(provider)
  }

  /** Whether this token is as fresh as it can be. */
  isJustRefreshed({ provider, accessToken }: TokenRecord): boolean {
    const last = this.#last.get(provider)
    return last?.accessToken === accessToken && Math.abs(Date.now() - last.at) < justNowMs
  }

  /** Refreshes this token ahead of its end. */
  schedule(provider: string, record: TokenRecord): void {
    if (this.#isClosed) return
    if (this.#endsOldToken(provider)) return this.#timers.clear(provider)
    const at = refreshTime(record, Math.random())
    if (at === undefined) this.#timers.clear(provider)
    else this.#timers.set(provider, isFromFuture(record, Date.now()) ? Date.now() : at)
  }

  /** Forgets a provider whose file a login or logout has changed. */
  forget(provider: string): void {
    this.#last.delete(provider)
    this.#timers.clear(provider)
  }

  /** Refuses new refreshes and waits for the running ones. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timers.close()
    await Promise.allSettled(this.#running.values())
  }

  #onSuccess(provider: string, record: TokenRecord): TokenRecord {
    const { log, count, announce } = this.#dependencies
    const failures = this.#last.get(provider)?.failures ?? 0
    const { accessToken, expiresAt } = record
    this.#last.set(provider, { at: Date.now(), failures: 0, retryAt: 0, accessToken })
    log.info({ provider, expiresAt }, 'token renewed')
    count?.('token-renewed', provider)
    if (failures > 0) announce(refreshedEvent(provider, 'the token could be renewed again'))
    this.schedule(provider, record)
    return record
  }

  #onFailure(provider: string, thrown: unknown): never {
    const { log, count, announce } = this.#dependencies
    log.warn({ provider }, `token not renewed: ${errorName(thrown)}`)
    count?.('renewal-failed', provider)
    const error = knownError(thrown)
    if (error.code === 'needs-login' || error.code === 'not-logged-in') {
      this.forget(provider)
      if (error.code === 'needs-login') announce(failedEvent('needs-login', provider, error))
      throw error
    }
    const failures = (this.#last.get(provider)?.failures ?? 0) + 1
    const now = Date.now()
    const { retryAfterMs } = error
    // A provider may be back soon; after several failures not every reader asks it again.
    const pauseMs = failures <= freeFailures && !retryAfterMs ? 0 : 1000
    const retryAt = now + Math.min(Math.max(pauseMs, retryAfterMs ?? 0), longestPauseMs)
    this.#last.set(provider, { at: now, failures, retryAt, error, accessToken: undefined })
    if (!this.#isClosed)
      this.#timers.set(provider, now + backoffMs(failures, Math.random(), retryAfterMs))
    if (failures === 1) announce(failedEvent('refresh-failed', provider, error))
    throw error
  }

  #endsOldToken(provider: string): boolean {
    try {
      const { gateway } = this.#dependencies
      return getDialect(findProvider(provider, gateway)).refreshEndsAccessToken === true
    } catch {
      // No longer in gateway.yaml: nothing refreshes it.
      return false
    }
  }
}

/** A machine that slept, or a clock that was set, is noticed within half a minute. */
const longestSleepMs = 30_000
/** A clock that was set back by more than this says nothing about when a token expires. */
const noticeableMs = 60_000

/**
 * Calls back for a name at its time by the wall clock. Node's timers stop while a machine sleeps, so the
 * clock is checked from time to time. Calls back too when the clock was set back, since the time was one of
 * the clock before. Keeps no process alive.
 */
export class WallClockTimers {
  readonly #callback: (name: string) => void
  readonly #now: () => number
  readonly #timers = new Map<string, NodeJS.Timeout>()

  constructor(callback: (name: string) => void, now: () => number = Date.now) {
    this.#callback = callback
    this.#now = now
  }

  /** One timer for each name: a new time replaces the old one. `at` in milliseconds since 1970. */
  set(name: string, at: number): void {
    this.clear(name)
    const waitMs = Math.min(Math.max(0, at - this.#now()), longestSleepMs)
    const skewMs = this.#now() - performance.now()
    const timer = setTimeout(() => {
      this.#timers.delete(name)
      const wasSetBack = this.#now() - performance.now() < skewMs - noticeableMs
      if (this.#now() >= at || wasSetBack) this.#callback(name)
      else this.set(name, at)
    }, waitMs)
    this.#timers.set(name, timer.unref())
  }

  clear(name: string): void {
    clearTimeout(this.#timers.get(name))
    this.#timers.delete(name)
  }

  close(): void {
    for (const name of this.#timers.keys()) this.clear(name)
  }
}

/** A successful refresh that is worth an event. */
export const refreshedEvent = (provider: string, detail: string): OAuthEvent => ({
  what: 'refresh',
  provider,
  state: 'done',
  detail,
})

/** A refresh that failed, or found that the login has ended. */
export const failedEvent = (
  what: 'needs-login' | 'refresh-failed',
  provider: string,
  { code, message }: DoorwardError,
): OAuthEvent => ({ what, provider, state: 'failed', code, detail: message })
