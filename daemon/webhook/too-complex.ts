/** Bodies up to this size take a tenth of a second and 50 MB at most, whatever they hold. */
const harmlessBytes = 1024 * 1024
const maxDepth = 1000
const maxContainers = 500_000

const quote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * True for a JSON text that is small to send and huge to hold: deeper than 1,000 levels, or of more
 * than 500,000 objects and arrays. 25 MB of `[` would stop the daemon for seconds and take a
 * gigabyte. Looks at the bytes alone, and only at those of a large body.
 */
export const isTooComplex = (json: Buffer): boolean => {
  if (json.length <= harmlessBytes) return false
  let depth = 0
  let containers = 0
  for (let index = 0; index < json.length; index += 1) {
    const byte = json[index]
    if (byte === quote) index = endOfString(json, index + 1)
    else if (byte === openBrace || byte === openBracket) {
      depth += 1
      containers += 1
      if (depth > maxDepth || containers > maxContainers) return true
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1
  }
  return false
}

/** Where the closing quote of a string stands, or the end of a text that has none. */
const endOfString = (json: Buffer, start: number): number => {
  let end = json.indexOf(quote, start)
  while (end !== -1 && isEscaped(json, start, end)) end = json.indexOf(quote, end + 1)
  return end === -1 ? json.length : end
}

/** True when an odd number of backslashes stands before the quote (RFC 8259 section 7). */
const isEscaped = (json: Buffer, start: number, position: number): boolean => {
  let before = position - 1
  while (before >= start && json[before] === backslash) before -= 1
  return (position - 1 - before) % 2 === 1
}
