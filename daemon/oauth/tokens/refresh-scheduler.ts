import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { knownError } from '../../util/assets.ts'
import type { OAuthDependencies, OAuthEvent } from '../dependencies.ts'
import { getDialect } from '../dialects/dialects.ts'
import { findProvider } from '../providers/providers.ts'
import { backoffMs, isFromFuture, refreshTime } from './refresh-time.ts'
import type { Refresh } from './refresh.ts'
import type { TokenRecord } from './token-record.ts'

/** A token renewed so shortly ago is as fresh as it can be: many readers at once make one refresh. */
const justNowMs = 1000
/** So many failed refreshes may follow each other as fast as readers ask; then one a second. */
const failuresAtOnce = 3

/** How the last renewal of a provider went. */
type Ended = {
  readonly at: number
  /** In a row. */
  readonly failures: number
  /** Until then whoever asks gets the same error. */
  readonly askAgainAt: number
  readonly error?: DoorwardError
  readonly renewedTo: string | undefined
}

export type RefreshScheduler = ReturnType<typeof createRefreshScheduler>

/*
 * One renewal of a provider at a time, for all who wait -> what came of it is logged, counted and told ->
 * the alarm for the next one, or for the next try. Where a refresh ends the old access token, as at GitHub,
 * none runs ahead of time: a program may be using that token.
 */
export const createRefreshScheduler = (
  { gateway, log, announce, count }: OAuthDependencies,
  refresh: Refresh,
) => {
  const underWay = new Map<string, Promise<TokenRecord>>()
  const last = new Map<string, Ended>()
  let isClosed = false

  const renew = (provider: string): Promise<TokenRecord> => {
    const known = underWay.get(provider)
    if (known) return known
    if (isClosed) return Promise.reject(new DoorwardError('stopping', 'the daemon is stopping'))
    const started = refresh(provider)
      .then(
        (record) => succeeded(provider, record),
        (error: unknown) => failed(provider, error),
      )
      .finally(() => underWay.delete(provider))
    underWay.set(provider, started)
    return started
  }

  const succeeded = (provider: string, record: TokenRecord): TokenRecord => {
    const failures = last.get(provider)?.failures ?? 0
    last.set(provider, {
      at: Date.now(),
      failures: 0,
      askAgainAt: 0,
      renewedTo: record.accessToken,
    })
    log.info({ provider, expiresAt: record.expiresAt }, 'token renewed')
    count?.('token-renewed', provider)
    if (failures > 0) announce(renewedEvent(provider, 'the token could be renewed again'))
    schedule(provider, record)
    return record
  }

  const failed = (provider: string, thrown: unknown): never => {
    log.warn({ provider }, `token not renewed: ${errorName(thrown)}`)
    count?.('renewal-failed', provider)
    const error = knownError(thrown)
    if (error.code === 'needs-login' || error.code === 'not-logged-in') {
      last.delete(provider)
      alarms.set(provider, undefined)
      if (error.code === 'needs-login') announce(failedEvent('needs-login', provider, error))
      throw error
    }
    const failures = (last.get(provider)?.failures ?? 0) + 1
    const now = Date.now()
    // A provider may be back at once; one that stays away is left alone. By itself less and less often.
    const restMs = failures <= failuresAtOnce && !error.retryAfterMs ? 0 : 1000
    const askAgainAt = now + Math.min(Math.max(restMs, error.retryAfterMs ?? 0), 10 * 60_000)
    last.set(provider, { at: now, failures, askAgainAt, error, renewedTo: undefined })
    const pause = backoffMs(failures, Math.random(), error.retryAfterMs)
    if (!isClosed) alarms.set(provider, now + pause)
    if (failures === 1) announce(failedEvent('refresh-failed', provider, error))
    throw error
  }

  const schedule = (provider: string, record: TokenRecord): void => {
    if (isClosed) return
    if (endsOldToken(provider)) {
      alarms.set(provider, undefined)
      return
    }
    const at = refreshTime(record, gateway.oauth.refresh_ahead, Math.random())
    const isDue = at !== undefined && isFromFuture(record, Date.now())
    alarms.set(provider, isDue ? Date.now() : at)
  }

  const inBackground = (provider: string): void => {
    // What goes wrong has been told and is tried again.
    renew(provider).catch(() => undefined)
  }

  const endsOldToken = (provider: string): boolean => {
    try {
      return getDialect(findProvider(provider, gateway)).refreshEndsAccessToken === true
    } catch {
      // No longer in gateway.yaml: nothing renews it.
      return false
    }
  }

  const alarms = createAlarms(inBackground)

  // A clock that was set back leaves times that are still to come: they hold nobody up.
  const isRecent = ({ at }: Ended): boolean => Math.abs(Date.now() - at) < justNowMs
  const isTooSoon = ({ at, askAgainAt }: Ended): boolean =>
    at <= Date.now() && Date.now() < askAgainAt

  return {
    /** The renewal that is on its way for this provider, or a new one: one for all who wait. */
    renew,
    /** The same for a reader, who gets the error of the last one again while the next would be too soon. */
    renewForReader: (provider: string): Promise<TokenRecord> => {
      const before = last.get(provider)
      if (before?.error && isTooSoon(before)) throw before.error
      return renew(provider)
    },
    inBackground,
    underWay: (provider: string): Promise<TokenRecord> | undefined => underWay.get(provider),
    /** True while a refresh is running that ends the stored access token. */
    isEndingToken: (provider: string): boolean => underWay.has(provider) && endsOldToken(provider),
    /** Whether this token is as fresh as it can be. */
    isJustRenewed: ({ provider, accessToken }: TokenRecord): boolean => {
      const before = last.get(provider)
      return before !== undefined && before.renewedTo === accessToken && isRecent(before)
    },
    /** Renews this token ahead of its end. */
    schedule,
    /** Lets go of what it knows of a provider: a login or logout has changed its file. */
    forget: (provider: string): void => {
      last.delete(provider)
      alarms.set(provider, undefined)
    },
    /** Begins none any more, and waits for those on their way. */
    close: async (): Promise<void> => {
      isClosed = true
      alarms.close()
      await Promise.allSettled(underWay.values())
    },
  }
}

