import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFolder } from '../../../shared/home/files.ts'
import { type Home, readSecretFile } from '../../../shared/home/home.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { isProviderName } from '../providers/providers.ts'
import { forgetSent, sentBefore } from './refresh-journal.ts'
import { failedEvent, type RefreshScheduler, renewedEvent } from './refresh-scheduler.ts'
import { needsLogin } from './refresh.ts'
import type { TokenRecord } from './token-record.ts'
import { parseRecord, readToken, tokenPath, tokenProviders } from './token-store.ts'

/**
 * Clears up what a killed daemon left half done in the folders of tokens and clients. A new record that
 * was written but not yet in its place is put there: the provider has used up the old one. Returns the
 * providers for which that was so. Call it while holding the home's lock.
 */
export const takeUpLeftovers = async (home: Home): Promise<string[]> => {
  const taken: string[] = []
  for (const name of await temporaryFiles(home.tokens)) {
    const [, provider] = /^(.+)\.json\.[0-9a-f]+\.tmp$/.exec(name) ?? []
    if (provider === undefined || !isProviderName(provider)) continue
    if (!(await isNewer(home, provider, join(home.tokens, name)))) continue
    await rename(join(home.tokens, name), tokenPath(home, provider))
    taken.push(provider)
  }
  for (const folder of [home.tokens, home.clients]) {
    for (const name of await temporaryFiles(folder))
      await unlink(join(folder, name)).catch(() => undefined)
    await syncFolder(folder)
  }
  for (const provider of await tokenProviders(home)) await forgetStaleNote(home, provider)
  return taken
}

/** A note of a refresh token that is not the stored one has nothing to say any more. */
const forgetStaleNote = async (home: Home, provider: string): Promise<void> => {
  const stored = await readToken(home, provider).catch(() => undefined)
  const refreshToken = stored?.refreshToken
  if (refreshToken === undefined) return
  if ((await sentBefore(home, provider, refreshToken)) === undefined)
    await forgetSent(home, provider)
}

/** Only the whole answer to the very refresh token that is stored and was noted as sent. */
const isNewer = async (home: Home, provider: string, path: string): Promise<boolean> => {
  try {
    const stored = await readToken(home, provider)
    const found = parseRecord((await readSecretFile(path)) ?? '', provider)
    if (!found || !stored?.refreshToken || found.refreshToken === stored.refreshToken) return false
    const sentAt = await sentBefore(home, provider, stored.refreshToken)
    return sentAt !== undefined && isAfter(found, sentAt)
  } catch {
    return false
  }
}

const isAfter = ({ obtainedAt }: TokenRecord, time: string): boolean =>
  Date.parse(obtainedAt) >= Date.parse(time)

const temporaryFiles = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).filter((name) => /\.[0-9a-f]+\.tmp$/.test(name))

/*
 * Goes on with a login as its file says: renews it ahead of its end. Where a daemon was killed while it
 * renewed the token, that is tried once more; where it was killed before it told that the login has
 * ended, that is told now.
 */
export const createCrashRecovery = (
  { home, log, announce }: OAuthDependencies,
  { renew, schedule }: Pick<RefreshScheduler, 'renew' | 'schedule'>,
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
