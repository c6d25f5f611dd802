import { DoorwardError } from '../../shared/errors.ts'
import { isTooComplex } from './too-complex.ts'
import type { VerifiedBody } from './verify.ts'

/** What a sender sent, after it is known who sent it. Any JSON value. */
export type Payload = unknown

const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * Third stage: JSON, or GitHub's form with a `payload` field that holds JSON. Throws
 * `media-type-unsupported` for anything else and for any content coding (a small gzip can be a huge
 * body), `payload-not-json` for bytes that are not valid UTF-8 or not
 * JSON (RFC 8259), and for JSON that is out of all proportion.
 */
export const parse = (
  body: VerifiedBody,
  contentType: string | undefined,
  contentEncoding: string | undefined,
): Payload => {
  if (contentEncoding !== undefined && contentEncoding.trim().toLowerCase() !== 'identity')
    throw unsupported('send the body without a content encoding')
  const mediaType = contentType?.split(';', 1)[0]?.trim().toLowerCase() ?? ''
  if (mediaType === 'application/json' || mediaType.endsWith('+json')) return parseJson(body.bytes)
  if (mediaType === 'application/x-www-form-urlencoded')
    return parseJson(Buffer.from(payloadOf(decode(body.bytes))))
  throw unsupported('send application/json')
}

const maxFormFields = 100

const payloadOf = (form: string): string => {
  // Counted before they are made: millions of empty fields fit into one body.
  const fields = form.split('&', maxFormFields + 1)
  if (fields.length <= maxFormFields) {
    const [payload, second] = new URLSearchParams(form).getAll('payload')
    if (payload !== undefined && second === undefined) return payload
  }
  throw unsupported('a form needs exactly one field named payload')
}

const decode = (bytes: Buffer): string => {
  try {
    return utf8.decode(bytes)
  } catch (error) {
    throw new DoorwardError('payload-not-json', 'the body is not valid UTF-8', { cause: error })
  }
}

const parseJson = (bytes: Buffer): Payload => {
  const text = decode(bytes)
  if (isTooComplex(bytes))
    throw new DoorwardError(
      'payload-not-json',
      'the body is nested too deeply, or has too many objects and lists',
    )
  try {
    return JSON.parse(text)
  } catch {
    // The parser's own message quotes the payload.
    throw new DoorwardError('payload-not-json', 'the body is not valid JSON')
  }
}

const unsupported = (hint: string) =>
  new DoorwardError('media-type-unsupported', 'the body is of a type that is not taken', { hint })
