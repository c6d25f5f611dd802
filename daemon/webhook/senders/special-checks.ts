import { constants, createHash, createHmac, type KeyObject, verify } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import type { Claims, SpecialCheck } from '../../../shared/signatures/form.ts'
import { isForm, isMultipart } from '../body.ts'
import { parseMultipart } from '../forms.ts'
import { parseSnsMessage, parseSnsUrl } from './remote-keys.ts'
import {
  invalid,
  oneValue,
  type Proof,
  type ProvenClaims,
  type SignatureHeaders,
} from '../signatures/header.ts'

/*
 * Senders that prove themselves otherwise than by an HMAC in a header or a token: by a key pair, by a JWT, or by
 * something in the body.
 */

export type SpecialRequest = {
  readonly bytes: Buffer
  readonly headers: SignatureHeaders
  readonly contentType: string
  /** The public address with path and query. */
  readonly url: string
  readonly nowMs: number
  readonly proof: Proof | undefined
}

export type SpecialForm = {
  readonly header: string
  readonly keys: readonly KeyObject[]
  readonly tokens: readonly Buffer[]
  readonly toleranceSeconds: number
  /** What the owner expects in a token: who issued it, whom it is for, who sends, and other claims. */
  readonly issuer?: string | undefined
  readonly audience?: string | undefined
  readonly account?: string | undefined
  readonly claims?: Claims | undefined
}

type Check = (request: SpecialRequest, form: SpecialForm) => string | undefined

const noMatch = () => invalid('the signature does not match the body and the key')

const timestampIn = (text: unknown, name: string): string => {
  if (typeof text === 'string' && /^(0|[1-9]\d{0,11})$/.test(text)) return text
  throw invalid(`${name} is not a time in Unix seconds`)
}

const requireAge = (seconds: number, nowMs: number, toleranceSeconds: number): void => {
  const age = Math.floor(nowMs / 1000) - Math.floor(seconds)
  if (Math.abs(age) > toleranceSeconds)
    throw invalid(
      `the signed time is ${Math.abs(age)} s in the ${age < 0 ? 'future' : 'past'}, ${toleranceSeconds} s are allowed`,
    )
}

const stringsOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {}

/** Larger bodies are not parsed before their sender is known. */
const maxUnprovenBytes = 1024 * 1024

const refuseLarge = (bytes: Buffer, limit = maxUnprovenBytes): void => {
  if (bytes.length > limit)
    throw invalid('the body is too large to be read before its sender is known')
}

const parseJsonObject = (bytes: Buffer): Readonly<Record<string, unknown>> => {
  refuseLarge(bytes)
  try {
    return stringsOf(JSON.parse(bytes.toString('utf8')))
  } catch {
    throw invalid('the body is not JSON, and the signature is a part of it')
  }
}

/** The fields of a form, or undefined for another body. */
const formFields = ({ bytes, contentType }: SpecialRequest): URLSearchParams | undefined => {
  if (!isForm(contentType)) return undefined
  refuseLarge(bytes, 4 * maxUnprovenBytes)
  const text = bytes.toString('latin1')
  if (text.split('&', maxFields + 1).length > maxFields)
    throw invalid('the form has too many fields')
  return new URLSearchParams(bytes.toString('utf8'))
}

const maxFields = 100

/** The texts in a form with files, such as a mail with attachments. */
const multipartFields = ({
  bytes,
  contentType,
}: SpecialRequest): Readonly<Record<string, unknown>> => {
  try {
    return Object.fromEntries(parseMultipart(bytes, contentType))
  } catch (error) {
    throw invalid(`the body cannot be read: ${error instanceof Error ? error.message : ''}`)
  }
}

const mac = (algorithm: 'sha1' | 'sha256', key: KeyObject, text: string): Buffer =>
  createHmac(algorithm, key).update(text).digest()

/** True when one of the keys makes this MAC. */
const anyMac = (
  algorithm: 'sha1' | 'sha256',
  { keys }: SpecialForm,
  text: string,
  given: Buffer,
): boolean => {
  let matches = false
  for (const key of keys) {
    if (constantTimeEqual(mac(algorithm, key, text), given)) matches = true
  }
  return matches
}

