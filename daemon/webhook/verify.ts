import { type KeyObject, createHmac, timingSafeEqual } from 'node:crypto'
import { DoorwardError } from '../../shared/errors.ts'
import type { Webhook } from '../../shared/webhook-definition.ts'
import { isFromWebPage } from '../guard.ts'

/**
 * Second stage. A body whose sender is known, or whose owner asked for no signature. Only `verify`
 * makes one, and only one can be parsed: the order of the stages is a type.
 */
class VerifiedBody {
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get bytes(): Buffer {
    return this.#bytes
  }
}
export type { VerifiedBody }

export type SignatureHeaders = Readonly<Record<string, readonly string[] | undefined>>

const digestHexLength = { sha256: 64, sha1: 40 } as const

/**
 * Checks the HMAC of the raw bytes in constant time (RFC 2104; GitHub's "Validating webhook
 * deliveries"). Throws `signature-invalid`, the same for every cause, whose `localDetail` says which
 * it was; `unavailable` when the secret is not set; `origin-forbidden` for what a web page sends to a
 * webhook without one.
 */
export const verify = (
  bytes: Buffer,
  headers: SignatureHeaders,
  signature: Webhook['signature'],
  keys: readonly KeyObject[] | 'unset' | 'none',
): VerifiedBody => {
  if (keys === 'none') {
    // A page that the owner opens could post a form to this machine, which no other stranger can.
    if (isFromWebPage(headers['origin']?.[0], headers['sec-fetch-site']?.[0]))
      throw new DoorwardError('origin-forbidden', 'web pages may not send to this webhook', {
        hint: 'a webhook with secret_env takes what is signed, from anywhere',
      })
    return new VerifiedBody(bytes)
  }
  if (keys === 'unset')
    throw new DoorwardError('unavailable', 'this webhook cannot take deliveries now', {
      localDetail: 'its secret_env names a variable that is unset or empty',
    })
  const given = digestOf(headers[signature.header], signature)
  // Every key is tried whatever the others say, so the time tells nothing of which one fits.
  const fits = keys.map((key) =>
    timingSafeEqual(createHmac(signature.algorithm, key).update(bytes).digest(), given),
  )
  if (!fits.includes(true)) throw invalid('the signature does not fit the body and the secret')
  return new VerifiedBody(bytes)
}

const digestOf = (
  values: readonly string[] | undefined,
  { header, algorithm, prefix }: Webhook['signature'],
): Buffer => {
  const [value] = values ?? []
  if (value === undefined) throw invalid(`there is no ${header} header`)
  if (values?.length !== 1) throw invalid(`the ${header} header is there more than once`)
  if (!value.startsWith(prefix)) throw invalid(`the signature does not begin with "${prefix}"`)
  const hex = value.slice(prefix.length)
  // Buffer.from stops at the first character that is no hex digit, so the text is checked first.
  if (!/^[0-9a-f]*$/.test(hex))
    throw invalid(
      /^[0-9a-fA-F]*$/.test(hex)
        ? 'the signature has upper-case hex digits'
        : 'the signature has characters that are no hex digits',
    )
  if (hex.length !== digestHexLength[algorithm])
    throw invalid(
      `the signature has ${hex.length} hex digits, ${algorithm} has ${digestHexLength[algorithm]}`,
    )
  return Buffer.from(hex, 'hex')
}

const invalid = (localDetail: string) =>
  new DoorwardError('signature-invalid', 'the signature is missing or not valid', { localDetail })
