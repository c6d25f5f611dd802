import { DoorwardError } from '../../shared/errors.ts'
import type { SignatureForm } from '../../shared/signature-schemes.ts'

/** Headers as in `headersDistinct`: every value separately. */
export type SignatureHeaders = Readonly<Record<string, readonly string[] | undefined>>

/** The content of signature headers in the one strict form that is accepted. */
export type GivenSignature = {
  readonly digests: readonly Buffer[]
  /** The digits as signed; empty where the form signs no time. */
  readonly timestamp: string
  readonly id: string
}

const hexLength = { sha256: 64, sha1: 40 } as const
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
  const value = oneValue(headers, form.header)
  if (form.list === 'one') {
    const timestamp = form.timestampHeader === undefined ? '' : getTimestamp(headers, form)
    if (!value.startsWith(form.prefix))
      throw invalid(`the signature does not begin with "${form.prefix}"`)
    return { digests: [parseDigest(value.slice(form.prefix.length), form)], timestamp, id: '' }
  }
  const items = value.split(form.list === 'commas' ? ',' : ' ', maxSignatures + 2)
  const mine = items.filter((item) => item.startsWith(form.prefix))
  if (mine.length === 0) throw invalid(`no signature begins with "${form.prefix}"`)
  if (mine.length > maxSignatures) throw invalid(`there are more than ${maxSignatures} signatures`)
  const timestamp = form.list === 'commas' ? timestampAmong(items) : getTimestamp(headers, form)
  const id = form.idHeader === undefined ? '' : getId(headers, form.idHeader)
  return { digests: parseDigests(mine, form), timestamp, id }
}

/** The valid digests of a list. Throws the fault of the first one when all are invalid. */
const parseDigests = (items: readonly string[], form: SignatureForm): Buffer[] => {
  const texts = items.map((item) => item.slice(form.prefix.length))
  const wellFormed = texts.filter((text) => findFault(text, form) === undefined)
  if (wellFormed.length === 0) return [parseDigest(texts[0] ?? '', form)]
  return wellFormed.map((text) => Buffer.from(text, form.encoding))
}

const parseDigest = (text: string, form: SignatureForm): Buffer => {
  const fault = findFault(text, form)
  if (fault !== undefined) throw invalid(fault)
  return Buffer.from(text, form.encoding)
}

const findFault = (text: string, { encoding, algorithm }: SignatureForm): string | undefined =>
  encoding === 'hex' ? hexFault(text, algorithm) : base64Fault(text)

const hexFault = (text: string, algorithm: 'sha256' | 'sha1'): string | undefined => {
  if (!/^[0-9a-f]*$/.test(text))
    return /^[0-9a-fA-F]*$/.test(text)
      ? 'the signature has upper-case hex digits'
      : 'the signature has characters that are not hex digits'
  if (text.length !== hexLength[algorithm])
    return `the signature has ${text.length} hex digits, ${algorithm} has ${hexLength[algorithm]}`
  return undefined
}

/** 32 bytes, in the one text that encodes them (RFC 4648 section 3.5): the last digit has two spare bits. */
const base64Fault = (text: string): string | undefined => {
  if (/^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$/.test(text)) return undefined
  return /^[A-Za-z0-9+/]*=*$/.test(text)
    ? `the signature is not the base64 text of 32 bytes, which has 44 characters (it has ${text.length})`
    : 'the signature has characters that are not base64'
}

const getTimestamp = (headers: SignatureHeaders, { timestampHeader = '' }: SignatureForm): string =>
  checkedTimestamp(oneValue(headers, timestampHeader), timestampHeader)

const timestampAmong = (items: readonly string[]): string => {
  const [value, second] = items.filter((item) => item.startsWith('t='))
  if (value === undefined || second !== undefined)
    throw invalid(`the header has ${value === undefined ? 'no' : 'more than one'} "t="`)
  return checkedTimestamp(value.slice('t='.length), 't=')
}

const checkedTimestamp = (text: string, name: string): string => {
  if (/^(0|[1-9]\d{0,11})$/.test(text)) return text
  throw invalid(`${name} is not a time in Unix seconds`)
}

/** Without a full stop, which separates the signed parts (Standard Webhooks, "Signature scheme"). */
const getId = (headers: SignatureHeaders, name: string): string => {
  const id = oneValue(headers, name)
  if (/^[\x21-\x2d\x2f-\x7e]{1,256}$/.test(id)) return id
  throw invalid(`${name} is empty, too long, or has a character that no id may have`)
}
