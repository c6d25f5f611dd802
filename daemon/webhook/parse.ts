import { isAscii } from 'node:buffer'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import type { SignatureScheme } from '../../shared/signatures/scheme.ts'
import { hideBodyToken } from './body-token.ts'
import { parseMultipart } from './forms.ts'
import type { SignatureHeaders } from './signatures/header.ts'
import type { VerifiedBody } from './signatures/verify.ts'

/** The parsed body of a verified delivery: any JSON value. */
export type Payload = unknown

/** The headers about the format of a body. */
export type BodyHeaders = {
  readonly 'content-type'?: string | undefined
  readonly 'content-encoding'?: string | undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export const isForm = (contentType: string | undefined): boolean =>
  parseMediaType(contentType) === 'application/x-www-form-urlencoded'

const parseMediaType = (contentType: string | undefined): string =>
  contentType === usualType ? usualType : readMediaType(contentType)

/** Nearly all senders write exactly this. */
const usualType = 'application/json'

const readMediaType = (contentType: string | undefined): string =>
  contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/**
 * Third stage: JSON, the fields of a form, or JSON in its one field `payload` (GitHub, Slack's buttons);
 * files of a multipart form are only named. Without a content type the body must be JSON. Throws
 * `media-type-unsupported` for anything else, for JSON declared as a form, and for any content coding (a
 * small gzip can be a huge body); `payload-not-json` for invalid UTF-8 or JSON (RFC 8259), for JSON
 * over the limits of complexity, and for a multipart form that is cut off or too large.
 */
export const parse = (
  body: VerifiedBody,
  { 'content-type': contentType, 'content-encoding': contentEncoding }: BodyHeaders,
  { jsonAsText, mailAsForm }: FormatOfScheme = {},
): Payload => {
  const coding = contentEncoding?.trim().toLowerCase() ?? ''
  if (coding !== '' && coding !== 'identity')
    throw unsupported(
      `has the content encoding ${toPlainLine(coding).slice(0, 80)}`,
      'send the body without a content encoding',
    )
  const mediaType = parseMediaType(contentType)
  if (isJson(mediaType) || (jsonAsText && mediaType === 'text/plain')) return parseJson(body.bytes)
  const toPayload = mailAsForm ? toMailPayload : toFormPayload
  if (isForm(contentType)) return toPayload(parseForm(decode(body.bytes)))
  if (contentType !== undefined && isMultipart(contentType))
    return toPayload(parseMultipart(body.bytes, contentType))
  throw unsupported(`is ${toPlainLine(mediaType).slice(0, 80)}`, 'send application/json')
}

type FormatOfScheme = Pick<Partial<SignatureScheme>, 'jsonAsText' | 'mailAsForm'>

const isJson = (mediaType: string): boolean =>
  ['application/json', '', 'text/json'].includes(mediaType) || mediaType.endsWith('+json')

export const isMultipart = (contentType: string | undefined): boolean =>
  parseMediaType(contentType) === 'multipart/form-data'

/**
 * The payload of a verified delivery: what `parse` returns, without the token of its sender, or the headers
 * that the scheme names where its sender sends no body.
 */
export const readPayload = (
  body: VerifiedBody,
  headers: SignatureHeaders,
  scheme: FormatOfScheme & Partial<Pick<SignatureScheme, 'emptyBody' | 'forms'>>,
): Payload => {
  const { emptyBody } = scheme
  return emptyBody && body.bytes.length === 0
    ? Object.fromEntries(emptyBody.flatMap((name) => toEntry(name, headers[name]?.[0])))
    : hideBodyToken(parse(body, toBodyHeaders(headers), scheme), scheme)
}

const toEntry = (name: string, value: string | undefined): [string, string][] =>
  value === undefined ? [] : [[name, value]]

/** The headers about the format of the body, as node:http combines them: one type, any number of codings. */
export const toBodyHeaders = (given: SignatureHeaders): BodyHeaders => ({
  'content-type': given['content-type']?.[0],
  'content-encoding': given['content-encoding']?.join(', '),
})

const maxFormFields = 100

/** The beginning of every JSON document that can contain a form field; no form begins like this. */
const beginsLikeJson = /^\s*["[{]/
/** A multipart form begins with its boundary. */
const beginsLikeMultipart = /^(?:\r\n)?--/

const parseForm = (form: string): [string, string][] => {
  // No signature covers the content type: signed JSON that is sent again as a form must not be parsed from
  // a `&payload=` in the middle of some title.
  if (beginsLikeJson.test(form))
    throw unsupported('is JSON that is called a form', 'send it as application/json')
  if (beginsLikeMultipart.test(form))
    throw unsupported('is a multipart form', 'send it as multipart/form-data')
  // Counted before parsing, as one body can contain millions of empty fields.
  if (form.split('&', maxFormFields + 1).length > maxFormFields)
    throw unsupported('is a form', `a form has at most ${maxFormFields} fields`)
  requireUtf8(form)
  return [...new URLSearchParams(form)]
}

/** Own properties only, whatever the names of the fields; of two fields with one name the last counts. */
const toFormPayload = (fields: readonly (readonly [string, unknown])[]): Payload => {
  const [payload, second] = fields.filter(([name]) => name === 'payload')
  if (fields.length === 0) throw unsupported('is a form', 'a form needs a field')
  if (payload === undefined || typeof payload[1] !== 'string') return Object.fromEntries(fields)
  if (second === undefined) return parseJson(Buffer.from(payload[1]))
  throw unsupported('is a form', 'a form needs exactly one field named payload')
}

/**
 * The author of a mail names fields too: one named `payload` is not the payload, and one that is there twice
 * is a list, which equals no value of a filter.
 */
const toMailPayload = (fields: readonly (readonly [string, unknown])[]): Payload => {
  if (fields.length === 0) throw unsupported('is a form', 'a form needs a field')
  const byName = new Map<string, unknown[]>()
  for (const [name, value] of fields) byName.set(name, [...(byName.get(name) ?? []), value])
  return Object.fromEntries(
    [...byName].map(([name, values]) => [name, values.length === 1 ? values[0] : values]),
  )
}

/** Invalid UTF-8 would be decoded to other characters, and a filter would never match. */
const requireUtf8 = (form: string): void => {
  try {
    for (const [bytes] of form.matchAll(/(?:%[89a-f][\da-f])+/gi)) decodeURIComponent(bytes)
  } catch (error) {
    throw notUtf8(error)
  }
}

const decode = (bytes: Buffer): string => {
  // Most bodies are ASCII, and are decoded and parsed in half the time this way.
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
    // The message of the parser quotes the payload.
    throw new DoorwardError('payload-not-json', 'the body is not valid JSON')
  }
}

/** Only the owner sees the detail. */
const unsupported = (what: string, hint: string) =>
  new DoorwardError('media-type-unsupported', 'unsupported content type', {
    hint,
    localDetail: `the body ${what}: ${hint.replace(/^a form /, 'it ')}`,
  })

/** A text of this length takes 100 ms and 50 MB at most, whatever it contains. */
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

const jsonQuote = 0x22
const zero = 0x30
const nine = 0x39

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
