import { endOfString } from './too-complex.ts'

/** Digits of 2^53, from which on a number of JavaScript is not every integer any more. */
const fewestDigits = 16

const jsonQuote = 0x22
const zero = 0x30
const nine = 0x39

/**
 * What a JSON text means, with every integer that JavaScript cannot hold exactly as text (RFC 8259 section
 * 6): an id of 18 digits would come out as that of somebody else. `utf8` is the same text in bytes: where there
 * is no such integer it costs a look at one in sixteen of them. Throws what `JSON.parse` throws.
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

/** True when so many digits stand in a row anywhere, as then one of them is looked at. */
const hasManyDigits = (utf8: Buffer): boolean => {
  const { length } = utf8
  if (length <= window.length) return hasManyDigitsIn(utf8, length)
  // What is cut in two at the end of a piece is whole at the beginning of the next.
  for (let from = 0; from < length; from += window.length - (fewestDigits - 1))
    if (hasManyDigitsIn(window, utf8.copy(window, 0, from))) return true
  return false
}

/**
 * Where a large text is looked at, piece by piece: it may lie in memory that can be resized, of which each byte
 * takes V8 three times as long.
 */
const window = Buffer.allocUnsafeSlow(32 * 1024)

const hasManyDigitsIn = (utf8: Buffer, length: number): boolean => {
  for (let at = fewestDigits - 1; at < length; at += fewestDigits)
    if (isDigitByte(utf8[at]) && digitsAround(utf8, length, at) >= fewestDigits) return true
  return false
}

const digitsAround = (utf8: Buffer, length: number, at: number): number => {
  let first = at
  while (isDigitByte(utf8[first - 1])) first -= 1
  let next = at + 1
  while (next < length && isDigitByte(utf8[next])) next += 1
  return next - first
}

/** In one comparison, as nearly all of its time goes into this: what is below zero becomes huge. */
const isDigitByte = (byte = 0): boolean => (byte - zero) >>> 0 < 10

/** Of a text that is known to be JSON. */
const quoteIntegers = (json: string): string => {
  const parts: string[] = []
  let written = 0
  for (let at = 0; at < json.length; at += 1) {
    if (json.charCodeAt(at) === jsonQuote) at = endOfString(json, at + 1)
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
