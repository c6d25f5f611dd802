import type { OAuthDependencies } from '../dependencies.ts'
import { withTimeLimit } from '../../time-limit.ts'
import type { TokenRecord } from '../token/token-record.ts'
import { type PendingRevocation, afterFailure, giveUpAt } from './pending-revocation.ts'
import type { PendingStore } from './pending-store.ts'
import { type RevokeGrant, byHand } from './revoke-grant.ts'
import { createTryRevocation } from './try-revocation.ts'

/**
 * What became of a pending revocation: it is gone, or it waits for the next try; `asked` tells whether
 * the provider heard of it. Broken off means that we did not wait for the answer.
 */
export type Settled = {
  readonly state: 'gone' | 'waits' | 'broken-off'
  readonly asked: boolean
  readonly attempts: number
}

export type SettleRevocation = (
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
export const createSettleRevocation = (
  { gateway, log, announce }: OAuthDependencies,
  store: PendingStore,
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
