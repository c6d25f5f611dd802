import type { StatusProblem } from '../../../shared/api.ts'
import { DoorwardError, nameOf } from '../../../shared/errors.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { type OneAtATime, createOneAtATime } from '../one-at-a-time.ts'
import type { Discover } from '../provider/discovery.ts'
import { readToken, removeToken, writeToken } from '../token/token-file.ts'
import type { TokenRecord } from '../token/token-record.ts'
import type { Tokens } from '../token/tokens.ts'
import { createUnfinished } from '../unfinished.ts'
import { providerOfName, removeHalfWritten } from './pending-file.ts'
import { pendingProblems } from './pending-problems.ts'
import {
  type PendingRevocation,
  type Wait,
  isWaitOver,
  nextLookMs,
  retryDelayMs,
} from './pending-revocation.ts'
import { createPendingStore } from './pending-store.ts'
import type { RevokeGrant } from './revoke-grant.ts'
import { compareAccounts } from './same-account.ts'
import { createSettleRevocation } from './settle-revocation.ts'
import { createWatchLogin, endedTogether, endedTogetherCause } from './spare-login.ts'
import { isCutShort } from './what-to-revoke.ts'

export type PendingRevocations = {
  /**
   * Finishes what a killed daemon left half done; then those that an earlier one left are tried, and all
   * from then on until they are done.
   */
  readonly start: () => Promise<void>
  /** Keeps one, to be tried at once, or later when it was tried before; returns its name. */
  readonly keep: (pending: PendingRevocation) => Promise<string>
  /** True while this one will survive the daemon. */
  readonly isOnDisk: (name: string) => boolean
  readonly forget: (name: string) => Promise<void>
  /**
   * At the end of a login, in its turn: tries all of its provider, for some seconds; what is not done
   * then stays pending. True when the provider has ended the new login with them. Never throws.
   */
  readonly tryBeside: (record: TokenRecord, signal: AbortSignal) => Promise<boolean>
  /** Lets nothing of this provider be tried by itself until the returned function is called. */
  readonly hold: (provider: string) => () => void
  /** What waits, and what cannot be used. */
  readonly problems: () => Promise<StatusProblem[]>
  /** Ends timers and requests within seconds; what was not done waits on the disk for the next daemon. */
  readonly close: () => Promise<void>
}

type Parts = {
  readonly dependencies: OAuthDependencies
  readonly discover: Discover
  readonly inTurn: OneAtATime
  readonly broker: Pick<Tokens, 'changed'>
  readonly revokeGrant: RevokeGrant
}

const limitMs = 30_000
const besideLimitMs = 5000
const closeLimitMs = 2000

/*
 * Revocations that a provider has still to confirm. Each is a file until it is done, refused for good or
 * thirty days old. They are looked at by the clock on the wall at least once a minute, so that neither
 * a machine that slept nor a clock that was set puts them off; one of a provider at a time, and none
 * while somebody logs in there. A file is read again at each try: who removes it has cancelled it.
 */