/** Nothing but `prove` gives claims, so a request without them proves nothing. */
const claimsOf = (proof: Proof | undefined): ProvenClaims => {
  if (proof?.claims) return proof.claims
  throw invalid('the request has no JWT')
}

const sha256 = (bytes: Buffer | string): Buffer => createHash('sha256').update(bytes).digest()

const checks: { readonly [Kind in SpecialCheck]: Check } = {
  /** A JWT that contains the hash of the body. */
  'jwt-of-body': ({ bytes, proof }) => {
    const { iss, sha256: hash } = claimsOf(proof)
    if (iss !== 'netlify') throw invalid('the issuer of the JWT is not netlify')
    if (hash !== sha256(bytes).toString('hex')) throw invalid('the JWT is for another body')
    return undefined
  },

  /** A JWT that proves the sender, and not the body. */
  jwt: ({ proof }, { audience }) => {
    const { aud } = claimsOf(proof)
    if (audience !== undefined && aud !== audience)
      throw invalid(`the JWT is for another address than ${audience}`)
    return undefined
  },

  /** A token by OpenID Connect, which proves the sender, and not the body. */
  oidc: ({ proof }, { issuer, audience, claims = {} }) => {
    const given = claimsOf(proof)
    if (issuer === undefined || given.iss !== issuer)
      throw invalid('the issuer of the JWT is another one than issuer has here')
    if (audience === undefined || ![given.aud].flat().includes(audience))
      throw invalid('the audience of the JWT is another one than audience has here')
    for (const [name, expected] of Object.entries(claims))
      if (!Object.hasOwn(given, name) || given[name] !== expected)
        throw invalid(`the claim ${name} of the JWT is not what claims has here`)
    return undefined
  },

  /** The same by Google for a service account. */
  google: ({ proof }, { audience, account }) => {
    const { iss, aud, email, email_verified: isVerified } = claimsOf(proof)
    if (iss !== 'https://accounts.google.com' && iss !== 'accounts.google.com')
      throw invalid('the issuer of the JWT is not Google')
    if (audience === undefined || aud !== audience)
      throw invalid('the audience of the JWT is another one than audience has here')
    if (account === undefined || email !== account || isVerified !== true)
      throw invalid('the JWT is of another account than service_account has here')
    return undefined
  },

  sns: ({ bytes, proof }, { audience }) => {
    const message = parseSnsMessage(bytes)
    const { SignatureVersion: version, Signature: signature, TopicArn: topic } = message
    if (version !== '1' && version !== '2')
      throw invalid('the version of the signature is not 1 or 2')
    if (typeof signature !== 'string' || signature.length > 1024)
      throw invalid('the message has no signature')
    const signed = Buffer.from(signedText(message))
    const algorithm = version === '1' ? 'sha1' : 'sha256'
    const key = proof?.key && { key: proof.key, padding: constants.RSA_PKCS1_PADDING }
    const given = Buffer.from(signature, 'base64')
    const isCanonical = given.toString('base64') === signature
    if (!key || !isCanonical || !verify(algorithm, signed, key, given)) throw noMatch()
    // Anyone with an account of AWS has topics whose messages Amazon signs.
    if (audience === undefined || topic !== audience)
      throw invalid('the message is of another topic than audience has here')
    if (message['SubscribeURL'] !== undefined && !parseSnsUrl(message['SubscribeURL']))
      throw invalid('the address that confirms the subscription is not one of Amazon SNS')
    const { MessageId: id } = message
    return typeof id === 'string' && /^[\x21-\x7e]{1,128}$/.test(id) ? id : undefined
  },

  mailgun: (request, form) => {
    const given = isMultipart(request.contentType)
      ? multipartFields(request)
      : readMailgunSignature(request)
    // Of a subaccount: the same by the key of the parent account.
    const parent = given['parent-signature']
    if (typeof parent !== 'object' || parent === null) return checkMailgun(given, request, form)
    try {
      return checkMailgun(given, request, form)
    } catch {
      return checkMailgun(stringsOf(parent), request, form)
    }
  },

  /** PayPal signs a checksum of the body only: its id must serve once. */
  paypal: ({ bytes, headers, nowMs, proof }, { header, audience, toleranceSeconds }) => {
    const id = oneValue(headers, 'paypal-transmission-id')
    if (!/^[\w-]{1,128}$/.test(id)) throw invalid('paypal-transmission-id is no id of PayPal')
    const time = oneValue(headers, 'paypal-transmission-time')
    if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z$/.test(time))
      throw invalid('paypal-transmission-time is not a time in ISO 8601')
    requireAge(Date.parse(time) / 1000, nowMs, toleranceSeconds)
    if (oneValue(headers, 'paypal-auth-algo') !== 'SHA256withRSA')
      throw invalid('paypal-auth-algo is not SHA256withRSA')
    const text = oneValue(headers, header)
    const given = Buffer.from(text, 'base64')
    const signed = Buffer.from(`${id}|${time}|${audience}|${crc32(bytes)}`)
    const isCanonical = text.length <= 1024 && given.toString('base64') === text
    if (audience === undefined || !proof?.key || !isCanonical) throw noMatch()
    if (!verify('sha256', signed, proof.key, given))
      throw invalid('the signature does not match the body, the key and webhook_id')
    return id
  },

  /** A JWT that contains the hash of the body. */
  plaid: ({ bytes, nowMs, proof }, { toleranceSeconds }) => {
    const { iat, request_body_sha256: hash } = claimsOf(proof)
    if (typeof iat !== 'number') throw invalid('the JWT has no time at which it was made')
    requireAge(iat, nowMs, toleranceSeconds)
    if (hash !== sha256(bytes).toString('hex')) throw invalid('the JWT is for another body')
    return undefined
  },

  /** Adyen signs eight fields of each item, and nothing else of it. */
  adyen: ({ bytes }, form) => {
    const list = parseJsonObject(bytes)['notificationItems']
    const items = Array.isArray(list) ? list.map(stringsOf) : []
    if (items.length === 0 || items.length > maxItems)
      throw invalid(`the body has no list of 1 to ${maxItems} items`)
    const ids = items.map(({ NotificationRequestItem: item }) => {
      const { signed, signature, id } = readAdyenItem(stringsOf(item))
      if (!anyMac('sha256', form, signed, signature)) throw noMatch()
      return id
    })
    return ids.length === 1 ? ids[0] : undefined
  },

  twilio: (request, form) => {
    const { bytes, headers, url } = request
    const text = oneValue(headers, form.header)
    const given = Buffer.from(text, 'base64')
    if (given.length !== 20 || given.toString('base64') !== text)
      throw invalid('the signature is not the base64 text of 20 bytes')
    const fields = formFields(request)
    const query = url.indexOf('?')
    const hash = query === -1 ? null : new URLSearchParams(url.slice(query)).get('bodySHA256')
    const needsHash = hash !== null || (!fields && bytes.length > 0)
    if (needsHash && hash?.toLowerCase() !== sha256(bytes).toString('hex'))
      throw invalid('bodySHA256 in the query is missing, or the hash of another body')
    const sorted = sortedFields(fields)
    if (!withAndWithoutPort(url).some((each) => anyMac('sha1', form, each + sorted, given)))
      throw noMatch()
    return undefined
  },

  'client-state': ({ bytes }, { tokens }) => {
    const list = parseJsonObject(bytes)['value']
    const items = Array.isArray(list) ? list.map(stringsOf) : []
    if (items.length === 0) throw invalid('the body has no list of notifications')
    for (const { clientState } of items) {
      const given = sha256(typeof clientState === 'string' ? clientState : '')
      if (!tokens.some((token) => constantTimeEqual(token, given)))
        throw invalid('the clientState of a notification is not the secret')
    }
    return undefined
  },
}

