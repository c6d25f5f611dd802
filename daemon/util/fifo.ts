/** First in, first out; each step but `remove` takes the same time however many there are. */
export type Fifo<Value> = {
  readonly add: (value: Value) => void
  readonly first: () => Value | undefined
  readonly last: () => Value | undefined
  readonly shift: () => Value | undefined
  readonly size: () => number
  readonly remove: (value: Value) => void
  /** The first one first. */
  readonly values: () => Value[]
}

const fewGone = 32

/** Makes an empty one. `Array.shift` moves all that is left, once there are some ten thousand. */
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
        // Held no longer.
        items[gone] = undefined
        gone += 1
      }
      // Moved once for as many steps as there are left.
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
