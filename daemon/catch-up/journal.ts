import { hash } from 'node:crypto'
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import type { WebhookSource } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { readSecretFile, systemReason } from '../../shared/home/home.ts'
import { BoundedMap } from '../util/collections.ts'

/** Limited by number, as a clock can be wrong; more than any sender delivers since the oldest cursor. */
const maxFinished = 20_000
/** The file is written again when it has this many more lines than it needs. */
const spareLines = 5000
/** Several times what that many lines need. */
const maxBytes = 16 * 1024 * 1024

/**
 * The file remembers up to which time each hook was read, and hashes of the deliveries since then that were
 * accepted or are finished. Each step appends a line, so a kill loses at most the step in progress. A line
 * that was cut off is ignored.
 */
export class Journal {
  readonly #file: string
  readonly #cursors = new Map<string, number>()
  /** The oldest first. */
  readonly #finished = new BoundedMap<string, true>(maxFinished)
  /** Deliveries that this daemon accepted and has not finished. */
  readonly #taken = new BoundedMap<string, true>(maxFinished)
  #lines = 0

  private constructor(file: string) {
    this.#file = file
  }

  /** Throws `home-insecure`, `home-unusable`. */
  static async open(file: string): Promise<Journal> {
    const journal = new Journal(file)
    const text = (await readSecretFile(file, maxBytes)) ?? ''
    const lines = text.split('\n')
    for (const line of lines) journal.#read(line)
    journal.#lines = lines.length
    return journal
  }

  /** The time at the sender since which deliveries can be missing; undefined for a hook that is new. */
  cursor(hook: WebhookSource): number | undefined {
    return this.#cursors.get(hashOf(hook))
  }

  moveCursor(hook: WebhookSource, ms: number): void {
    const key = hashOf(hook)
    if (this.#cursors.get(key) === ms) return
    this.#cursors.set(key, ms)
    this.#append([toCursorLine(key, ms)])
  }

  take(hook: WebhookSource, deliveryId: string): void {
    const key = hashOf(hook, deliveryId)
    if (this.#taken.has(key) || this.#finished.has(key)) return
    this.#taken.set(key, true)
    this.#append([`taken ${key}`])
  }

  isTaken(hook: WebhookSource, deliveryId: string): boolean {
    return this.#taken.has(hashOf(hook, deliveryId))
  }

  isFinished(hook: WebhookSource, deliveryId: string): boolean {
    return this.#finished.has(hashOf(hook, deliveryId))
  }

  finish(hook: WebhookSource, deliveryIds: readonly string[]): void {
    const keys = deliveryIds.map((id) => hashOf(hook, id)).filter((key) => !this.#finished.has(key))
    for (const key of keys) this.#finish(key)
    if (keys.length > 0) this.#append(keys.map((key) => `finished ${key}`))
  }

  #read(line: string): void {
    const [, kind, key = '', ms] =
      /^(cursor|taken|finished) ([\w-]{43})(?: (\d{1,16}) \.)?$/.exec(line) ?? []
    if (kind === 'cursor' && ms !== undefined) this.#cursors.set(key, Number(ms))
    if (kind === 'finished') this.#finish(key)
    if (kind === 'taken') this.#taken.set(key, true)
  }

  #finish(key: string): void {
    this.#finished.set(key, true)
    this.#taken.delete(key)
  }

  #append(lines: readonly string[]): void {
    try {
      this.#lines += lines.length
      const needed = this.#cursors.size + this.#finished.size + this.#taken.size
      if (this.#lines > needed + spareLines) this.#rewrite()
      else this.#write(lines)
    } catch (error) {
      const message = `cannot write ${this.#file}: ${systemReason(error)}`
      throw new DoorwardError('home-unusable', message, { cause: error })
    }
  }

  #write(lines: readonly string[]): void {
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
    const file = openSync(this.#file, O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0), 0o600)
    try {
      // The line before may have been cut off.
      writeFileSync(file, `\n${lines.join('\n')}\n`)
    } finally {
      closeSync(file)
    }
  }

  /** Synchronous, so that no line is appended to the file that is replaced. */
  #rewrite(): void {
    const lines = [
      ...[...this.#cursors].map(([key, ms]) => toCursorLine(key, ms)),
      ...[...this.#finished.keys()].map((key) => `finished ${key}`),
      ...[...this.#taken.keys()].map((key) => `taken ${key}`),
    ]
    const temporary = `${this.#file}.${process.pid}.tmp`
    rmSync(temporary, { force: true })
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(file, `${lines.join('\n')}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, this.#file)
    this.#lines = lines.length
  }
}

/** The dot marks the end of the line: a time that was cut off would be a much older one. */
const toCursorLine = (key: string, ms: number): string => `cursor ${key} ${ms} .`

const hashOf = ({ provider, repository, hookId }: WebhookSource, deliveryId = ''): string =>
  hash('sha256', `${provider} ${repository.toLowerCase()} ${hookId} ${deliveryId}`, 'base64url')
