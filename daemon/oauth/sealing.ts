import { errorName } from '../../shared/errors.ts'
import { trackPending } from '../util/concurrency.ts'
import type { OAuthServices } from './services.ts'
import { isKeychainUnavailable, type Keychain } from './tokens/keychain.ts'
import { convertBots, hasSealedBots } from '../bots/bot-record.ts'
import { convertTokens, hasSealedFiles } from './tokens/token-store.ts'

type SealingServices = OAuthServices & {
  readonly keychain: Keychain
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

/** Makes the token files follow `tokens.store`, and lets sealed logins continue when the key comes. */
export class Sealing {
  readonly #services: SealingServices
  readonly #work = trackPending()
  #started: Promise<void> | undefined

  constructor(services: SealingServices) {
    this.#services = services
    services.keychain.whenKnown(() => this.#onKey())
  }

  /** Asks the keychain, if something needs it, then starts revocations and refreshes. */
  async start(): Promise<void> {
    await this.#ask()
    this.#started = this.#begin()
    await this.#started
  }

  /** Follows a change of the configuration, in the background. */
  configured(): void {
    const { keychain, revocations, signal } = this.#services
    if (!this.#started || signal.aborted) return
    if (!keychain.hasKey) return void this.#work.track(this.#ask())
    // Each attempt writes its file again.
    revocations.tryAll()
    void this.#work.track(this.#convert())
  }

  /** Asks the keychain again where a task fails because it is unavailable. */
  async retry<Result>(task: () => Promise<Result>): Promise<Result> {
    const { keychain } = this.#services
    try {
      return await task()
    } catch (error) {
      if (!isKeychainUnavailable(error) || !keychain.isWorthAsking) throw error
      if (!(await keychain.ask({ mayCreate: false }))) throw error
      return task()
    }
  }

  async close(limitMs: number): Promise<void> {
    this.#services.keychain.close()
    await this.#work.settled(limitMs)
  }

  async #begin(): Promise<void> {
    await this.#services.revocations.start()
    await this.#services.tokens.start()
    // Not waited for: a refresh may run, for as long as its provider takes.
    void this.#work.track(this.#convert())
  }

  async #ask(): Promise<void> {
    const { dependencies, keychain } = this.#services
    const { home } = dependencies
    const hasSealed = (await hasSealedFiles(home)) || (await hasSealedBots(home))
    // A new key would make the sealed files look lost where a keychain hides what is locked.
    if (keychain.isWanted || hasSealed) await keychain.ask({ mayCreate: !hasSealed })
  }

  /** The key came: what came before the start is done by that. */
  async #onKey(): Promise<void> {
    const { tokens, revocations, dependencies, signal } = this.#services
    if (!this.#started || signal.aborted) return
    try {
      await this.#started
      await tokens.unsealed()
    } catch (error) {
      dependencies.log.warn({ error: errorName(error) }, 'not all sealed logins continue')
    }
    revocations.tryAll()
    void this.#work.track(this.#convert())
  }

  /** Seals all token files, or makes them plain. */
  async #convert(): Promise<void> {
    const { keychain, withLock, signal } = this.#services
    const { home, log } = this.#services.dependencies
    try {
      await convertBots(home)
      const changed = await convertTokens(home, withLock, signal)
      if (changed === 0) return
      const how = keychain.isWanted ? 'sealed with the key in the keychain' : 'made plain again'
      log.info({ files: changed }, `token files were ${how}`)
    } catch (error) {
      log.warn({ error: errorName(error) }, 'not all token files follow tokens.store')
    }
  }
}
