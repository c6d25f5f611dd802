import { isAscii } from 'node:buffer'
import { gunzipSync } from 'node:zlib'
import { DoorwardError } from '../../shared/errors.ts'
import { toPlainLine } from '../../shared/text.ts'
import { findJsonExcess, parseExactly } from '../util/exact-json.ts'
import type { SignatureScheme } from '../../shared/signatures/scheme.ts'
import { parseMultipart } from './forms.ts'
import type { SignatureHeaders } from './signatures/header.ts'
import { parseXml } from '../util/xml.ts'

/** A parsed body: any JSON value. */
export type Payload = unknown

/** The headers about the format of a body. */
export type BodyHeaders = {
  readonly 'content-type'?: string | undefined
  readonly 'content-encoding'?: string | undefined
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

export const isForm = (contentType: string | undefined): boolean =>
  parseMediaType(contentType) === 'application/x-www-form-urlencoded'

export const parseMediaType = (contentType: string | undefined): string =>
  contentType === usualType ? usualType : readMediaType(contentType)

/** Nearly all senders write exactly this. */
const usualType = 'application/json'

const readMediaType = (contentType: string | undefined): string =>
  contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''

/**
 * Parses JSON, the fields of a form, or JSON in its one field `payload` (GitHub, Slack's buttons);
 * files of a multipart form are only named. Without a content type the body must be JSON. Throws
 * `media-type-unsupported` for anything else, for JSON declared as a form, and for any content coding but the
 * gzip of a scheme that has it; `body-too-large` for what is larger than `maxBytes` then; `payload-not-json` for invalid UTF-8 or JSON (RFC 8259), for JSON
 * over the limits of complexity, and for a multipart form that is cut off or too large.
 *
 * Only `parse`, which takes verified bodies, and `verify`, for a token inside of the body, may call this.
 */
export const parseUnverified = (
  sent: Buffer,
  { 'content-type': contentType, 'content-encoding': contentEncoding }: BodyHeaders,
  { jsonAsText, mailAsForm, bodyType, gzip }: Partial<SignatureScheme> = {},
  maxBytes = maxUnpacked,
): Payload => {
  const coding = contentEncoding?.trim().toLowerCase() ?? ''
  const isPacked = gzip && coding === 'gzip'
  if (coding !== '' && coding !== 'identity' && !isPacked)
    throw unsupported(
      `has the content encoding ${toPlainLine(coding).slice(0, 80)}`,
      'send the body without a content encoding',
    )
  const bytes = isPacked ? unpack(sent, maxBytes) : sent
  // Whatever the content type, which no signature covers.
  if (bodyType === 'text') return decode(bytes)
  if (bodyType === 'ndjson') return parseLines(bytes)
  if (bodyType === 'xml') return readXml(bytes)
  const mediaType = parseMediaType(contentType)
  if (isJson(mediaType) || (jsonAsText && mediaType === 'text/plain')) return parseJson(bytes)
  const toPayload = mailAsForm ? toMailPayload : toFormPayload
  if (isForm(contentType)) return toPayload(parseForm(decode(bytes)))
  if (contentType !== undefined && isMultipart(contentType))
    return toPayload(parseMultipart(bytes, contentType))
  throw unsupported(`is ${toPlainLine(mediaType).slice(0, 80)}`, 'send application/json')
}

const maxUnpacked = 25 * 1024 * 1024

/** A small gzip can be a huge body: no more than this is unpacked. */
const unpack = (bytes: Buffer, maxBytes: number): Buffer => {
  try {
    return gunzipSync(bytes, { maxOutputLength: maxBytes })
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE')
      throw new DoorwardError('body-too-large', `the body is larger than ${maxBytes} bytes`, {
        hint: 'the owner can raise server.body_limit',
      })
    throw new DoorwardError('payload-not-json', 'the body is not valid gzip')
  }
}

const readXml = (bytes: Buffer): Payload => {
  const text = decode(bytes)
  try {
    return parseXml(text)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new DoorwardError('payload-not-json', `the body ${error.message}`)
  }
}

const maxLines = 10_000

/** JSON in each line. */
const parseLines = (bytes: Buffer): Payload => {
  const text = decode(bytes)
  const lines = text.split('\n', maxLines + 2).filter((line) => line.trim() !== '')
  const excess = lines.length > maxLines ? `more than ${maxLines} lines` : findJsonExcess(text)
  if (excess !== undefined)
    throw new DoorwardError('payload-not-json', `the body has ${excess}, which is too much`)
  return lines.map((line) => parseJson(Buffer.from(line)))
}

const isJson = (mediaType: string): boolean =>
  ['application/json', '', 'text/json'].includes(mediaType) || mediaType.endsWith('+json')

export const isMultipart = (contentType: string | undefined): boolean =>
  parseMediaType(contentType) === 'multipart/form-data'

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
  const excess = findJsonExcess(text)
  if (excess !== undefined)
    throw new DoorwardError('payload-not-json', `the body has ${excess}, which is too much`)
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
    localDetail: `the body ${what}: ${hint}`,
  })
