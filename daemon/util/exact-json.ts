/*
 * JSON from outside: limits on how complex it is, and integers that a number cannot represent.
 */

/** A text of this length takes 100 ms and 50 MB at most, whatever it contains. */
const harmlessLength = 1024 * 1024
const maxDepth = 1000
const maxContainers = 500_000
/** Of all objects together. */
const maxMembers = 250_000
/** Members and items: each has a comma behind it, but the last. */
const maxValues = 1_000_000
/** Of all numbers that may not fit a double. */
const maxLongDigits = 2_000_000

const doubleQuote = 0x22
const comma = 0x2c
const zero = 0x30
const nine = 0x39
const colon = 0x3a
const backslash = 0x5c
const openBrace = 0x7b
const closeBrace = 0x7d
const openBracket = 0x5b
const closeBracket = 0x5d

/**
 * What is too much of JSON that is small as text, and huge in memory or slow to parse; undefined where nothing
 * is. 25 MB of `[` would block the daemon for seconds and take a gigabyte, and a million names or long numbers
 * block it for more than a second. Counts characters, and only in a long text.
 */
export const findJsonExcess = (json: string): string | undefined => {
  if (json.length <= harmlessLength) return undefined
  let [depth, containers, members, commas, longDigits] = [0, 0, 0, 0, 0]
  for (let index = 0; index < json.length; index += 1) {
    const code = json.charCodeAt(index)
    if (code === doubleQuote) index = endOfString(json, index + 1)
    else if (code === comma) commas += 1
    else if (code === colon) members += 1
    else if (code === openBrace || code === openBracket) {
      depth += 1
      containers += 1
      if (depth > maxDepth) return `more than ${format(maxDepth)} levels`
    } else if (code === closeBrace || code === closeBracket) depth -= 1
    else if (isDigit(json, index)) {
      const end = endOfNumber(json, index)
      if (end - index >= fewestDigits) longDigits += end - index
      index = end - 1
    }
  }
  if (containers > maxContainers) return `more than ${format(maxContainers)} objects and lists`
  if (members > maxMembers) return `more than ${format(maxMembers)} members`
  if (commas >= maxValues) return `more than ${format(maxValues)} values`
  if (longDigits > maxLongDigits) return `more than ${format(maxLongDigits)} digits of long numbers`
  return undefined
}

const format = (count: number): string => count.toLocaleString('en')

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
  return JSON.parse(hasManyDigits(utf8) ? quoteIntegers(json) : json)
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

/** Invalid JSON stays invalid: a number as a name is not quoted, nor one with a zero in front. */
const quoteIntegers = (json: string): string => {
  const parts: string[] = []
  let written = 0
  for (let at = 0; at < json.length; at += 1) {
    if (json.charCodeAt(at) === doubleQuote) at = endOfString(json, at + 1)
    else if (isDigit(json, at)) {
      const end = endOfNumber(json, at)
      const start = json[at - 1] === '-' ? at - 1 : at
      const literal = end - at < fewestDigits ? '' : json.slice(start, end)
      if (isInteger(literal) && !Number.isSafeInteger(Number(literal)) && !isName(json, end)) {
        parts.push(json.slice(written, start), '"', literal, '"')
        written = end
      }
      at = end - 1
    }
  }
  return parts.join('') + json.slice(written)
}

const isInteger = (literal: string): boolean => /^-?[1-9]\d+$/.test(literal)

/** True where a colon follows. */
const isName = (json: string, end: number): boolean => {
  let next = end
  while (' \t\r\n'.includes(json[next] ?? '.')) next += 1
  return json.charCodeAt(next) === colon
}

const endOfNumber = (json: string, from: number): number => {
  let end = from
  while (isOfNumber(json.charCodeAt(end))) end += 1
  return end
}

/** A digit, or one of `.eE+-`. */
const isOfNumber = (code: number): boolean =>
  (code >= zero && code <= nine) ||
  code === 0x2e ||
  code === 0x65 ||
  code === 0x45 ||
  code === 0x2b ||
  code === 0x2d
