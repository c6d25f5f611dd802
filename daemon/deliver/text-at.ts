/** The text under these names of a payload, own properties only; undefined where there is none. */
export const textAt = (payload: unknown, ...names: readonly string[]): string | undefined => {
  let value = payload
  for (const name of names) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'string' ? value : undefined
}