const maxItems = 100

/** All but the merchant's own reference have a form without a colon: so each text is that of one item. */
const adyenFields: readonly (readonly [name: string, form: RegExp])[] = [
  ['pspReference', /^[\w-]{1,80}$/],
  ['originalReference', /^[\w-]{0,80}$/],
  ['merchantAccountCode', /^[^:]{1,200}$/],
  ['merchantReference', /^[^]{0,200}$/],
  ['value', /^-?\d{1,18}$/],
  ['currency', /^[A-Z]{3}$/],
  ['eventCode', /^\w{1,80}$/],
  ['success', /^(true|false)$/],
]

const readAdyenItem = (item: Readonly<Record<string, unknown>>) => {
  const { value, currency } = stringsOf(item['amount'])
  const { hmacSignature: text } = stringsOf(item['additionalData'])
  const given = { originalReference: '', merchantReference: '', ...item, value, currency }
  const values = adyenFields.map(([name, form]) => {
    const field = (given as Readonly<Record<string, unknown>>)[name]
    const found = typeof field === 'number' || typeof field === 'boolean' ? String(field) : field
    if (typeof found === 'string' && form.test(found)) return found
    throw invalid(`an item has no ${name} as Adyen writes it`)
  })
  const signature = Buffer.from(typeof text === 'string' ? text : '', 'base64')
  if (signature.length !== 32 || signature.toString('base64') !== text)
    throw invalid('an item has no hmacSignature of 32 bytes in base64')
  const [pspReference, , , , , , eventCode, success] = values
  return { signed: values.join(':'), signature, id: `${pspReference}:${eventCode}:${success}` }
}

