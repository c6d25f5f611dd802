/*
 * JSON from outside: limits on how complex it is, and integers that a number cannot represent.
 */

/** A text of this length takes 100 ms and 50 MB at most, whatever it contains. */
const harmlessLength = 1024 * 1024
const maxDepth = 1000
const maxContainers = 500_000

const doubleQuote = 0x22
const zero = 0x30
const nine = 0x39
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * True for JSON that is small as text and huge in memory: deeper than 1,000 levels, or with more than 500,000
 * objects and arrays. 25 MB of `[` would block the daemon for seconds and take a gigabyte. Counts
 * characters, and only in a long text.
 */
export const exceedsJsonLimits = (json: string): boolean => {
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

/** The index of the closing quote of a string, or the end of the text. */
const endOfString = (json: string, start: number): number => {
  let end = json.indexOf('"', start)
  while (end !== -1 && isEscaped(json, start, end)) end = json.indexOf('"', end + 1)
  return end === -1 ? json.length : end
}

/** True after an odd number of backslashes (RFC 8259 section 7). */
const isEscaped = (json: string, start: number, position: number): boolean => {
  let before = position - 1
  while (before >= start && json.charCodeAt(before) === backslash) before -= 1
  return (position - 1 - before) % 2 === 1
}

/** Digits of 2^53, above which a number cannot represent every integer. */
const fewestDigits = 16

/**
 * Parses JSON, with every integer that a number cannot represent exactly as text (RFC 8259 section 6):
 * an id of 18 digits would become another id. `utf8` is the same text: only one in sixteen of its bytes
 * is read when there is no such integer. Throws what `JSON.parse` throws.
 */
export const parseExactly = (json: string, utf8: Buffer): unknown => {
  const isUsual = !hasManyDigits(utf8)
  const parsed: unknown = JSON.parse(json)
  if (isUsual) return parsed
  const quoted = quoteIntegers(json)
  return quoted === json ? parsed : JSON.parse(quoted)
}

const isDigit = (json: string, at: number): boolean => {
  const code = json.charCodeAt(at)
  return code >= zero && code <= nine
}

/** True for a run of that many digits anywhere: one of them is at a multiple of their number. */
const hasManyDigits = (utf8: Buffer): boolean => {
  for (let at = fewestDigits - 1; at < utf8.length; at += fewestDigits)
    if (isDigitByte(utf8[at]) && digitsAround(utf8, at) >= fewestDigits) return true
  return false
}

const digitsAround = (utf8: Buffer, at: number): number => {
  let first = at
  while (isDigitByte(utf8[first - 1])) first -= 1
  let next = at + 1
  while (isDigitByte(utf8[next])) next += 1
  return next - first
}

/** In one comparison, as this takes most of the time: `>>> 0` makes a negative number huge. */
const isDigitByte = (byte = 0): boolean => (byte - zero) >>> 0 < 10

/** For valid JSON. */
const quoteIntegers = (json: string): string => {
  const parts: string[] = []
  let written = 0
  for (let at = 0; at < json.length; at += 1) {
    if (json.charCodeAt(at) === doubleQuote) at = endOfString(json, at + 1)
    else if (isDigit(json, at)) {
      const end = endOfNumber(json, at)
      const start = json[at - 1] === '-' ? at - 1 : at
      const literal = json.slice(start, end)
      if (isInteger(literal) && !Number.isSafeInteger(Number(literal))) {
        parts.push(json.slice(written, start), '"', literal, '"')
        written = end
      }
      at = end - 1
    }
  }
  return parts.join('') + json.slice(written)
}

const isInteger = (literal: string): boolean => /^-?\d+$/.test(literal)

const endOfNumber = (json: string, from: number): number => {
  let end = from
  while (isDigit(json, end) || '.eE+-'.includes(json[end] ?? ' ')) end += 1
  return end
}
