import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'
import type { StatusProblem } from '../../../shared/api/api.ts'
import type { Gateway } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { toPlainLine } from '../../../shared/text.ts'
import { keychainProgram, packageFolder } from '../../../shared/version.ts'
import { trackPending } from '../../util/concurrency.ts'
import { isSealed, openText, parseKey, type SealKey, sealText } from './sealed-file.ts'

/** A home whose token files may be sealed; without a keychain they are plain. */
export type TokenHome = Home & { readonly keychain?: Keychain }

const replySchema = z.discriminatedUnion('is', [
  z.object({ is: z.literal('key'), key: z.string() }),
  z.object({ is: z.literal('empty') }),
  z.object({ is: z.literal('locked') }),
  z.object({ is: z.literal('unreachable'), detail: z.string() }),
  z.object({ is: z.literal('no-package') }),
])
/** The output of the helper. */
export type KeychainReply = z.infer<typeof replySchema>

type Reply = KeychainReply | { readonly is: 'late' }

type Failure = {
  readonly why: string
  readonly fix: string
  /** The keychain was read, and has no key. */
  readonly isEmpty?: true
  /** Its owner has to unlock it: programs do not cause another question. */
  readonly isLocked?: true
}

/** In milliseconds. */
type Limits = {
  /** How long one question may take: its owner may be typing a password. */
  readonly answer: number
  /** How long a start, a login or a program waits for that. */
  readonly wait: number
}

type KeychainOptions = {
  readonly gateway: Gateway
  /** Names the session bus on Linux. */
  readonly env: NodeJS.ProcessEnv
  readonly warn: (fields: object, message: string) => void
  readonly limits?: Limits
}

/**
 * The key of sealed token files, which is in the keychain of the desktop. Until the keychain has given it,
 * sealed files cannot be read, and new ones are plain. Asks only when told to: each question may open a
 * window that demands a password.
 */
export class Keychain {
  readonly #options: KeychainOptions
  readonly #limits: Limits
  readonly #closing = new AbortController()
  readonly #questions = trackPending()
  #key: SealKey | undefined
  #failure: Failure = notAsked
  #asking: Promise<void> | undefined
  #onKey: (() => Promise<void>) | undefined

  constructor(options: KeychainOptions) {
    this.#options = options
    this.#limits = options.limits ?? { answer: 120_000, wait: 3000 }
  }

  /** Calls this when the key has come; the callers of `ask` wait for it. */
  whenKnown(onKey: () => Promise<void>): void {
    this.#onKey = onKey
  }

  get hasKey(): boolean {
    return this.#key !== undefined
  }

  /** The key itself, for other files than those of tokens; undefined until the keychain has given it. */
  get sealKey(): SealKey | undefined {
    return this.#key
  }

  /** Whether the configuration wants sealed files. */
  get isWanted(): boolean {
    return this.#options.gateway.tokens.store === 'keychain'
  }

  /** False where a question may open another window. */
  get isWorthAsking(): boolean {
    return this.#asking !== undefined || !this.#failure.isLocked
  }

  /**
   * Asks the keychain for the key, where that is not known yet, and waits some seconds; the answer counts
   * whenever it comes. True once the key is known.
   */
  async ask({ mayCreate }: { readonly mayCreate: boolean }): Promise<boolean> {
    void this.#questions.track(this.#ask(mayCreate))
    await this.#questions.settled(this.#limits.wait)
    return this.hasKey
  }

  /** Gets the key before new tokens are written, if they are to be sealed. */
  async prepare(): Promise<void> {
    if (this.isWanted) await this.ask({ mayCreate: true })
  }

  /** The text as it is to be written. */
  seal(label: string, text: string): string {
    return this.#key && this.isWanted ? sealText(this.#key, label, text) : text
  }

  /** True for a file that is plain and should be sealed, or the other way round, where that can be done. */
  isOutdated(text: string): boolean {
    return this.#key !== undefined && isSealed(text) !== this.isWanted
  }

