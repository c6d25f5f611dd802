import { createHmac } from 'node:crypto'
import { keyBytes, type SignatureScheme, signedHead } from '../shared/signature-schemes.ts'

export type SigningTime = {
  /** The id that goes into the signature, where the scheme signs one. */
  readonly deliveryId: string
  readonly nowMs: number
}

/**
 * The headers that the sender of this webhook would put on these bytes. Undefined when the secret is
 * none of the scheme.
 */
export const signPayload = (
  scheme: SignatureScheme,
  secret: string,
  body: Buffer,
  { deliveryId, nowMs }: SigningTime,
): Record<string, string> | undefined => {
  const form = scheme.forms.findLast((candidate) => keyBytes(candidate, secret) !== undefined)
  const key = form && keyBytes(form, secret)
  if (!form || !key) return undefined
  // HTTP sends header values as Latin-1: these are the bytes of the token again.
  if (form.check === 'token') return { [form.header]: key.toString('latin1') }
  const timestamp = String(Math.floor(nowMs / 1000))
  const hmac = createHmac(form.algorithm, key)
  const head = signedHead(form.signs, timestamp, deliveryId)
  if (head !== undefined) hmac.update(head, 'latin1')
  const signature = form.prefix + hmac.update(body).digest(form.encoding)
  return {
    [form.header]: form.list === 'commas' ? `t=${timestamp},${signature}` : signature,
    ...(form.timestampHeader !== undefined && { [form.timestampHeader]: timestamp }),
    ...(form.idHeader !== undefined && { [form.idHeader]: deliveryId }),
  }
}
