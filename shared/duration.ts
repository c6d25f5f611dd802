/** A duration for people, in at most two units: `340ms`, `2.5s`, `3m 20s`, `4h 2m`, `3d 5h`. */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))}ms`
  const seconds = ms / 1000
  if (seconds < 10) return `${Math.floor(seconds * 10) / 10}s`
  const units: readonly (readonly [string, number])[] = [
    ['d', 86_400],
    ['h', 3600],
    ['m', 60],
    ['s', 1],
  ]
  const parts: string[] = []
  let rest = Math.floor(seconds)
  for (const [name, size] of units) {
    if (rest >= size && parts.length < 2) parts.push(`${Math.floor(rest / size)}${name}`)
    else if (parts.length > 0) break
    rest %= size
  }
  return parts.join(' ')
}
