import { createHmac, type KeyObject } from 'node:crypto'
import { DoorwardError } from '../errors.ts'
import type { Path } from '../paths.ts'

export type MacAlgorithm = 'sha256' | 'sha1' | 'sha512'

/** How a sender with a private key signs. */
export const keyAlgorithms = ['ed25519', 'ecdsa-p256', 'rsa-sha256'] as const
export type KeyAlgorithm = (typeof keyAlgorithms)[number]

/** How a sender proves itself that neither signs with an HMAC nor sends a token; see special-checks.ts. */
export type SpecialCheck =
  | 'jwt'
  | 'jwt-of-body'
  | 'google'
  | 'oidc'
  | 'sns'
  | 'mailgun'
  | 'adyen'
  | 'paypal'
  | 'plaid'
  | 'twilio'
  | 'client-state'

/** Text as it is, or the name of a value in braces. */
export type SignedPart = string

/** Claims of a JWT with the values that the owner expects. */
export type Claims = Readonly<Record<string, string | number | boolean>>

/** One form of signature. */
export type SignatureForm = {
  /**
   * `mac`: an HMAC of the signed bytes. `key-pair`: a signature of them by a private key. `token`: the secret
   * itself, which does not cover the body.
   */
  readonly check: 'mac' | 'key-pair' | 'token' | SpecialCheck
  /** Header with the signature; its presence commits a delivery to this form. Lower case, or empty. */
  readonly header: string
  /** Others that may have one too, each by another key. */
  readonly moreHeaders?: readonly string[]
  /** The place of a token, if it is not the header's whole value. */
  readonly in?: 'bearer' | 'basic' | 'query' | 'field'
  /** The parameter of the query with the token. */
  readonly query?: string
  /** The field of the body with the token, and how it is written. */
  readonly field?: Path
  readonly fieldText?: string
  readonly algorithm: MacAlgorithm
  /** Of a key pair. */
  readonly keyAlgorithm?: KeyAlgorithm
  readonly encoding: 'hex' | 'base64' | 'base64url'
  /** Hex digits may be upper case. */
  readonly anyCase?: true
  /** The text before each signature; may be empty. */
  readonly prefix: string
  /** Another form of the scheme has the same header with another prefix, or none. */
  readonly byPrefix?: true
  /** One signature, or a list of them with this between them. */
  readonly list: 'one' | 'spaces' | 'commas' | 'semicolons' | 'commas-or-semicolons'
  /** The list is one of `name=value`, and this names a signature: `v1` of `t=…,v1=…`. */
  readonly param?: string
  /** What is signed, in order: the raw `{body}`, the values of the request, and text between them. */
  readonly signs: readonly SignedPart[]
  /** Where the signed time is: a header, or a name in the list of the signature's header. */
  readonly timestampHeader?: string
  readonly timestampParam?: string
  /** Unix seconds, Unix milliseconds, or a date by ISO 8601. */
  readonly timestampUnit: 's' | 'ms' | 'iso'
  /** Header with the signed id of the delivery. */
  readonly idHeader?: string
  /**
   * How a secret becomes a key: `text` unchanged; `hex` decoded; `base64` decoded, with or without the prefix
   * `whsec_`; `whsec` the same, but only for secrets with the prefix, and `token` only for those without.
   * `public-key` is that of the sender.
   */
  readonly secret: 'text' | 'hex' | 'base64' | 'whsec' | 'token' | 'public-key'
  /** The sender publishes its keys, and there is no secret. */
  readonly keysFrom?: 'google' | 'aws-sns' | 'paypal' | 'issuer'
  /** What the owner expects in a token or message: who issued it, whom it is for, who sends, and other claims. */
  readonly issuer?: string
  readonly audience?: string
  readonly account?: string
  readonly claims?: Claims
}

/** A hex HMAC of the raw body. */
export const overBody = {
  check: 'mac',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  list: 'one',
  signs: ['{body}'],
  timestampUnit: 's',
  secret: 'text',
} as const satisfies Partial<SignatureForm>

/** That of Standard Webhooks, or of Svix, whose headers it had first. */
export const standardWebhooks = (family: 'webhook' | 'svix') =>
  ({
    ...overBody,
    header: `${family}-signature`,
    encoding: 'base64',
    prefix: 'v1,',
    list: 'spaces',
    signs: ['{id}', '.', '{timestamp}', '.', '{body}'],
    timestampHeader: `${family}-timestamp`,
    idHeader: `${family}-id`,
    secret: 'base64',
  }) as const satisfies SignatureForm

/** The values of a request that a signature can cover, as they were sent. */
export type SignedValues = {
  readonly timestamp: string
  readonly id: string
  readonly method: string
  /** The public address, with path and query. */
  readonly url: string
  readonly path: string
}

/** The HMAC of what this form signs. */
export const computeMac = (
  { algorithm, signs }: Pick<SignatureForm, 'algorithm' | 'signs'>,
  key: KeyObject | Buffer,
  body: Buffer,
  values: SignedValues,
): Buffer => {
  const hmac = createHmac(algorithm, key)
  for (const part of signs)
    if (part === '{body}') hmac.update(body)
    else hmac.update(valueOf(part, values), 'latin1')
  return hmac.digest()
}

/** The bytes that this form signs. */
export const toSignedBytes = (
  { signs }: Pick<SignatureForm, 'signs'>,
  body: Buffer,
  values: SignedValues,
): Buffer =>
  Buffer.concat(
    signs.map((part) => (part === '{body}' ? body : Buffer.from(valueOf(part, values), 'latin1'))),
  )

const valueOf = (part: SignedPart, values: SignedValues): string => {
  switch (part) {
    case '{timestamp}':
      return values.timestamp
    case '{id}':
      return values.id
    case '{method}':
      return values.method
    case '{url}':
      return values.url
    case '{path}':
      return values.path
    default:
      return part
  }
}

/** What `signed` can name. */
export const signedNames = ['body', 'timestamp', 'id', 'method', 'url', 'path'] as const

/** Parses what is signed, as `{timestamp}.{body}`. Throws `config-invalid`. */
export const parseSigned = (text: string): readonly SignedPart[] => {
  const parts = text.split(/(\{[^{}]*\})/).filter((part) => part !== '')
  const known = signedNames.map((name) => `{${name}}`)
  const wrong = parts.find((part) => /[{}]/.test(part) && !known.includes(part))
  if (wrong !== undefined)
    throw new DoorwardError('config-invalid', `${wrong} is nothing that is signed`, {
      hint: `it can name ${known.join(', ')}`,
    })
  if (!/^[\x20-\x7e\r\n\t]*$/.test(text))
    throw new DoorwardError('config-invalid', 'the text between the values must be ASCII')
  if (parts.filter((part) => part === '{body}').length !== 1)
    throw new DoorwardError('config-invalid', '{body} must be in it, once', {
      hint: 'a signature without the body does not prove it: {timestamp}.{body}',
    })
  return parts
}
