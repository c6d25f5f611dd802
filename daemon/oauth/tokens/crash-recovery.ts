import { readdir, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { isLoginName } from '../../../shared/config/name-forms.ts'
import { syncFolder } from '../../../shared/home/files.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { isKeychainUnavailable, type TokenHome } from './keychain.ts'
import { forgetSent, sentBefore, needsLogin } from './refresh.ts'
import { failedEvent, refreshedEvent, type RefreshScheduler } from './refresh-scheduler.ts'
import type { TokenRecord } from './token-record.ts'
import { readToken, readTokenAt, tokenPath, tokenProviders } from './token-store.ts'

/** A temporary token file of a killed daemon. */
export type Leftover = { readonly name: string; readonly provider: string }

type RecoveredFiles = {
  /** The providers whose new record was renamed. */
  readonly recovered: readonly string[]
  /** Files to try again: they are sealed and the keychain is unavailable. */
  readonly waiting: readonly Leftover[]
}

/**
 * Cleans up the temporary files of a killed daemon in the folders of tokens and clients. A new record that
 * was written but not yet renamed is renamed now: the provider has used up the old refresh token. Call it
 * while holding the home's lock.
 */
export const recoverFiles = async (home: TokenHome): Promise<RecoveredFiles> => {
  const recovered: string[] = []
  const waiting: Leftover[] = []
  for (const name of await temporaryFiles(home.tokens)) {
    const [, provider] = /^(.+)\.json\.[0-9a-f]+\.tmp$/.exec(name) ?? []
    if (provider === undefined || !isLoginName(provider)) continue
    const result = await recoverFile(home, { name, provider })
    if (result === 'recovered') recovered.push(provider)
    if (result === 'waiting') waiting.push({ name, provider })
  }
  const kept = new Set(waiting.map(({ name }) => name))
  for (const folder of [home.tokens, home.clients]) {
    for (const name of await temporaryFiles(folder))
      if (!kept.has(name)) await unlink(join(folder, name)).catch(() => undefined)
    await syncFolder(folder)
  }
  for (const provider of await tokenProviders(home)) await removeStaleJournal(home, provider)
  return { recovered, waiting }
}

/** Renames a temporary file with a newer record; `waiting` while it cannot be opened. */
export const recoverFile = async (
  home: TokenHome,
  { name, provider }: Leftover,
): Promise<'recovered' | 'useless' | 'waiting'> => {
  const path = join(home.tokens, name)
  const isUseful = await isNewer(home, provider, path)
  if (isUseful) await rename(path, tokenPath(home, provider))
  return isUseful === undefined ? 'waiting' : isUseful ? 'recovered' : 'useless'
}

/** A journal about another refresh token than the stored one is out of date. */
const removeStaleJournal = async (home: TokenHome, provider: string): Promise<void> => {
  const stored = await readToken(home, provider).catch(() => undefined)
  const refreshToken = stored?.refreshToken
  if (refreshToken === undefined) return
  if ((await sentBefore(home, provider, refreshToken)) === undefined)
    await forgetSent(home, provider)
}

/**
 * True for the whole answer to the refresh token that is stored and that the journal says was sent. Undefined
 * while the keychain is unavailable.
 */
const isNewer = async (
  home: TokenHome,
  provider: string,
  path: string,
): Promise<boolean | undefined> => {
  try {
    const stored = await readToken(home, provider)
    const found = await readTokenAt(home, path, provider)
    if (!found || !stored?.refreshToken || found.refreshToken === stored.refreshToken) return false
    const sentAt = await sentBefore(home, provider, stored.refreshToken)
    return sentAt !== undefined && Date.parse(found.obtainedAt) >= Date.parse(sentAt)
  } catch (error) {
    return isKeychainUnavailable(error) ? undefined : false
  }
}

const temporaryFiles = async (folder: string): Promise<string[]> =>
  (await readdir(folder).catch(() => [])).filter((name) => /\.[0-9a-f]+\.tmp$/.test(name))

/**
 * Continues a login from its file: schedules its refresh. A refresh that a kill interrupted is tried
 * again, and the end of a login that the killed daemon did not report is reported now.
 */
export class CrashRecovery {
  readonly #dependencies: OAuthDependencies
  readonly #scheduler: RefreshScheduler
  /** Providers whose refresh token was sent by a daemon that was killed before it saved the answer. */
  readonly #recovering = new Set<string>()

  constructor(dependencies: OAuthDependencies, scheduler: RefreshScheduler) {
    this.#dependencies = dependencies
    this.#scheduler = scheduler
  }

  /** False where the keychain has to be asked first. */
  async resume(provider: string): Promise<boolean> {
    try {
      await this.#resume(provider)
      return true
    } catch (error) {
      // A file that cannot be used is reported elsewhere and stops no other provider.
      return !isKeychainUnavailable(error)
    }
  }

  async #resume(provider: string): Promise<void> {
    const { home } = this.#dependencies
    const record = await readToken(home, provider)
    if (!record?.refreshToken) return
    const sentAt = await sentBefore(home, provider, record.refreshToken)
    if (record.ended) {
      if (sentAt !== undefined) await this.#reportEnd(provider, record)
    } else if (sentAt === undefined) this.#scheduler.schedule(provider, record)
    else void this.#recoverRefresh(provider, sentAt)
  }

  /** True while the stored token may be void, since the answer with the next one was lost. */
  isRecovering(provider: string): boolean {
    return this.#recovering.has(provider)
  }

  async #recoverRefresh(provider: string, sentAt: string): Promise<void> {
    const { log, announce } = this.#dependencies
    log.warn({ provider, sentAt }, 'a daemon was killed while it renewed the token: trying again')
    this.#recovering.add(provider)
    try {
      await this.#scheduler.refresh(provider)
      announce(
        refreshedEvent(provider, `the renewal at ${sentAt} was interrupted; nothing is lost`),
      )
    } catch {
      // The scheduler has reported it.
    } finally {
      this.#recovering.delete(provider)
    }
  }

  async #reportEnd(provider: string, record: TokenRecord): Promise<void> {
    const { home, log, announce } = this.#dependencies
    log.warn({ provider }, 'a daemon was killed before it reported that the login has ended')
    announce(failedEvent('needs-login', provider, needsLogin(record)))
    await forgetSent(home, provider)
  }
}
