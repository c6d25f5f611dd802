import type { AccessToken } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { OAuthDependencies, TokenRequest, Tokens } from '../dependencies.ts'
import type { KeyedMutex } from '../../util/concurrency.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider } from '../providers/providers.ts'
import { createAccessLog } from './access-log.ts'
import { createCrashRecovery, takeUpLeftovers } from './crash-recovery.ts'
import { isFromFuture, isRenewable, validityMs, wantedMs } from './refresh-time.ts'
import { createRefresh, needsLogin, notLoggedIn } from './refresh.ts'
import { createRefreshScheduler, renewedEvent } from './refresh-scheduler.ts'
import { createTokenCache } from './token-cache.ts'
import { tokenProviders } from './token-store.ts'
import type { TokenRecord } from './token-record.ts'

/** How long a reader waits for a longer one while the stored token is still good. */
const patienceMs = 5000
const closeLimitMs = 10_000

/*
 * One token for one asker: look at the record in memory -> good for long enough? -> else join the renewal
 * that is on its way, or begin one -> note who got it -> hand it out. Renewals ahead of time keep it so
 * that the second step nearly always says yes. A provider that cannot be reached costs nothing while the
 * token is good; only its own word ends a login.
 */
/** `left` are new tokens that the daemon before could not write to the disk. */
export const createTokens = (
  dependencies: OAuthDependencies,
  discover: Discover,
  inTurn: KeyedMutex,
  left: readonly TokenRecord[] = [],
): Tokens => {
  const { home, gateway, log, announce, count } = dependencies
  const cutOff = new AbortController()
  const cache = createTokenCache(home)
  const handOuts = createAccessLog(announce)
  const { refresh, isUnsaved, unsaved, unsavedProviders, forgetUnsaved } = createRefresh(
    dependencies,
    discover,
    inTurn,
    cutOff.signal,
    left,
  )
  const renewals = createRefreshScheduler(dependencies, refresh)
  const { takeUp, isRecovering } = createCrashRecovery(dependencies, renewals)

  const atOnce = (provider: string, request: TokenRequest): AccessToken | undefined => {
    if (isRecovering(provider) || isUnsaved(provider)) return undefined
    const stored = cache.known(provider)
    if (!stored || !isFreshEnough(stored, request.minValidityMs, Date.now())) return undefined
    if (renewals.isEndingToken(provider)) return undefined
    return handOut(stored, provider, request)
  }

  const handOut = (record: TokenRecord, provider: string, request: TokenRequest): AccessToken => {
    handOuts.note(provider, request.asker)
    count?.('token-given', provider)
    return toAccessToken(record)
  }

  const access = async (provider: string, request: TokenRequest): Promise<AccessToken> => {
    // After a crash the stored token may be void: what the first try brings is waited for.
    if (isRecovering(provider)) await renewals.underWay(provider)?.catch(() => undefined)
    const stored = isUnsaved(provider) ? undefined : await cache.get(provider)
    if (!stored && !isUnsaved(provider)) throw unknownOrNotLoggedIn(provider)
    const record =
      stored && isFreshEnough(stored, request.minValidityMs, Date.now())
        ? await lasting(provider, stored)
        : await renewed(provider, stored)
    return handOut(record, provider, request)
  }

  /** A token that is good for as long as asked, or its successor where a running refresh ends it. */
  const lasting = async (provider: string, stored: TokenRecord): Promise<TokenRecord> => {
    if (!renewals.isEndingToken(provider)) return stored
    try {
      return await renewed(provider, stored)
    } catch (error) {
      // The rest of a login that has ended is still issued.
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
    const isValid = stored !== undefined && validityMs(stored, Date.now()) > 0
    if (stored && !isRenewable(stored)) throw needsLogin(stored)
    if (stored && renewals.isJustRenewed(stored)) return stored
    try {
      const started = renewals.renewForReader(provider)
      return await (stored && isValid ? inTime(started, stored) : started)
    } catch (error) {
      // New tokens that the disk refused have most likely ended the stored one.
      if (stored && isValid && isTransientError(error) && !isUnsaved(provider)) return stored
      throw error
    }
  }

  const unknownOrNotLoggedIn = (provider: string): DoorwardError => {
    // Throws for a name that is none: who mistypes needs no login.
    findProvider(provider, gateway)
    return notLoggedIn(provider)
  }

  return {
    atOnce,
    access: countedAccess,
    unsaved,
    allUnsaved: () => unsavedProviders().flatMap((provider) => unsaved(provider) ?? []),
    changed: (provider) => {
      forgetUnsaved(provider)
      renewals.forget(provider)
      void takeUp(provider)
    },
    start: async () => {
      for (const provider of await takeUpLeftovers(home)) {
        log.warn({ provider }, 'a daemon was ended while it saved the renewed token: saved now')
        announce(
          renewedEvent(provider, 'a renewal was cut off while it was saved; nothing is lost'),
        )
      }
      for (const provider of await tokenProviders(home)) await takeUp(provider)
      for (const provider of unsavedProviders()) renewals.inBackground(provider)
    },
    close: async (limitMs = closeLimitMs) => {
      // Who has made room on a full disk may well restart the daemon next.
      for (const provider of unsavedProviders()) renewals.inBackground(provider)
      const cut = setTimeout(() => cutOff.abort(), limitMs)
      await renewals.close()
      clearTimeout(cut)
      cutOff.abort()
    },
  }
}

/** A provider that takes its time keeps nobody from a token that is still good. */
const inTime = async (started: Promise<TokenRecord>, stored: TokenRecord): Promise<TokenRecord> => {
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
const isTransientError = (error: unknown): boolean =>
  error instanceof DoorwardError && !['needs-login', 'not-logged-in'].includes(error.code)

const accessTokens = new WeakMap<TokenRecord, AccessToken>()

/** The same one each time, as long as the record lives. */
const toAccessToken = (record: TokenRecord): AccessToken => {
  const known = accessTokens.get(record)
  if (known) return known
  const { provider, accessToken, tokenType, expiresAt, scopes } = record
  const made = { provider, accessToken, tokenType, expiresAt, scopes }
  accessTokens.set(record, made)
  return made
}
