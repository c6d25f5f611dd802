import type { AccessToken } from '../../../shared/api.ts'
import { DoorwardError, nameOf } from '../../../shared/errors.ts'
import { knownError } from '../../known-error.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { Discover } from '../provider/discovery.ts'
import { findProvider } from '../provider/providers.ts'
import { createAlarms } from './alarms.ts'
import { createHandOuts } from './hand-outs.ts'
import { takeUpLeftovers } from './leftovers.ts'
import { createPromises, isRenewedFirst, promiseOf } from './promises.ts'
import { createRefresh, needsLogin, notLoggedIn } from './refresh.ts'
import { forgetSent, sentBefore } from './refresh-journal.ts'
import {
  backoffMs,
  isFromFuture,
  isRenewable,
  refreshTime,
  validityMs,
  wantedMs,
} from './refresh-time.ts'
import { createTokenCache } from './token-cache.ts'
import { readToken, tokenProviders } from './token-file.ts'
import type { TokenRecord } from './token-record.ts'
import type { TokenRequest, Tokens } from './tokens.ts'

/** A token renewed so shortly ago is as fresh as it can be: many readers at once make one refresh. */
const justNowMs = 1000
/** How long a reader waits for a longer one while the stored token is still good. */
const patienceMs = 5000
const closeLimitMs = 10_000
/** So many failed refreshes may follow each other as fast as readers ask; then one a second. */
const failuresAtOnce = 3

/*
 * One token for one asker: look at the record in memory -> good for long enough? -> else join the refresh
 * that is on its way, or begin one -> note who got it -> hand it out. Refreshes ahead of time keep it so
 * that the second step nearly always says yes. A provider that cannot be reached costs nothing while the
 * token is good; only its own word ends a login.
 * Where a refresh ends the token before it, none comes while somebody was promised that one, as far as can
 * be (promises.ts).
 */
