import { hash } from 'node:crypto'
import type { SignatureScheme } from '../../shared/signature-schemes.ts'
import type { Payload } from './parse.ts'
import type { SignatureHeaders } from './read-signature.ts'

export type DeliveryId = {
  readonly id: string
  /** True when whoever made the signature chose the id too: nobody else can send the same under another. */
  readonly signed: boolean
}

/** What was verified of a delivery. */
export type VerifiedDelivery = {
  readonly payload: Payload
  /** The id in a header that the signature covers, if there is one. */
  readonly signedId: string | undefined
  /** False for a webhook without a secret. */
  readonly isSigned: boolean
}

/**
 * The sender's own name for a delivery: the signed one, else the field of the verified body that the
 * scheme has it in, else the first of its headers that has one. Where it is long, or more than visible ASCII,
 * a hash stands for it: it is shown and logged. Without `verified` the headers alone are looked at, and
 * nothing of them is known to be true.
 */
export const deliveryIdOf = (
  { deliveryId }: SignatureScheme,
  headers: SignatureHeaders,
  verified?: VerifiedDelivery,
): DeliveryId | undefined => {
  // However long it is: another header is the word of who sent it this time, and not of who signed it.
  if (verified?.signedId !== undefined) return { id: verified.signedId, signed: true }
  if (verified && deliveryId.body !== undefined) {
    const id = fieldOf(verified.payload, deliveryId.body)
    if (typeof id === 'string' && id !== '') return { id: shown(id), signed: verified.isSigned }
  }
  for (const name of deliveryId.headers) {
    const [value, second] = headers[name] ?? []
    if (value !== undefined && value !== '' && second === undefined)
      return { id: shown(value), signed: false }
  }
  return undefined
}

const shown = (id: string): string =>
  /^[\x21-\x7e]{1,128}$/.test(id) ? id : `sha256:${hash('sha256', id, 'hex')}`

const fieldOf = (payload: Payload, name: string): unknown =>
  typeof payload === 'object' && payload !== null && Object.hasOwn(payload, name)
    ? (payload as Readonly<Record<string, unknown>>)[name]
    : undefined
