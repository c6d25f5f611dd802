import { closest, distance } from 'fastest-levenshtein'

/**
 * `did you mean "agent"?`, when a known name is near enough to be what was meant: `most` changes away,
 * else a third of what was given.
 */
export const nearest = (
  given: string,
  known: readonly string[],
  most?: number,
): string | undefined => {
  const name = nearestName(given, known, most)
  return name === undefined ? undefined : `did you mean "${name}"?`
}

/** The known name that is near enough, as `nearest` says it. */
export const nearestName = (
  given: string,
  known: readonly string[],
  most = Math.max(2, Math.floor(given.length / 3)),
): string | undefined => {
  if (known.length === 0) return undefined
  const name = closest(given, [...known])
  const changes = distance(given, name)
  // Two changes make any name of two letters out of any other.
  return changes <= most && changes < given.length ? name : undefined
}
