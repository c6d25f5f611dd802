import { isAscii } from 'node:buffer'
import { DoorwardError } from '../../shared/errors.ts'
import { plainLine } from '../../shared/text.ts'
import { parseExactly } from './exact-integers.ts'
import { isTooComplex } from './too-complex.ts'
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
  mediaTypeOf(contentType) === 'application/x-www-form-urlencoded'

const mediaTypeOf = (contentType: string | undefined): string =>
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
      `has the content encoding ${plainLine(coding).slice(0, 80)}`,
      'send the body without a content encoding',
    )
  const mediaType = mediaTypeOf(contentType)
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return parseJson(body.bytes)
  if (isForm(contentType)) return parseForm(decode(body.bytes), plainForms)
  const named = mediaType === '' ? 'has no content type' : `is ${plainLine(mediaType).slice(0, 80)}`
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
  if (plainForms && payload === undefined && fields.size > 0) return fieldsOf(fields)
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
const fieldsOf = (fields: URLSearchParams): Payload => Object.fromEntries(fields)

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
  if (isTooComplex(text))
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
