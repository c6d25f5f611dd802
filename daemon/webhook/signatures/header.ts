import type { KeyObject } from 'node:crypto'
import type { JWTPayload } from 'jose'
import { DoorwardError } from '../../../shared/errors.ts'
import type { KeyAlgorithm, MacAlgorithm, SignatureForm } from '../../../shared/signatures/form.ts'

/** Headers as in `headersDistinct`: every value separately. */
export type SignatureHeaders = Readonly<Record<string, readonly string[] | undefined>>

/** The content of signature headers in the one strict form that is accepted. */
export type GivenSignature = {
  readonly digests: readonly Buffer[]
  /** The digits as signed; empty where the form signs no time. */
  readonly timestamp: string
  readonly id: string
}

const digestBytes = { sha256: 32, sha1: 20, sha512: 64, ed25519: 64 } as const

/** The bytes of a signature, undefined where they differ: of RSA by the key, of ECDSA by its two numbers. */
const sizeOf = (form: SignatureForm): number | undefined => {
  const keyAlgorithm = algorithmOf(form)
  return keyAlgorithm === 'ecdsa-p256' || keyAlgorithm === 'rsa-sha256'
    ? undefined
    : digestBytes[keyAlgorithm]
}

const algorithmOf = ({ algorithm, keyAlgorithm }: SignatureForm): MacAlgorithm | KeyAlgorithm =>
  keyAlgorithm ?? algorithm

/** As long as those of RSA with 8192 bits. */
const maxBytes = 1024
const separators = {
  spaces: ' ',
  commas: ',',
  semicolons: ';',
  'commas-or-semicolons': /[,;]/,
} as const
const maxSignatures = 20

/** The one error for every invalid signature; only `localDetail` has the cause. */
export const invalid = (localDetail: string) =>
  new DoorwardError('signature-invalid', 'the signature is missing or not valid', { localDetail })

/** The one value of a header. Throws `signature-invalid` when it is missing or repeated. */
export const oneValue = (headers: SignatureHeaders, name: string): string => {
  const values = headers[name]
  const value = values?.[0]
  if (value === undefined) throw invalid(`there is no ${name} header`)
  if (values?.length !== 1) throw invalid(`the ${name} header is there more than once`)
  return value
}

/**
 * Parses the signatures of a form. Every text is checked before it is decoded, as Node's decoders ignore
 * what is invalid. Throws `signature-invalid`.
 */
export const readSignature = (headers: SignatureHeaders, form: SignatureForm): GivenSignature => {
  if (form.moreHeaders) return readNumbered(headers, form, form.moreHeaders)
  const value = oneValue(headers, form.header)
  const isUsual = form.list === 'one' && form.signs.length === 1
  if (isUsual && value.startsWith(form.prefix))
    return { digests: [parseDigest(value.slice(form.prefix.length), form)], ...unsigned }
  const items = splitList(value, form)
  const start = form.param === undefined ? form.prefix : `${form.param}=${form.prefix}`
  const mine = items.filter((item) => item.startsWith(start))
  if (mine.length === 0)
    throw invalid(
      form.list === 'one'
        ? `the signature does not begin with "${start}"`
        : `no signature begins with "${start}"`,
    )
  if (mine.length > maxSignatures) throw invalid(`there are more than ${maxSignatures} signatures`)
  const timestamp = readTimestamp(headers, form, items)
  const id = form.idHeader === undefined ? '' : getId(headers, form, form.idHeader)
  const texts = mine.map((item) => item.slice(start.length))
  return { digests: parseDigests(texts, form), timestamp, id }
}

/** One signature in each of several headers. */
const readNumbered = (
  headers: SignatureHeaders,
  form: SignatureForm,
  more: readonly string[],
): GivenSignature => {
  const present = [form.header, ...more].filter((name) => headers[name] !== undefined)
  const names = present.length === 0 ? [form.header] : present
  return {
    digests: parseDigests(
      names.map((name) => oneValue(headers, name)),
      form,
    ),
    ...unsigned,
  }
}

/** Nothing but the body. */
const unsigned = { timestamp: '', id: '' } as const

const splitList = (value: string, { list }: SignatureForm): readonly string[] => {
  if (list === 'one') return [value]
  const items = value.split(separators[list], maxSignatures + 2)
  return list === 'commas-or-semicolons' ? items.map((item) => item.trim()) : items
}

const parseDigest = (text: string, form: SignatureForm): Buffer => {
  const fault = findFault(text, form)
  if (fault !== undefined) throw invalid(fault)
  return Buffer.from(text, form.encoding)
}

/** The valid digests of a list. Throws the fault of the first one when all are invalid. */
const parseDigests = (texts: readonly string[], form: SignatureForm): Buffer[] => {
  const wellFormed = texts.filter((text) => findFault(text, form) === undefined)
  if (wellFormed.length === 0) return [parseDigest(texts[0] ?? '', form)]
  return wellFormed.map((text) => Buffer.from(text, form.encoding))
}

const findFault = (text: string, form: SignatureForm): string | undefined =>
  form.encoding === 'hex' ? hexFault(text, form) : base64Fault(text, form)

