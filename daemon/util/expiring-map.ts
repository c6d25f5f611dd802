import { createHash, randomBytes } from 'node:crypto'
import { BoundedMap } from './collections.ts'

/** A bounded map whose entries expire. It keeps hashes of its keys, not the keys. */
export class ExpiringMap<Value> {
  /** The first expires first. */
  readonly #entries: BoundedMap<string, { readonly value: Value; readonly expiresAt: number }>
  readonly #lifeMs: number
  readonly #now: () => number

  /** `now` is a monotonic clock in milliseconds. */
  constructor(max: number, lifeMs: number, now = () => performance.now()) {
    this.#entries = new BoundedMap(max)
    this.#lifeMs = lifeMs
    this.#now = now
  }

  /** Keeps a value for its whole life from now. */
  set(key: string, value: Value): void {
    this.#entries.set(hashKey(key), { value, expiresAt: this.#now() + this.#lifeMs })
    for (const [hash, { expiresAt }] of this.#entries) {
      if (expiresAt > this.#now()) break
      this.#entries.delete(hash)
    }
  }

  get(key: string): Value | undefined {
    const entry = this.#entries.get(hashKey(key))
    return entry && entry.expiresAt > this.#now() ? entry.value : undefined
  }

  delete(key: string): void {
    this.#entries.delete(hashKey(key))
  }

  /** The entries for another process: by the hashes of their keys, with the milliseconds that are left. */
  snapshot(): readonly Copy<Value>[] {
    return [...this.#entries].map(([hash, { value, expiresAt }]) => ({
      hash,
      value,
      leftMs: expiresAt - this.#now(),
    }))
  }

  restore(copies: readonly Copy<Value>[]): void {
    for (const { hash, value, leftMs } of copies)
      this.#entries.set(hash, { value, expiresAt: this.#now() + Math.min(leftMs, this.#lifeMs) })
  }
}

type Copy<Value> = { readonly hash: string; readonly value: Value; readonly leftMs: number }

/** 256 random bits, as 43 characters that need no escaping. */
export const newCode = (): string => randomBytes(32).toString('base64url')

/** A lookup by hash does not disclose by its duration how much of a guess is right. */
const hashKey = (key: string): string => createHash('sha256').update(key).digest('base64')
