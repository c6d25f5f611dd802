import type { OAuthDependencies } from '../dependencies.ts'
import { forgetSent, sentBefore } from './refresh-journal.ts'
import { needsLogin } from './refresh.ts'
import { failedEvent, renewedEvent } from './renewal-events.ts'
import type { Renewals } from './renewals.ts'
import { readToken } from './token-file.ts'
import type { TokenRecord } from './token-record.ts'

/*
 * Goes on with a login as its file says: renews it ahead of its end. Where a daemon was killed while it
 * renewed the token, that is tried once more; where it was killed before it told that the login has
 * ended, that is told now.
 */
export const createTakeUp = (
  { home, log, announce }: OAuthDependencies,
  { renew, schedule }: Pick<Renewals, 'renew' | 'schedule'>,
) => {
  /** Providers whose refresh token was sent by a daemon that was killed before it saved the answer. */
  const recovering = new Set<string>()

  const recover = async (provider: string, sentAt: string): Promise<void> => {
    log.warn(
      { provider, sentAt },
      'a daemon was ended while it renewed the token: trying it once more',
    )
    recovering.add(provider)
    try {
      await renew(provider)
      announce(renewedEvent(provider, `the renewal at ${sentAt} was cut off; nothing is lost`))
    } catch {
      // Told where it failed, with the cause.
    } finally {
      recovering.delete(provider)
    }
  }

  const tellLate = async (provider: string, ended: TokenRecord): Promise<void> => {
    log.warn({ provider }, 'a daemon was ended before it told that the login has ended')
    announce(failedEvent('needs-login', provider, needsLogin(ended)))
    await forgetSent(home, provider)
  }

  return {
    takeUp: async (provider: string): Promise<void> => {
      // A file that cannot be used is told of elsewhere, and stops nobody else.
      const record = await readToken(home, provider).catch(() => undefined)
      if (!record?.refreshToken) return
      const sentAt = await sentBefore(home, provider, record.refreshToken)
      if (record.ended) {
        if (sentAt !== undefined) await tellLate(provider, record)
      } else if (sentAt === undefined) schedule(provider, record)
      else void recover(provider, sentAt)
    },
    /** True while the stored token may be void, as the next one never came. */
    isRecovering: (provider: string): boolean => recovering.has(provider),
  }
}
