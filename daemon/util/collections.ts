/** First in, first out; all operations but `remove` take constant time. */
export type Fifo<Value> = {
  readonly add: (value: Value) => void
  readonly first: () => Value | undefined
  readonly last: () => Value | undefined
  readonly shift: () => Value | undefined
  readonly size: () => number
  readonly remove: (value: Value) => void
  readonly values: () => Value[]
}

const fewGone = 32

/** Makes an empty queue. `Array.shift` moves all other items once there are some ten thousand. */
export const createFifo = <Value>(): Fifo<Value> => {
  const items: (Value | undefined)[] = []
  let gone = 0
  return {
    add: (value) => void items.push(value),
    first: () => items[gone],
    last: () => items.at(-1),
    shift: () => {
      const first = items[gone]
      if (gone < items.length) {
        items[gone] = undefined
        gone += 1
      }
      // Moves the items once per as many steps as items are left.
      if (gone === items.length || (gone > fewGone && gone * 2 > items.length)) {
        items.splice(0, gone)
        gone = 0
      }
      return first
    },
    size: () => items.length - gone,
    remove: (value) => {
      const index = items.indexOf(value, gone)
      if (index !== -1) items.splice(index, 1)
    },
    values: () => items.slice(gone) as Value[],
  }
}

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
