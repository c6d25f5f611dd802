/** Values by the id of an event, in the order in which the ids came. */
export type ById<Value> = {
  readonly get: (id: string) => Value | undefined
  readonly set: (id: string, value: Value) => void
  readonly delete: (id: string) => void
  readonly values: () => Value[]
  readonly entries: () => (readonly [id: string, value: Value])[]
}

/**
 * Makes an empty one, for values that come and go. A Map makes a new table now and then, to which its old
 * one points for as long as that is not collected: whatever such a Map held survives its use, and is moved
 * and marked at the cost of a third of an event (seen with Node 20). So the Map here holds numbers only.
 */
export const createById = <Value>(): ById<Value> => {
  const places = new Map<string, number>()
  const values: (Value | undefined)[] = []
  const free: number[] = []
  const entries = (): (readonly [string, Value])[] => {
    const found: (readonly [string, Value])[] = []
    for (const [id, place] of places) {
      const value = values[place]
      if (value !== undefined) found.push([id, value])
    }
    return found
  }
  return {
    get: (id) => {
      const place = places.get(id)
      return place === undefined ? undefined : values[place]
    },
    set: (id, value) => {
      const place = places.get(id) ?? free.pop() ?? values.length
      values[place] = value
      places.set(id, place)
    },
    delete: (id) => {
      const place = places.get(id)
      if (place === undefined) return
      values[place] = undefined
      free.push(place)
      places.delete(id)
    },
    values: () => entries().map(([, value]) => value),
    entries,
  }
}