export const createPendingRevocations = ({
  dependencies,
  discover,
  inTurn,
  broker,
  revokeGrant,
}: Parts): PendingRevocations => {
  const { home, gateway, log, announce } = dependencies
  const store = createPendingStore(dependencies)
  const settle = createSettleRevocation(dependencies, store, revokeGrant)
  const watchLogin = createWatchLogin(gateway, discover)
  const oneOfAProvider = createOneAtATime()
  const unfinished = createUnfinished()
  const waits = new Map<string, Wait>()
  const running = new Map<string, AbortController>()
  const holds = new Map<string, number>()
  const putOffs = new Set<string>()
  let isClosing = false
  let timer: NodeJS.Timeout | undefined

  const wait = (name: string, attempts: number): void => {
    waits.set(name, { from: Date.now(), delayMs: retryDelayMs(attempts, Math.random()) })
  }

  /** It may be mended at any time, so it is looked at again and again, but told once. */
  const putOff = (name: string, error: unknown): void => {
    wait(name, 1)
    if (putOffs.has(name)) return
    putOffs.add(name)
    log.warn({ provider: providerOfName(name), error: nameOf(error) }, 'a revocation is not tried')
  }

  /** Tries one; true when the provider was asked. */
  const tryOne = async (
    name: string,
    current: TokenRecord | undefined,
    signal: AbortSignal,
    limitMs: number,
  ): Promise<boolean> => {
    const { state, asked, attempts } = await settle(name, current, signal, limitMs)
    if (state === 'waits') wait(name, attempts)
    else waits.delete(name)
    return asked
  }

  /** Tries some; true when that has ended the login that is there. */
  const tryAll = async (
    names: readonly string[],
    current: TokenRecord | undefined,
    signal: AbortSignal,
    limitMs: number,
  ): Promise<boolean> => {
    const olds = await Promise.all(names.map((name) => store.read(name).catch(() => undefined)))
    const isTouched =
      current &&
      olds.some((old) => old && compareAccounts(old.account, current.account) !== 'other')
    const hasEnded = isTouched ? await watchLogin(current, signal) : async () => false
    const tries = names.map(async (name) => {
      try {
        return await tryOne(name, current, signal, limitMs)
      } catch (error) {
        // Its file is not to be used, or cannot be removed: `problems` says so.
        putOff(name, error)
        return false
      }
    })
    const asked = await Promise.all(tries)
    return asked.includes(true) && (await hasEnded())
  }

  /** The login that is there now. A damaged one is none; one that can be mended is waited for. */
  const currentRecord = async (provider: string): Promise<TokenRecord | undefined> => {
    try {
      return await readToken(home, provider)
    } catch (error) {
      if (error instanceof DoorwardError && error.code === 'token-file-damaged') return undefined
      throw error
    }
  }

  /** A daemon that was killed in the middle of a logout has left the token file too. */
  const finishLogout = async (name: string, provider: string): Promise<void> => {
    const old = await store.read(name)
    await inTurn(provider, async () => {
      const current = await currentRecord(provider)
      if (!old || !current || !isCutShort(old, current)) return
      await removeToken(home, provider)
      log.info({ provider }, 'finished a logout that was cut short')
    })
  }

  const markEnded = (record: TokenRecord): Promise<void> =>
    inTurn(record.provider, async () => {
      const { provider } = record
      const now = await currentRecord(provider)
      if (now?.accessToken !== record.accessToken) return
      await writeToken(home, endedTogether(now, Date.now()))
      broker.changed(provider)
      log.warn({ provider }, endedTogetherCause)
      const detail = `${endedTogetherCause}; log in once more`
      announce({ what: 'needs-login', provider, state: 'failed', code: 'needs-login', detail })
    })

  const tryInBackground = async (name: string, provider: string): Promise<void> => {
    const control = new AbortController()
    running.set(name, control)
    try {
      await oneOfAProvider(provider, async () => {
        if (holds.has(provider) || control.signal.aborted) return
        const current = await currentRecord(provider)
        const hasEnded = await tryAll([name], current, control.signal, limitMs)
        if (hasEnded && current) await markEnded(current)
      })
    } catch (error) {
      putOff(name, error)
    } finally {
      running.delete(name)
      arm()
    }
  }

  const look = async (): Promise<void> => {
    const names = await store.names().catch(() => undefined)
    // A folder that cannot be used is told by `problems`, and may be mended at any time.
    if (!names) return arm()
    for (const name of names) {
      const provider = providerOfName(name)
      const waited = waits.get(name)
      const isDue = !waited || isWaitOver(waited, Date.now())
      if (!provider || !isDue || holds.has(provider) || running.has(name)) continue
      void unfinished.track(tryInBackground(name, provider))
    }
    for (const name of waits.keys()) if (!names.includes(name)) waits.delete(name)
    if (names.length > 0) arm()
  }

  const lookNow = (): void => {
    void unfinished.track(look())
  }

  const arm = (): void => {
    clearTimeout(timer)
    if (!isClosing) timer = setTimeout(lookNow, nextLookMs([...waits.values()], Date.now())).unref()
  }

  const takeUpLeftovers = async (): Promise<void> => {
    try {
      await removeHalfWritten(home)
      for (const name of await store.names())
        // What is wrong with single ones is told when they are tried.
        await finishLogout(name, providerOfName(name) ?? '').catch(() => undefined)
    } catch (error) {
      log.warn({ error: nameOf(error) }, 'pending revocations cannot be used')
    }
  }

  return {
    start: async () => {
      await takeUpLeftovers()
      lookNow()
    },
    keep: async (pending) => {
      const name = await store.add(pending)
      if (pending.attempts > 0) wait(name, pending.attempts)
      lookNow()
      return name
    },
    isOnDisk: store.isOnDisk,
    forget: store.remove,
    tryBeside: async (record, signal) => {
      const names = await store.names(record.provider).catch(() => [])
      return tryAll(names, record, signal, besideLimitMs)
    },
    hold: (provider) => {
      holds.set(provider, (holds.get(provider) ?? 0) + 1)
      for (const [name, control] of running) if (providerOfName(name) === provider) control.abort()
      let isHeld = true
      return () => {
        if (!isHeld) return
        isHeld = false
        const left = (holds.get(provider) ?? 1) - 1
        if (left > 0) holds.set(provider, left)
        else {
          holds.delete(provider)
          if (!isClosing) lookNow()
        }
      }
    },
    problems: () => pendingProblems(store, gateway),
    close: async () => {
      isClosing = true
      clearTimeout(timer)
      await unfinished.settled(closeLimitMs)
      for (const control of running.values()) control.abort()
      await unfinished.settled(closeLimitMs)
    },
  }
}