/** `left` are new tokens that the daemon before could not write to the disk. */
export const createTokens = (
  dependencies: OAuthDependencies,
  discover: Discover,
  inTurn: OneAtATime,
  left: readonly TokenRecord[] = [],
): Tokens => {
  const { home, gateway, log, announce, count } = dependencies
  const cutOff = new AbortController()
  const cache = createTokenCache(home)
  const handOuts = createHandOuts(announce)
  const promises = createPromises()
  const { refresh, isUnsaved, unsaved, unsavedProviders, forgetUnsaved } = createRefresh(
    dependencies,
    discover,
    inTurn,
    cutOff.signal,
    left,
  )
  const flights = new Map<string, Promise<TokenRecord>>()
  /** How the last refresh went: when, and what was thrown. */
  const last = new Map<string, Ended>()
  let isClosed = false

  const atOnce = (provider: string, request: TokenRequest): AccessToken | undefined => {
    if (recovering.has(provider) || isUnsaved(provider)) return undefined
    const stored = cache.known(provider)
    if (!stored || !isFreshEnough(stored, request.minValidityMs, Date.now())) return undefined
    if (isBetterRenewed(provider, stored, request)) return undefined
    return handOut(stored, provider, request)
  }

  const handOut = (record: TokenRecord, provider: string, request: TokenRequest): AccessToken => {
    handOuts.note(provider, request.asker)
    promises.note(provider, promiseOf(record, request.minValidityMs, Date.now()))
    count?.('token-given', provider)
    return accessTokenOf(record)
  }

  const access = async (provider: string, request: TokenRequest): Promise<AccessToken> => {
    // After a crash the stored token may be void: what the first try brings is waited for.
    if (recovering.has(provider)) await flights.get(provider)?.catch(() => undefined)
    const stored = isUnsaved(provider) ? undefined : await cache.get(provider)
    if (!stored && !isUnsaved(provider)) throw unknownOrNotLoggedIn(provider)
    const record =
      stored && isFreshEnough(stored, request.minValidityMs, Date.now())
        ? await lasting(provider, stored, request)
        : await renewed(provider, stored)
    return handOut(record, provider, request)
  }

  /** A renewal that is on its way or near would end this token in the hands of who is given it now. */
  const isBetterRenewed = (
    provider: string,
    stored: TokenRecord,
    { minValidityMs }: TokenRequest,
  ): boolean => {
    if (!isRenewable(stored) || last.get(provider)?.error) return false
    const plan = {
      aheadMs: gateway.oauth.refresh_ahead,
      promisedUntil: promises.untilOf(provider),
    }
    const isNear = flights.has(provider) || isRenewedFirst(stored, minValidityMs, plan, Date.now())
    return isNear && isEndedByRefresh(provider)
  }

  const isEndedByRefresh = (provider: string): boolean => {
    try {
      return dialectOf(findProvider(provider, gateway)).refreshEndsAccessToken === true
    } catch {
      // No longer in gateway.yaml: nothing renews it.
      return false
    }
  }

  /** A token that is good for as long as asked, or the next one where a renewal would soon end it. */
  const lasting = async (
    provider: string,
    stored: TokenRecord,
    request: TokenRequest,
  ): Promise<TokenRecord> => {
    if (!isBetterRenewed(provider, stored, request)) return stored
    try {
      return await renewed(provider, stored)
    } catch (error) {
      // What is left of a login that has ended is given out all the same.
      if (error instanceof DoorwardError && error.code === 'needs-login') return stored
      throw error
    }
  }

  const countedAccess = async (provider: string, request: TokenRequest): Promise<AccessToken> => {
    try {
      return await access(provider, request)
    } catch (error) {
      if (!(error instanceof DoorwardError && error.code === 'provider-unknown'))
        count?.('token-not-given', provider)
      throw error
    }
  }

  const renewed = async (
    provider: string,
    stored: TokenRecord | undefined,
  ): Promise<TokenRecord> => {
    const before = last.get(provider)
    const isValid = stored !== undefined && validityMs(stored, Date.now()) > 0
    if (stored && !isRenewable(stored)) throw needsLogin(stored)
    if (stored && before?.renewedTo === stored.accessToken && isRecent(before)) return stored
    try {
      if (before?.error && isTooSoon(before)) throw before.error
      const started = flight(provider)
      return await (stored && isValid ? inTime(started, stored) : started)
    } catch (error) {
      // New tokens that the disk refused have most likely ended the stored one.
      if (stored && isValid && isPassing(error) && !isUnsaved(provider)) return stored
      throw error
    }
  }

  /** A provider that takes its time keeps nobody from a token that is still good. */
  const inTime = async (
    started: Promise<TokenRecord>,
    stored: TokenRecord,
  ): Promise<TokenRecord> => {
    let timer: NodeJS.Timeout | undefined
    const patience = new Promise<TokenRecord>((resolve) => {
      timer = setTimeout(() => resolve(stored), patienceMs)
    })
    try {
      return await Promise.race([started, patience])
    } finally {
      clearTimeout(timer)
    }
  }

  // A clock that was set back leaves times that are still to come: they hold nobody up.
  const isRecent = ({ at }: Ended): boolean => Math.abs(Date.now() - at) < justNowMs
  const isTooSoon = ({ at, askAgainAt }: Ended): boolean =>
    at <= Date.now() && Date.now() < askAgainAt

  /** The refresh that is on its way for this provider, or a new one: one for all who wait. */
  const flight = (provider: string): Promise<TokenRecord> => {
    const known = flights.get(provider)
    if (known) return known
    if (isClosed) throw new DoorwardError('stopping', 'the daemon is stopping')
    const started = refresh(provider)
      .then(
        (record) => landed(provider, record),
        (error: unknown) => crashed(provider, error),
      )
      .finally(() => flights.delete(provider))
    flights.set(provider, started)
    return started
  }

  const landed = (provider: string, record: TokenRecord): TokenRecord => {
    const failures = last.get(provider)?.failures ?? 0
    last.set(provider, {
      at: Date.now(),
      failures: 0,
      askAgainAt: 0,
      renewedTo: record.accessToken,
    })
    promises.forget(provider)
    log.info({ provider, expiresAt: record.expiresAt }, 'token renewed')
    count?.('token-renewed', provider)
    if (failures > 0) tell(provider, 'done', 'the token could be renewed again')
    schedule(provider, record)
    return record
  }

  const crashed = (provider: string, thrown: unknown): never => {
    log.warn({ provider }, `token not renewed: ${nameOf(thrown)}`)
    count?.('renewal-failed', provider)
    const error = knownError(thrown)
    if (error.code === 'needs-login' || error.code === 'not-logged-in') {
      last.delete(provider)
      alarms.set(provider, undefined)
      if (error.code === 'needs-login') tellFailure('needs-login', provider, error)
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
    if (failures === 1) tellFailure('refresh-failed', provider, error)
    throw error
  }

  const tell = (provider: string, state: 'done' | 'failed', detail: string): void =>
    announce({ what: 'refresh', provider, state, detail })

  const tellFailure = (
    what: 'needs-login' | 'refresh-failed',
    provider: string,
    { code, message }: DoorwardError,
  ): void => announce({ what, provider, state: 'failed', code, detail: message })

  const schedule = (provider: string, record: TokenRecord): void => {
    if (isClosed) return
    const at = refreshTime(record, gateway.oauth.refresh_ahead, Math.random())
    const isDue = at !== undefined && isFromFuture(record, Date.now())
    alarms.set(provider, isDue ? Date.now() : at)
  }

  /** Until when whoever was given the token may go on with it; a renewal that failed may have ended it. */
  const putOffUntil = (provider: string): number | undefined => {
    const until = promises.untilOf(provider)
    if (until <= Date.now() || last.get(provider)?.error) return undefined
    return isEndedByRefresh(provider) ? until : undefined
  }

  const alarms = createAlarms((provider, isDue) => {
    // A clock that was set back tells nothing of when the token ends.
    const until = isDue ? putOffUntil(provider) : undefined
    if (until !== undefined) return alarms.set(provider, until)
    // What goes wrong has been told and is tried again.
    flight(provider).catch(() => undefined)
  })

  const unknownOrNotLoggedIn = (provider: string): DoorwardError => {
    // Throws for a name that is none: who mistypes needs no login.
    findProvider(provider, gateway)
    return notLoggedIn(provider)
  }

  /** Providers whose refresh token was sent by a daemon that was killed before it saved the answer. */
  const recovering = new Set<string>()

  const recover = async (provider: string, sentAt: string): Promise<void> => {
    log.warn(
      { provider, sentAt },
      'a daemon was ended while it renewed the token: trying it once more',
    )
    recovering.add(provider)
    try {
      await flight(provider)
      tell(provider, 'done', `the renewal at ${sentAt} was cut off; nothing is lost`)
    } catch {
      // Told by `crashed`, with the cause.
    } finally {
      recovering.delete(provider)
    }
  }

  /** Of a daemon that was killed between writing that the login has ended and telling it. */
  const tellLate = async (provider: string, ended: TokenRecord): Promise<void> => {
    await forgetSent(home, provider)
    tellFailure('needs-login', provider, needsLogin(ended))
  }

  const takeUp = async (provider: string): Promise<void> => {
    // A file that cannot be used is told of elsewhere, and stops nobody else.
    const record = await readToken(home, provider).catch(() => undefined)
    if (!record?.refreshToken) return
    const sentAt = await sentBefore(home, provider, record.refreshToken)
    if (record.ended) {
      if (sentAt !== undefined) await tellLate(provider, record)
    } else if (sentAt === undefined) schedule(provider, record)
    else void recover(provider, sentAt)
  }

  return {
    atOnce,
    access: countedAccess,
    unsaved,
    allUnsaved: () => unsavedProviders().flatMap((provider) => unsaved(provider) ?? []),
    changed: (provider) => {
      forgetUnsaved(provider)
      last.delete(provider)
      promises.forget(provider)
      alarms.set(provider, undefined)
      void takeUp(provider)
    },
    start: async () => {
      for (const provider of await takeUpLeftovers(home)) {
        log.warn({ provider }, 'a daemon was ended while it saved the renewed token: saved now')
        tell(provider, 'done', 'a renewal was cut off while it was saved; nothing is lost')
      }
      for (const provider of await tokenProviders(home)) await takeUp(provider)
      for (const provider of unsavedProviders()) flight(provider).catch(() => undefined)
    },
    close: async (limitMs = closeLimitMs) => {
      // Who has made room on a full disk may well restart the daemon next.
      for (const provider of unsavedProviders()) flight(provider).catch(() => undefined)
      isClosed = true
      alarms.close()
      const cut = setTimeout(() => cutOff.abort(), limitMs)
      await Promise.allSettled(flights.values())
      clearTimeout(cut)
      cutOff.abort()
    },
  }
}

type Ended = {
  readonly at: number
  /** In a row. */
  readonly failures: number
  /** Until then whoever asks gets the same error. */
  readonly askAgainAt: number
  readonly error?: DoorwardError
  readonly renewedTo: string | undefined
}

/** Good for as long as asked. */
const isFreshEnough = (
  record: TokenRecord,
  minValidityMs: number | undefined,
  now: number,
): boolean => {
  const left = validityMs(record, now)
  if (isRenewable(record) && record.expiresAt !== null && isFromFuture(record, now)) return false
  return left > 0 && left >= wantedMs(record, minValidityMs)
}

/** What may be better the next time and says nothing of the token that is there. */
const isPassing = (error: unknown): boolean =>
  error instanceof DoorwardError && !['needs-login', 'not-logged-in'].includes(error.code)

const accessTokens = new WeakMap<TokenRecord, AccessToken>()

/** The same one each time, as long as the record lives. */
const accessTokenOf = (record: TokenRecord): AccessToken => {
  const known = accessTokens.get(record)
  if (known) return known
  const { provider, accessToken, tokenType, expiresAt, scopes } = record
  const made = { provider, accessToken, tokenType, expiresAt, scopes }
  accessTokens.set(record, made)
  return made
}
