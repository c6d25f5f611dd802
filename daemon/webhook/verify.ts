import { timingSafeEqual } from 'node:crypto'
import { DoorwardError } from '../../shared/errors.ts'
import { signedHead } from '../../shared/signature-schemes.ts'
import { isFromWebPage } from '../http/guard.ts'
import { type SignatureHeaders, invalid, oneValue, readSignature } from './read-signature.ts'
import { type ReadyForm, type Verifier, tokenDigest } from './verifier.ts'

export type { SignatureHeaders }

/**
 * Second stage. A body whose sender is known, or whose owner asked for no signature. Only `verify`
 * makes one, and only one can be parsed: the order of the stages is a type.
 */
class VerifiedBody {
  readonly #bytes: Buffer
  readonly #signedId: string | undefined

  constructor(bytes: Buffer, signedId?: string) {
    this.#bytes = bytes
    this.#signedId = signedId
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /** The id of the delivery that the signature covers, where the scheme signs one in a header. */
  get signedId(): string | undefined {
    return this.#signedId
  }
}
export type { VerifiedBody }

/**
 * Checks a signature over the raw bytes in constant time, by the first form of the scheme whose header
 * is there. What fails in that form is not tried in a weaker one. Throws `signature-invalid`, the same
 * for every cause, whose `localDetail` says which it was; `unavailable` when there is no secret that
 * can be used; `origin-forbidden` for what a web page sends to a webhook without one.
 */
export const verify = (
  bytes: Buffer,
  headers: SignatureHeaders,
  verifier: Verifier,
  nowMs: number,
): VerifiedBody => {
  if (typeof verifier === 'string') return withoutSignature(bytes, headers, verifier)
  const form =
    verifier.find(({ header }) => headers[header] !== undefined) ?? verifier.at(-1) ?? verifier[0]
  if (form.check === 'token') {
    checkToken(oneValue(headers, form.header), form)
    return new VerifiedBody(bytes)
  }
  const { digests, timestamp, id } = readSignature(headers, form)
  if (timestamp !== '') checkAge(Math.floor(nowMs / 1000) - Number(timestamp), form)
  const head = signedHead(form.signs, timestamp, id) ?? ''
  // Every key and signature is tried whatever the others say, so the time tells nothing of which one fits.
  let fits = false
  for (const mac of form.macs) {
    const digest = mac(head, bytes)
    for (const given of digests) if (timingSafeEqual(digest, given)) fits = true
  }
  if (!fits) throw invalid('the signature does not fit the body and the secret')
  return new VerifiedBody(bytes, id === '' ? undefined : id)
}

const withoutSignature = (
  bytes: Buffer,
  headers: SignatureHeaders,
  verifier: Extract<Verifier, string>,
): VerifiedBody => {
  if (verifier !== 'none')
    throw new DoorwardError('unavailable', 'this webhook cannot take deliveries now', {
      localDetail:
        verifier === 'unset'
          ? 'its secret_env names a variable that is unset or empty'
          : 'the value of its secret_env is no secret of its signature_scheme: doorward config check says why',
    })
  // A page that the owner opens could post a form to this machine, which no other stranger can.
  if (isFromWebPage(headers['origin']?.[0], headers['sec-fetch-site']?.join()))
    throw new DoorwardError('origin-forbidden', 'web pages may not send to this webhook', {
      hint: 'a webhook with secret_env takes what is signed, from anywhere',
    })
  return new VerifiedBody(bytes)
}

const checkToken = (value: string, { tokens }: ReadyForm): void => {
  // Node reads headers as Latin-1; these are the bytes as they were sent.
  const given = tokenDigest(Buffer.from(value, 'latin1'))
  let fits = false
  for (const token of tokens) if (timingSafeEqual(token, given)) fits = true
  if (!fits) throw invalid('the token is not the secret')
}

const checkAge = (ageSeconds: number, { toleranceSeconds }: ReadyForm): void => {
  if (ageSeconds > toleranceSeconds || ageSeconds < -toleranceSeconds)
    throw invalid(
      `the signed time is ${Math.abs(ageSeconds)} s in the ${ageSeconds < 0 ? 'future' : 'past'}, ${toleranceSeconds} s are taken`,
    )
}