/** The token, which the signature covers, and not the event: it must not serve for a second one. */
const checkMailgun = (
  given: Readonly<Record<string, unknown>>,
  { nowMs }: SpecialRequest,
  form: SpecialForm,
): string => {
  const timestamp = timestampIn(given['timestamp'], 'the timestamp of the signature')
  const { token, signature } = given
  if (typeof token !== 'string' || !/^[\x21-\x7e]{16,128}$/.test(token))
    throw invalid('the body has no token of a signature')
  if (typeof signature !== 'string' || !/^[0-9a-f]{64}$/.test(signature))
    throw invalid('the body has no signature of 64 hex digits')
  requireAge(Number(timestamp), nowMs, form.toleranceSeconds)
  if (!anyMac('sha256', form, timestamp + token, Buffer.from(signature, 'hex'))) throw noMatch()
  return token
}

const readMailgunSignature = (request: SpecialRequest): Readonly<Record<string, unknown>> => {
  const fields = formFields(request)
  return fields
    ? Object.fromEntries(fields)
    : stringsOf(parseJsonObject(request.bytes)['signature'])
}

const ofSubscription = [
  'Message',
  'MessageId',
  'SubscribeURL',
  'Timestamp',
  'Token',
  'TopicArn',
  'Type',
]
const signedFields = new Map([
  ['Notification', ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type']],
  ['SubscriptionConfirmation', ofSubscription],
  ['UnsubscribeConfirmation', ofSubscription],
])

/**
 * What Amazon signs: names and values of some fields, in the order of the names. Only the message may have
 * several lines: in others, lines that an owner of another topic had signed could pass for other fields.
 */
const signedText = (message: Readonly<Record<string, unknown>>): string => {
  const names = signedFields.get(String(message['Type']))
  if (!names) throw invalid('the type of the message is not one of Amazon SNS')
  return names
    .filter((name) => name !== 'Subject' || typeof message[name] === 'string')
    .map((name) => {
      const value = message[name]
      if (typeof value !== 'string') throw invalid(`the message has no ${name}`)
      if (name !== 'Message' && value.includes('\n'))
        throw invalid(`${name} has several lines, as no message of Amazon SNS has`)
      return `${name}\n${value}\n`
    })
    .join('')
}

/** Twilio signs the port of some requests, even where it is the usual one of https. */
const withAndWithoutPort = (url: string): readonly string[] => {
  const [, origin, rest = ''] = /^(https:\/\/[^/?:]+)(?::443)?(?=[/?]|$)(.*)$/s.exec(url) ?? []
  return origin === undefined ? [url] : [origin + rest, `${origin}:443${rest}`]
}

/** Names and values, in the order of the names; of equal names each value once, in order. */
const sortedFields = (fields: URLSearchParams | undefined): string => {
  const pairs = [
    ...new Set([...(fields ?? [])].map(([name, value]) => JSON.stringify([name, value]))),
  ]
  return pairs
    .map((pair) => JSON.parse(pair) as [string, string])
    .toSorted((a, b) => compare(a[0], b[0]) || compare(a[1], b[1]))
    .map(([name, value]) => name + value)
    .join('')
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** Checks a request in the way of its sender, and returns an id that the signature covers. */
export const checkSpecial = (
  check: SpecialCheck,
  request: SpecialRequest,
  form: SpecialForm,
): string | undefined => checks[check](request, form)
