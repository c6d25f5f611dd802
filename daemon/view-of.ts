/**
 * An object that shows at every look what `current` gives then: for parts that keep hold of what they
 * were given, as settings that can change. It cannot be written to.
 */
export const viewOf = <Value extends object>(current: () => Value): Value =>
  new Proxy({} as Value, {
    get: (_, key) => Reflect.get(current(), key),
    has: (_, key) => Reflect.has(current(), key),
    ownKeys: () => Reflect.ownKeys(current()),
    getOwnPropertyDescriptor: (_, key) => {
      const descriptor = Reflect.getOwnPropertyDescriptor(current(), key)
      // The language asks that what its target lacks be configurable.
      return descriptor && { ...descriptor, configurable: true }
    },
    set: () => false,
    defineProperty: () => false,
    deleteProperty: () => false,
  })
