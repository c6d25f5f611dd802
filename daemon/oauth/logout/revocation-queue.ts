import type { StatusProblem } from '../../../shared/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { withTimeLimit } from '../../util/abort.ts'
import { createKeyedMutex, trackPending, type KeyedMutex } from '../../util/concurrency.ts'
import type { OAuthDependencies, Tokens } from '../dependencies.ts'
import { getDialect } from '../dialects/dialects.ts'
import type { Discover } from '../providers/discovery.ts'
import { findProvider, type Provider } from '../providers/providers.ts'
import type { TokenRecord } from '../tokens/token-record.ts'
import { readToken, removeToken, writeToken } from '../tokens/token-store.ts'
import {
  afterFailure,
  createRevocationStore,
  giveUpAt,
  giveUpDate,
  isWaitOver,
  nextLookMs,
  type PendingRevocation,
  type RevocationStore,
  providerOfName,
  removeStaleFiles,
  retryDelayMs,
  type Wait,
} from './revocation-store.ts'
import {
  byHand,
  compareAccounts,
  isCutShort,
  notAsked,
  type RevokeGrant,
  whatToRevoke,
} from './revoke.ts'
import { createWatchLogin, endedTogether, endedTogetherCause } from './spare-login.ts'

export type RevocationQueue = {
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
  readonly inTurn: KeyedMutex
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
export const createRevocationQueue = ({
  dependencies,
  discover,
  inTurn,
  broker,
  revokeGrant,
}: Parts): RevocationQueue => {
  const { home, gateway, log, announce } = dependencies
  const store = createRevocationStore(dependencies)
  const settle = createSettleRevocation(dependencies, store, revokeGrant)
  const watchLogin = createWatchLogin(gateway, discover)
  const oneOfAProvider = createKeyedMutex()
  const unfinished = trackPending()
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
    log.warn(
      { provider: providerOfName(name), error: errorName(error) },
      'a revocation is not tried',
    )
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
      await removeStaleFiles(home)
      for (const name of await store.names())
        // What is wrong with single ones is told when they are tried.
        await finishLogout(name, providerOfName(name) ?? '').catch(() => undefined)
    } catch (error) {
      log.warn({ error: errorName(error) }, 'pending revocations cannot be used')
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

/**
 * What became of a pending revocation: it is gone, or it waits for the next try; `asked` tells whether
 * the provider heard of it. Broken off means that we did not wait for the answer.
 */
type Settled = {
  readonly state: 'gone' | 'waits' | 'broken-off'
  readonly asked: boolean
  readonly attempts: number
}

type SettleRevocation = (
  name: string,
  current: TokenRecord | undefined,
  signal: AbortSignal,
  limitMs: number,
) => Promise<Settled>

/**
 * Tries one pending revocation for so long at most (milliseconds) and keeps what came of it. What was
 * tried before is told as an event when it is done, refused for good or given up after thirty days, but
 * never before a last try. Throws for a file that is not to be used.
 */
const createSettleRevocation = (
  { gateway, log, announce }: OAuthDependencies,
  store: RevocationStore,
  revokeGrant: RevokeGrant,
): SettleRevocation => {
  const tryRevocation = createTryRevocation(gateway, revokeGrant)

  const giveUp = ({ provider }: PendingRevocation, code: GiveUpCode, why: string): void => {
    log.warn({ provider, code }, 'a revocation is given up')
    const page = byHand(provider, gateway)
    const detail = `the tokens of an earlier login are not revoked: ${why}; you can revoke the access ${page}`
    announce({ what: 'revocation-failed', provider, state: 'failed', code, detail })
  }

  const afterFailedTry = async (
    name: string,
    pending: PendingRevocation,
    detail: string,
  ): Promise<Settled> => {
    const attempts = pending.attempts + 1
    // Who removed the file meanwhile does not want it tried again.
    if (!(await store.read(name))) return { state: 'gone', asked: true, attempts }
    const now = Date.now()
    if (now < giveUpAt(Date.parse(pending.since))) {
      await store.save(name, afterFailure(pending, detail, now))
      return { state: 'waits', asked: true, attempts }
    }
    await store.remove(name)
    giveUp(pending, 'provider-unavailable', `${detail}, for 30 days`)
    return { state: 'gone', asked: true, attempts }
  }

  return async (name, current, signal, limitMs) => {
    const pending = await store.read(name)
    if (!pending) return { state: 'gone', asked: false, attempts: 0 }
    const tried = await withTimeLimit(limitMs, signal, (limited) =>
      tryRevocation(pending, current, limited),
    )
    const { provider, attempts } = pending
    if (tried.kind === 'failed') {
      // That we did not wait says nothing of the provider.
      if (signal.aborted) return { state: 'broken-off', asked: true, attempts }
      return afterFailedTry(name, pending, tried.detail)
    }
    await store.remove(name)
    log.info({ provider, outcome: tried.kind }, 'tried to revoke tokens of an earlier login')
    if (tried.kind === 'refused') {
      // A first try belongs to a login that has ended well otherwise.
      if (attempts > 0) giveUp(pending, 'provider-refused', tried.detail)
      else log.warn({ provider, detail: tried.detail }, 'tokens were not revoked')
    } else if (tried.kind === 'revoked' && attempts > 0)
      announce({ what: 'revoked', provider, state: 'done', detail: detailAtLast(pending) })
    return { state: 'gone', asked: tried.kind !== 'spared', attempts }
  }
}

type GiveUpCode = 'provider-unavailable' | 'provider-refused'

const detailAtLast = ({ account, since }: PendingRevocation): string =>
  `revoked at last: the tokens ${account ? `of ${account.name} ` : ''}that were to go on ${since.slice(0, 10)}`

/**
 * What came of one try: done; nothing left that may be revoked; to be tried again; refused for good.
 * The detail is safe to show.
 */
type Tried =
  | { readonly kind: 'revoked' | 'spared' }
  | { readonly kind: 'failed' | 'refused'; readonly detail: string }

type TryRevocation = (
  pending: PendingRevocation,
  /** The login of this provider that goes on, and must not be harmed. */
  current: TokenRecord | undefined,
  signal: AbortSignal,
) => Promise<Tried>

/** Tries one pending revocation once. Never throws. */
const createTryRevocation =
  (gateway: Gateway, revokeGrant: RevokeGrant): TryRevocation =>
  async (pending, current, signal) => {
    let provider: Provider
    try {
      provider = findProvider(pending.provider, gateway)
    } catch (error) {
      // gateway.yaml may name it again tomorrow.
      return { kind: 'failed', detail: notAsked(error).detail ?? '' }
    }
    const what = whatToRevoke(pending, current, getDialect(provider))
    if (!what) return { kind: 'spared' }
    const { revokedAtProvider, isWorthRetry, detail } = await revokeGrant(
      provider,
      pending.client,
      what,
      signal,
    )
    if (revokedAtProvider) return { kind: 'revoked' }
    return {
      kind: isWorthRetry ? 'failed' : 'refused',
      detail: detail ?? 'the provider did not say why',
    }
  }

/** What `/status` says: one line for each provider with revocations that wait, one for each unusable file. */
const pendingProblems = async (
  store: RevocationStore,
  gateway: Gateway,
): Promise<StatusProblem[]> => {
  const problems: StatusProblem[] = []
  const waiting = new Map<string, PendingRevocation[]>()
  const note = (error: unknown): void => {
    if (!(error instanceof DoorwardError)) throw error
    problems.push({ code: error.code, detail: error.message, hint: error.hint ?? '' })
  }
  try {
    for (const name of await store.names()) {
      const pending = await store.read(name).catch(note)
      if (!pending) continue
      waiting.set(pending.provider, [...(waiting.get(pending.provider) ?? []), pending])
    }
  } catch (error) {
    note(error)
  }
  return [...problems, ...[...waiting].map(([name, all]) => waitingProblem(name, all, gateway))]
}

const waitingProblem = (
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
    hint: `nothing to do: it is tried again until ${giveUpDate(newest)}; by hand you can do it ${byHand(provider, gateway)}`,
  }
}
