import { isAscii } from 'node:buffer'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { VerifiedBody } from './verify.ts'

/** What a sender sent, after it is known who sent it. Any JSON value. */
export type Payload = unknown

/** The headers that say how a body is written. */
export type BodyHeaders = {
  readonly 'content-type'?: string | undefined
  readonly 'content-encoding'?: string | undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** True for a body of form fields. */
export const isForm = (contentType: string | undefined): boolean =>
  parseMediaType(contentType) === 'application/x-www-form-urlencoded'

const parseMediaType = (contentType: string | undefined): string =>
  contentType === usualType ? usualType : readMediaType(contentType)

/** As nearly all senders write it. */
const usualType = 'application/json'

const readMediaType = (contentType: string | undefined): string =>
  contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/**
 * Third stage: JSON, or a form with a `payload` field that holds JSON (GitHub, Slack's buttons). With
 * `plainForms` a form without one is an object of its fields (Slack's commands). Throws
 * `media-type-unsupported` for anything else, for JSON that is called a form, and for any content coding
 * (a small gzip can be a huge body); `payload-not-json` for bytes that are not valid UTF-8 or not JSON
 * (RFC 8259), and for JSON that is out of all proportion.
 */
export const parse = (
  body: VerifiedBody,
  { 'content-type': contentType, 'content-encoding': contentEncoding }: BodyHeaders,
  plainForms = false,
): Payload => {
  const coding = contentEncoding?.trim().toLowerCase() ?? ''
  if (coding !== '' && coding !== 'identity')
    throw unsupported(
      `has the content encoding ${toPlainLine(coding).slice(0, 80)}`,
      'send the body without a content encoding',
    )
  const mediaType = parseMediaType(contentType)
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return parseJson(body.bytes)
  if (isForm(contentType)) return parseForm(decode(body.bytes), plainForms)
  const named =
    mediaType === '' ? 'has no content type' : `is ${toPlainLine(mediaType).slice(0, 80)}`
  throw unsupported(named, 'send application/json')
}

const maxFormFields = 100

/** How every JSON document begins that has room for a field of a form in it; no form begins so. */
const beginsLikeJson = /^\s*["[{]/

const parseForm = (form: string, plainForms: boolean): Payload => {
  // No signature covers the content type: whoever sends signed JSON again as a form must not have it read
  // from `&payload=` on, in the middle of a title that a stranger wrote.
  if (beginsLikeJson.test(form))
    throw unsupported('is JSON that is called a form', 'send it as application/json')
  // Counted before they are made: millions of empty fields fit into one body.
  const isSmall = form.split('&', maxFormFields + 1).length <= maxFormFields
  if (isSmall) requireUtf8(form)
  const fields = new URLSearchParams(isSmall ? form : '')
  const [payload, second] = fields.getAll('payload')
  if (payload !== undefined && second === undefined) return parseJson(Buffer.from(payload))
  if (plainForms && payload === undefined && fields.size > 0) return toPayload(fields)
  throw unsupported('is a form', 'a form needs exactly one field named payload')
}

/** A field that is none would be read with other letters, and a filter never match. */
const requireUtf8 = (form: string): void => {
  try {
    for (const [bytes] of form.matchAll(/(?:%[89a-f][\da-f])+/gi)) decodeURIComponent(bytes)
  } catch (error) {
    throw notUtf8(error)
  }
}

/** Own properties alone, whatever the fields are called; the last of two fields of one name counts. */
const toPayload = (fields: URLSearchParams): Payload => Object.fromEntries(fields)

const decode = (bytes: Buffer): string => {
  // Most bodies are, and a string of one byte a character is made and parsed in half the time.
  if (isAscii(bytes)) return bytes.toString('latin1')
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw notUtf8(error)
  }
}

const notUtf8 = (cause: unknown) =>
  new DoorwardError('payload-not-json', 'the body is not valid UTF-8', { cause })

const parseJson = (bytes: Buffer): Payload => {
  const text = decode(bytes)
  if (exceedsJsonLimits(text))
    throw new DoorwardError(
      'payload-not-json',
      'the body is nested too deeply, or has too many objects and lists',
    )
  try {
    return parseExactly(text, bytes)
  } catch {
    // The parser's own message quotes the payload.
    throw new DoorwardError('payload-not-json', 'the body is not valid JSON')
  }
}

/** The sender is not told what it sent; the owner is. */
const unsupported = (what: string, hint: string) =>
  new DoorwardError('media-type-unsupported', 'the body is of a type that is not taken', {
    hint,
    localDetail: `the body ${what}: ${hint.replace(/^a form /, 'it ')}`,
  })

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

/** Where the closing quote of a string stands, or the end of a text that has none. */
const endOfString = (json: string, start: number): number => {
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
const parseExactly = (json: string, utf8: Buffer): unknown => {
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

/** True when so many digits are in a row anywhere: one of them is at a place that is looked at. */
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