const hexFault = (text: string, form: SignatureForm): string | undefined => {
  const { anyCase } = form
  const algorithm = algorithmOf(form)
  if (!(anyCase ? /^[0-9a-fA-F]*$/ : /^[0-9a-f]*$/).test(text))
    return /^[0-9a-fA-F]*$/.test(text)
      ? 'the signature has upper-case hex digits'
      : 'the signature has characters that are not hex digits'
  const size = sizeOf(form)
  if (size === undefined)
    return text.length % 2 === 1 || text.length > 2 * maxBytes
      ? `the signature has ${text.length} hex digits, which is no length of ${algorithm}`
      : undefined
  return text.length === size * 2
    ? undefined
    : `the signature has ${text.length} hex digits, ${algorithm} has ${size * 2}`
}

/** The one text that encodes these bytes (RFC 4648 section 3.5): the last digit has spare bits. */
const base64Fault = (text: string, form: SignatureForm): string | undefined => {
  const { encoding } = form
  const size = sizeOf(form)
  const bytes = Buffer.from(text, encoding)
  const canonical = bytes.toString(encoding)
  const isPadded = encoding === 'base64url' && text === canonical + padding(canonical.length)
  const isSized = size === undefined ? bytes.length <= maxBytes : bytes.length === size
  if (isSized && (text === canonical || isPadded)) return undefined
  const digits = encoding === 'base64' ? /^[A-Za-z0-9+/]*=*$/ : /^[A-Za-z0-9_-]*=*$/
  if (!digits.test(text)) return `the signature has characters that are not ${encoding}`
  if (size === undefined) return `the signature is not the ${encoding} text of a signature`
  const length = Buffer.alloc(size).toString(encoding).length
  return `the signature is not the ${encoding} text of ${size} bytes, which has ${length} characters (it has ${text.length})`
}

const padding = (length: number): string => '='.repeat((4 - (length % 4)) % 4)

const readTimestamp = (
  headers: SignatureHeaders,
  { timestampHeader, timestampParam, timestampUnit }: SignatureForm,
  items: readonly string[],
): string => {
  if (timestampHeader !== undefined)
    return checkedTimestamp(oneValue(headers, timestampHeader), timestampUnit, timestampHeader)
  if (timestampParam === undefined) return ''
  const name = `${timestampParam}=`
  const [value, second] = items.filter((item) => item.startsWith(name))
  if (value === undefined || second !== undefined)
    throw invalid(`the header has ${value === undefined ? 'no' : 'more than one'} "${name}"`)
  return checkedTimestamp(value.slice(name.length), timestampUnit, name)
}

const times = {
  s: { form: /^(0|[1-9]\d{0,11})$/, text: 'Unix seconds' },
  ms: { form: /^(0|[1-9]\d{0,14})$/, text: 'Unix milliseconds' },
  iso: {
    form: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/,
    text: 'ISO 8601',
  },
} as const

const checkedTimestamp = (text: string, unit: SignatureForm['timestampUnit'], name: string) => {
  const { form, text: unitText } = times[unit]
  if (form.test(text) && Number.isFinite(toMilliseconds(text, unit))) return text
  throw invalid(`${name} is not a time in ${unitText}`)
}

/** A signed time as a number; it was checked. */
export const toMilliseconds = (text: string, unit: SignatureForm['timestampUnit']): number => {
  if (unit === 'iso') return Date.parse(text)
  return unit === 's' ? Number(text) * 1000 : Number(text)
}

/** Without the text that separates it from the next signed part, a full stop in Standard Webhooks. */
const getId = (headers: SignatureHeaders, { signs }: SignatureForm, name: string): string => {
  const id = oneValue(headers, name)
  const next = signs[signs.indexOf('{id}') + 1] ?? '{body}'
  if (/^[\x21-\x7e]{1,256}$/.test(id) && (next.startsWith('{') || !id.includes(next))) return id
  throw invalid(`${name} is empty, too long, or has a character that no id may have`)
}

declare const proven: unique symbol

/** The claims of a token whose signature and times are right; only `verifyJwt` makes them. */
export type ProvenClaims = JWTPayload & { readonly [proven]: true }

/** What `prove` finds before a verification that needs it: the claims of a token, or a key that its sender publishes. */
export type Proof =
  | { readonly claims: ProvenClaims; readonly key?: undefined }
  | { readonly key: KeyObject; readonly claims?: undefined }

/** The first line of a request, as it was sent. */
export type RequestLine = {
  readonly method?: string | undefined
  readonly url?: string | undefined
  readonly proof?: Proof | undefined
}

/** True for a request that has a signature or token of this form, right or wrong. */
export const hasSignature = (
  { in: place, header, moreHeaders = [], query = '', prefix, byPrefix }: SignatureForm,
  headers: SignatureHeaders,
  line: RequestLine,
): boolean => {
  switch (place) {
    case undefined:
      // Some are a part of the body.
      return (
        header === '' ||
        (byPrefix
          ? (headers[header]?.[0]?.startsWith(prefix) ?? false)
          : [header, ...moreHeaders].some((name) => headers[name] !== undefined))
      )
    case 'bearer':
    case 'basic':
      return (headers[header] ?? []).some((value) => value.toLowerCase().startsWith(`${place} `))
    case 'query':
      return readQuery(line).has(query)
    case 'field':
      return true
  }
}

/** The parameters of the query of a request. */
export const readQuery = ({ url = '' }: RequestLine): URLSearchParams => {
  const start = url.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : url.slice(start + 1))
}
