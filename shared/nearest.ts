import { closest, distance } from 'fastest-levenshtein'

/** `did you mean "agent"?`, when a known name is near enough to be what was meant. */
export const nearest = (given: string, known: readonly string[]): string | undefined => {
  if (known.length === 0) return undefined
  const name = closest(given, [...known])
  const near = distance(given, name) <= Math.max(2, Math.floor(given.length / 3))
  return near ? `did you mean "${name}"?` : undefined
}
