let lastMs = Number.NaN
let lastText = ''

/** A time in milliseconds as ISO 8601 in UTC. In a burst many things happen in one millisecond: one text for all. */
export const isoTime = (ms: number): string => {
  if (ms !== lastMs) {
    lastText = new Date(ms).toISOString()
    lastMs = ms
  }
  return lastText
}
