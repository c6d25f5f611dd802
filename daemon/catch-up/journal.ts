import { hash } from 'node:crypto'
import type { WebhookSource } from '../../shared/config/source.ts'
import { BoundedMap } from '../util/collections.ts'
import { LineFile } from '../util/line-file.ts'

/** Limited by number, as a clock can be wrong; more than any sender delivers since the oldest cursor. */
const maxFinished = 20_000

/**
 * The file remembers up to which time each hook was read, and hashes of the deliveries since then that were
 * accepted or are finished.
 */
export class Journal {
  readonly #file: LineFile
  readonly #cursors = new Map<string, number>()
  /** The oldest first. */
  readonly #finished = new BoundedMap<string, true>(maxFinished)
  /** Deliveries that this daemon accepted and has not finished. */
  readonly #taken = new BoundedMap<string, true>(maxFinished)

  private constructor(file: string) {
    this.#file = new LineFile(file)
  }

  /** Throws `home-insecure`, `home-unusable`. */
  static async open(file: string): Promise<Journal> {
    const journal = new Journal(file)
    for (const line of await journal.#file.read()) journal.#read(line)
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
    const count = this.#cursors.size + this.#finished.size + this.#taken.size
    this.#file.append(lines, { count, list: () => this.#list() })
  }

  #list(): string[] {
    return [
      ...[...this.#cursors].map(([key, ms]) => toCursorLine(key, ms)),
      ...[...this.#finished.keys()].map((key) => `finished ${key}`),
      ...[...this.#taken.keys()].map((key) => `taken ${key}`),
    ]
  }
}

/** The dot marks the end of the line: a time that was cut off would be a much older one. */
const toCursorLine = (key: string, ms: number): string => `cursor ${key} ${ms} .`

const hashOf = ({ provider, repository, hookId }: WebhookSource, deliveryId = ''): string =>
  hash('sha256', `${provider} ${repository.toLowerCase()} ${hookId} ${deliveryId}`, 'base64url')
