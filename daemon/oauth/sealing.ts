import { errorName } from '../../shared/errors.ts'
import { type KeyedMutex, trackPending } from '../util/concurrency.ts'
import type { Log } from './dependencies.ts'
import type { RevocationQueue } from './logout/revocation-queue.ts'
import { isKeychainUnavailable, type Keychain, type TokenHome } from './tokens/keychain.ts'
import type { TokenBroker } from './tokens/token-broker.ts'
import { convertTokens, hasSealedFiles } from './tokens/token-store.ts'

type SealingParts = {
  readonly home: TokenHome
  readonly keychain: Keychain
  readonly withLock: KeyedMutex
  readonly broker: Pick<TokenBroker, 'start' | 'unsealed'>
  readonly revocations: Pick<RevocationQueue, 'start' | 'convert'>
  readonly log: Log
  /** Aborted when the daemon stops. */
  readonly signal: AbortSignal
}

/** Makes the token files follow `tokens.store`, and lets sealed logins continue when the key comes. */
export class Sealing {
  readonly #parts: SealingParts
  readonly #work = trackPending()
  #started: Promise<void> | undefined

  constructor(parts: SealingParts) {
    this.#parts = parts
  }

  /** Asks the keychain, if something needs it, then starts revocations and refreshes. */
  async start(): Promise<void> {
    await this.#ask()
    this.#started = this.#begin()
    await this.#started
  }

  /** Follows a change of the configuration, in the background. */
  configured(): void {
    const { keychain, signal } = this.#parts
    if (!this.#started || signal.aborted) return
    void this.#work.track(keychain.hasKey ? this.#convert() : this.#ask())
  }

  /** The key came after the start, or later. */
  async onKey(): Promise<void> {
    const { broker, log, signal } = this.#parts
    if (!this.#started || signal.aborted) return
    try {
      await this.#started
      await broker.unsealed()
    } catch (error) {
      log.warn({ error: errorName(error) }, 'not all sealed logins continue')
    }
    void this.#work.track(this.#convert())
  }

  /** Asks the keychain again where a task fails because it is unavailable. */
  async retry<Result>(task: () => Promise<Result>): Promise<Result> {
    const { keychain } = this.#parts
    try {
      return await task()
    } catch (error) {
      if (!isKeychainUnavailable(error) || !keychain.isWorthAsking) throw error
      if (!(await keychain.ask({ mayCreate: false }))) throw error
      return task()
    }
  }

  async close(limitMs: number): Promise<void> {
    this.#parts.keychain.close()
    await this.#work.settled(limitMs)
  }

  async #begin(): Promise<void> {
    const { revocations, broker } = this.#parts
    // Before they are tried: an attempt may write its file.
    const done = await revocations.convert().catch(() => 0)
    await revocations.start()
    await broker.start()
    // Not waited for: a refresh may run, for as long as its provider takes.
    void this.#work.track(this.#convert(done))
  }

  async #ask(): Promise<void> {
    const { home, keychain } = this.#parts
    const hasSealed = await hasSealedFiles(home)
    // A new key would make the sealed files look lost where a keychain hides what is locked.
    if (keychain.isWanted || hasSealed) await keychain.ask({ mayCreate: !hasSealed })
  }

  /** Seals all files, or makes them plain; `done` of them were changed before. */
  async #convert(done = 0): Promise<void> {
    const { home, keychain, withLock, revocations, log, signal } = this.#parts
    try {
      const changed =
        done + (await revocations.convert()) + (await convertTokens(home, withLock, signal))
      if (changed === 0) return
      const how = keychain.isWanted ? 'sealed with the key in the keychain' : 'made plain again'
      log.info({ files: changed }, `token files were ${how}`)
    } catch (error) {
      log.warn({ error: errorName(error) }, 'not all token files follow tokens.store')
    }
  }
}