  /**
   * The plain text of a file; undefined where it is damaged, and `key-lost` where the keychain has another
   * key or none. Throws `keychain-unavailable`.
   */
  open(path: string, label: string, text: string): { readonly text: string } | OpenFault {
    if (!isSealed(text)) return { text }
    if (!this.#key && this.#failure.isEmpty) return 'key-lost'
    if (!this.#key) throw unavailable(path, this.#failure)
    const opened = openText(this.#key, label, text)
    return opened === 'other-key' ? 'key-lost' : opened
  }

  /** That new files are plain though they should be sealed. */
  problems(): StatusProblem[] {
    if (this.hasKey || !this.isWanted) return []
    const { why, fix } = this.#failure
    const detail = `${why}: new tokens are stored as plain files (mode 0600), not sealed`
    return [{ code: 'keychain-unavailable', detail, hint: fix }]
  }

  close(): void {
    this.#closing.abort()
  }

  async #ask(mayCreate: boolean): Promise<void> {
    if (this.#asking) {
      await this.#asking
      // That question may have been one that creates no key.
      if (!mayCreate || !this.#failure.isEmpty) return
    }
    if (this.#key || this.#closing.signal.aborted) return
    this.#asking ??= this.#askOnce(mayCreate).finally(() => (this.#asking = undefined))
    await this.#asking
  }

  async #askOnce(mayCreate: boolean): Promise<void> {
    this.#failure = notAnswered
    const reply = await this.#runHelper(mayCreate)
    // A stop has ended the helper.
    if (this.#closing.signal.aborted) return
    this.#key = reply.is === 'key' ? parseKey(reply.key) : undefined
    if (this.#key) return this.#onKey?.()
    this.#failure = toFailure(reply)
    const { why, fix } = this.#failure
    this.#options.warn({ code: 'keychain-unavailable', hint: fix }, why)
  }

  async #runHelper(mayCreate: boolean): Promise<Reply> {
    const program = fileURLToPath(new URL(keychainProgram, packageFolder))
    try {
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [program, ...(mayCreate ? ['--create'] : [])],
        {
          env: this.#options.env,
          timeout: this.#limits.answer,
          killSignal: 'SIGKILL',
          signal: this.#closing.signal,
          windowsHide: true,
        },
      )
      return replySchema.parse(JSON.parse(stdout))
    } catch (error) {
      const isLate = error instanceof Error && 'killed' in error && error.killed === true
      return isLate ? { is: 'late' } : { is: 'unreachable', detail: 'its helper failed' }
    }
  }
}

/** Calls `Keychain.open`; a home without a keychain has plain files only. */
export const openTokenFile = (
  { keychain }: TokenHome,
  path: string,
  label: string,
  text: string,
): { readonly text: string } | OpenFault => {
  if (keychain) return keychain.open(path, label, text)
  if (isSealed(text)) throw unavailable(path, notAsked)
  return { text }
}

export const isKeychainUnavailable = (error: unknown): boolean =>
  error instanceof DoorwardError && error.code === 'keychain-unavailable'

type OpenFault = 'key-lost' | undefined

const unavailable = (path: string, { why, fix }: Failure): DoorwardError =>
  new DoorwardError('keychain-unavailable', `${path} is sealed, and ${why}; it is not lost`, {
    hint: fix,
  })

const notAsked: Failure = {
  why: 'the keychain has not been asked for its key yet',
  fix: 'doorward daemon reload',
}

const notAnswered: Failure = {
  why: 'the keychain has not answered yet',
  fix: 'unlock it, if it asks for a password',
}

/** The first sentence, without the words of the library. */
const describeCause = (detail: string): string =>
  toPlainLine(detail)
    .replace(/^Platform failure: /, '')
    .replace(/\. .*$|\.$/, '')
    .slice(0, 200)

const unlock = 'unlock it, then: doorward daemon reload'

const toFailure = (reply: Reply): Failure => {
  switch (reply.is) {
    case 'late':
      return { why: 'the keychain does not answer', fix: unlock, isLocked: true }
    case 'locked':
      return { why: 'the keychain is locked', fix: unlock, isLocked: true }
    case 'unreachable':
      return {
        why: `no keychain can be reached (${describeCause(reply.detail)})`,
        fix: 'run doorward in a desktop session that has one, or set tokens.store: file',
      }
    case 'no-package':
      return {
        why: 'the package @napi-rs/keyring, which talks to the keychain, is not installed',
        fix: 'install doorward again, without --omit=optional, or set tokens.store: file',
      }
    case 'empty':
      return {
        why: 'the keychain no longer has the key of the token files',
        fix: 'restore it, or log in again',
        isEmpty: true,
      }
    case 'key':
      return {
        why: 'the entry doorward in the keychain is not a key',
        fix: 'restore it, or delete it and log in again',
      }
  }
}
