import type { OAuthDependencies } from '../dependencies.ts'
import { dialectOf } from '../dialect/dialects.ts'
import type { OneAtATime } from '../one-at-a-time.ts'
import { rememberClient } from '../provider/client-file.ts'
import type { Grant } from '../token/grant.ts'
import { writeToken } from '../token/token-file.ts'
import { missingIn, tokenRecordOf } from '../token/token-record.ts'
import { findAccount } from './account.ts'
import type { Attempt, Outcome } from './pending.ts'

export type SaveGrant = {
  /**
   * The last stage of every login, whichever way the grant came: asks who has logged in, then writes
   * client and tokens, in turn with all that touches this provider's file. Throws `login-cancelled`
   * when the login ended before that, and `home-unusable`.
   */
  readonly save: (attempt: Attempt, grant: Grant, signal: AbortSignal) => Promise<Outcome>
  /** Resolves when nothing is being written any more. */
  readonly settled: () => Promise<void>
}

/**
 * `beginSaving` is asked before anything is written; it throws when the login has ended. `changed` is told
 * of the provider whose tokens are new.
 */
export const createSaveGrant = (
  { home }: Pick<OAuthDependencies, 'home'>,
  inTurn: OneAtATime,
  changed: (provider: string) => void,
  beginSaving: (attempt: Attempt) => void,
): SaveGrant => {
  const savings = new Set<Promise<void>>()
  return {
    save: async (attempt, grant, signal) => {
      const { provider, client, endpoints } = attempt
      const obtainedAt = Date.now()
      const account = await findAccount(
        grant,
        endpoints,
        { identify: dialectOf(provider).identify, apiUrl: provider.apiUrl },
        signal,
      )
      const record = tokenRecordOf(attempt, grant, account, obtainedAt)
      const saving = inTurn(provider.name, async () => {
        beginSaving(attempt)
        await rememberClient(home, provider.name, client)
        await writeToken(home, record)
        changed(provider.name)
      })
      savings.add(saving)
      await saving.finally(() => savings.delete(saving))
      const { impliedScopes } = dialectOf(provider)
      return { status: 'authorized', account, ...missingIn(record, impliedScopes) }
    },
    settled: async () => {
      await Promise.allSettled(savings)
    },
  }
}
