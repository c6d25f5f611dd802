/**
 * A Map that keeps its newest entries: an entry that is set again is the newest. With more than `limit` entries
 * it forgets the oldest, down to `max`.
 */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #max: number
  readonly #limit: number

  constructor(max: number, limit = max) {
    super()
    this.#max = max
    this.#limit = limit
  }

  override set(key: Key, value: Value): this {
    this.delete(key)
    super.set(key, value)
    if (this.size <= this.#limit) return this
    for (const oldest of this.keys()) {
      if (this.size <= this.#max) break
      this.delete(oldest)
    }
    return this
  }
}
