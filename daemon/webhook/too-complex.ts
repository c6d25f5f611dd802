/** Texts up to this many characters take a tenth of a second and 50 MB at most, whatever they hold. */
const harmlessLength = 1024 * 1024
const maxDepth = 1000
const maxContainers = 500_000

const doubleQuote = 0x22
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * True for a JSON text that is small to send and huge to hold: deeper than 1,000 levels, or of more
 * than 500,000 objects and arrays. 25 MB of `[` would stop the daemon for seconds and take a
 * gigabyte. Looks at the characters alone, and only at those of a long text.
 */
export const isTooComplex = (json: string): boolean => {
  if (json.length <= harmlessLength) return false
  let depth = 0
  let containers = 0
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index)
    if (code === doubleQuote) index = endOfString(json, index + 1)
    else if (code === openBrace || code === openBracket) {
      depth += 1
      containers += 1
      if (depth > maxDepth || containers > maxContainers) return true
    } else if (code === closeBrace || code === closeBracket) depth -= 1
  }
  return false
}

/** Where the closing quote of a string stands, or the end of a text that has none. */
export const endOfString = (json: string, start: number): number => {
  let end = json.indexOf('"', start)
  while (end !== -1 && isEscaped(json, start, end)) end = json.indexOf('"', end + 1)
  return end === -1 ? json.length : end
}

/** True when an odd number of backslashes stands before the quote (RFC 8259 section 7). */
const isEscaped = (json: string, start: number, position: number): boolean => {
  let before = position - 1
  while (before >= start && json.charCodeAt(before) === backslash) before -= 1
  return (position - 1 - before) % 2 === 1
}
