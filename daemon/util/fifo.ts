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