/** So that a machine that slept, or a clock that was set, is noticed within half a minute. */
const longestSleepMs = 30_000
/** A clock that was set back by more than this tells nothing of when a token ends. */
const noticeableMs = 60_000

/** One alarm per name; a new time replaces the old one. */
export type Alarms = {
  /** `at` in milliseconds since 1970; undefined takes the alarm away. */
  readonly set: (name: string, at: number | undefined) => void
  readonly close: () => void
}

/**
 * Calls `ring` for a name at its time by the clock of the wall. Timers alone stand still while a machine
 * sleeps, so the clock is looked at from time to time. Rings too when the clock was set back: the time was
 * one of the clock as it was. Keeps no process alive.
 */
export const createAlarms = (
  ring: (name: string) => void,
  now: () => number = Date.now,
  steady: () => number = () => performance.now(),
): Alarms => {
  const timers = new Map<string, NodeJS.Timeout>()
  const set = (name: string, at: number | undefined): void => {
    clearTimeout(timers.get(name))
    timers.delete(name)
    if (at === undefined) return
    const wait = Math.min(Math.max(0, at - now()), longestSleepMs)
    const ahead = now() - steady()
    const timer = setTimeout(() => {
      timers.delete(name)
      if (now() >= at || now() - steady() < ahead - noticeableMs) ring(name)
      else set(name, at)
    }, wait)
    timers.set(name, timer.unref())
  }
  return {
    set,
    close: () => {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}

/** A renewal that is worth a word although it went well. */
export const renewedEvent = (provider: string, detail: string): OAuthEvent => ({
  what: 'refresh',
  provider,
  state: 'done',
  detail,
})

/** A renewal that failed, or found that the login is over. */
export const failedEvent = (
  what: 'needs-login' | 'refresh-failed',
  provider: string,
  { code, message }: DoorwardError,
): OAuthEvent => ({ what, provider, state: 'failed', code, detail: message })
