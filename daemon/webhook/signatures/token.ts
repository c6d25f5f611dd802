import { createHash } from 'node:crypto'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { SignatureForm } from '../../../shared/signatures/form.ts'
import { valueAt } from '../../util/payload-path.ts'
import type { Payload } from '../body.ts'
import { invalid, oneValue, readQuery, type RequestLine, type SignatureHeaders } from './header.ts'

/** The place where a token is expected, in words. */
export const describePlace = ({ in: place, header, query, fieldText }: SignatureForm): string => {
  switch (place) {
    case undefined:
      return `${header} header`
    case 'bearer':
      return 'Authorization: Bearer header'
    case 'basic':
      return 'Authorization: Basic header'
    case 'query':
      return `${query} in the query`
    case 'field':
      return `${fieldText} in the body`
  }
}

/** A larger body is not parsed before its sender is known. */
const maxUnprovenBytes = 1024 * 1024

/** What the body has to give, which nothing proves yet. */
export type UnprovenBody = { readonly size: number; readonly parse: () => Payload }

/** Checks a token in constant time. Throws `signature-invalid`. */
export const checkToken = (
  form: SignatureForm & { readonly tokens: readonly Buffer[] },
  headers: SignatureHeaders,
  line: RequestLine,
  body: UnprovenBody,
): void => {
  let matches = false
  for (const given of readTokens(form, headers, line, body)) {
    const digest = tokenDigest(given)
    for (const token of form.tokens) if (constantTimeEqual(token, digest)) matches = true
  }
  if (!matches) throw invalid('the token is not the secret')
}

export const tokenDigest = (token: Buffer): Buffer => createHash('sha256').update(token).digest()

/** The token of a request; of Basic the password, and the user name with it. */
export const readTokens = (
  form: SignatureForm,
  headers: SignatureHeaders,
  line: RequestLine,
  body: UnprovenBody,
): Buffer[] => {
  switch (form.in) {
    case undefined:
      // Node decodes headers as Latin-1; these are the bytes that were sent.
      return [Buffer.from(oneValue(headers, form.header), 'latin1')]
    case 'bearer':
      return [Buffer.from(readAuthorization(headers, form.in), 'latin1')]
    case 'basic':
      return readBasic(readAuthorization(headers, form.in))
    case 'query':
      return [readParameter(line, form.query ?? '')]
    case 'field':
      return [readField(form, body)]
  }
}

const readAuthorization = (headers: SignatureHeaders, scheme: 'bearer' | 'basic'): string => {
  const value = oneValue(headers, 'authorization')
  // RFC 9110 section 11.4: the scheme in any case, then spaces.
  const [given, credentials] = /^([^ ]+) +([^ ].*)$/s.exec(value)?.slice(1) ?? []
  if (given?.toLowerCase() !== scheme || credentials === undefined)
    throw invalid(`the authorization header is not ${scheme === 'basic' ? 'Basic' : 'Bearer'}`)
  return credentials
}

const readBasic = (credentials: string): Buffer[] => {
  const whole = Buffer.from(credentials, 'base64')
  const colon = whole.indexOf(':')
  if (whole.toString('base64') !== credentials || colon === -1)
    throw invalid('the authorization header is not base64 of user:password')
  return [whole.subarray(colon + 1), whole]
}

const readParameter = (line: RequestLine, name: string): Buffer => {
  const [value, second] = readQuery(line).getAll(name)
  if (value === undefined) throw invalid(`there is no ${name} in the query`)
  if (second !== undefined) throw invalid(`${name} is in the query more than once`)
  return Buffer.from(value)
}

const readField = ({ field = [], fieldText }: SignatureForm, body: UnprovenBody): Buffer => {
  if (body.size > maxUnprovenBytes)
    throw invalid('the body is too large to be read before its sender is known')
  const value = valueAt(parseUnproven(body), field)
  if (typeof value === 'string') return Buffer.from(value)
  throw invalid(`the body has no text at ${fieldText}`)
}

const parseUnproven = ({ parse }: UnprovenBody): Payload => {
  try {
    return parse()
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    throw invalid(`the body cannot be read: ${error.message}`)
  }
}
