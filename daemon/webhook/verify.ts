import {
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  timingSafeEqual,
} from 'node:crypto'
import { DoorwardError } from '../../shared/errors.ts'
import {
  keyBytes,
  type SignatureForm,
  type SignatureScheme,
  signedHead,
} from '../../shared/signature-schemes.ts'
import { isFromWebPage } from '../http/guard.ts'
import { invalid, oneValue, readSignature, type SignatureHeaders } from './signature-header.ts'

export type { SignatureHeaders }

/**
 * Second stage. A body with a valid signature, or for a webhook without a secret. Only `verify` creates
 * one, and `parse` accepts nothing else: the type enforces the order of the stages.
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
 * is present. After a failure no weaker form is tried. Throws `signature-invalid`, the same for every
 * cause, with the cause in `localDetail`; `unavailable` without a usable secret; `origin-forbidden` for a
 * request of a web page to a webhook without a secret.
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
  // Every key is tried with every signature, so that the time does not show which one fits.
  let matches = false
  for (const key of form.keys) {
    const digest = createHmac(form.algorithm, key).update(head, 'latin1').update(bytes).digest()
    for (const given of digests) if (timingSafeEqual(digest, given)) matches = true
  }
  if (!matches) throw invalid('the signature does not match the body and the secret')
  return new VerifiedBody(bytes, id === '' ? undefined : id)
}

const withoutSignature = (
  bytes: Buffer,
  headers: SignatureHeaders,
  verifier: Extract<Verifier, string>,
): VerifiedBody => {
  if (verifier !== 'none')
    throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
      localDetail:
        verifier === 'unset'
          ? 'its secret_env names a variable that is unset or empty'
          : 'the value of its secret_env is not a secret of its signature_scheme: doorward config check says why',
    })
  // A web page in the owner's browser can post a form to this machine.
  if (isFromWebPage(headers['origin']?.[0], headers['sec-fetch-site']?.join()))
    throw new DoorwardError('origin-forbidden', 'web pages may not send to this webhook', {
      hint: 'a webhook with secret_env accepts signed deliveries from anywhere',
    })
  return new VerifiedBody(bytes)
}

const checkToken = (value: string, { tokens }: CompiledForm): void => {
  // Node decodes headers as Latin-1; these are the bytes that were sent.
  const given = tokenDigest(Buffer.from(value, 'latin1'))
  let matches = false
  for (const token of tokens) if (timingSafeEqual(token, given)) matches = true
  if (!matches) throw invalid('the token is not the secret')
}

const checkAge = (ageSeconds: number, { toleranceSeconds }: CompiledForm): void => {
  if (ageSeconds > toleranceSeconds || ageSeconds < -toleranceSeconds)
    throw invalid(
      `the signed time is ${Math.abs(ageSeconds)} s in the ${ageSeconds < 0 ? 'future' : 'past'}, ${toleranceSeconds} s are allowed`,
    )
}

/** One form of a signature with its keys or tokens, prepared once for all requests. */
type CompiledForm = SignatureForm & {
  /** Any of these may have signed. */
  readonly keys: readonly KeyObject[]
  /** SHA-256 of each token, so that tokens of any length compare in constant time. */
  readonly tokens: readonly Buffer[]
  readonly toleranceSeconds: number
}

/**
 * How deliveries are verified: `none` when no secret is configured, `unset` when the named variables are
 * unset or empty, `unusable` when their values are not secrets of the scheme.
 */
export type Verifier = 'none' | 'unset' | 'unusable' | readonly [CompiledForm, ...CompiledForm[]]

/** Compiles the forms of a scheme that have a usable secret. */
export const prepareVerifier = (
  scheme: SignatureScheme,
  secrets: readonly string[],
): readonly [CompiledForm, ...CompiledForm[]] | 'unusable' => {
  const [first, ...more] = scheme.forms
    .map((form) => compileForm(form, secrets, scheme.toleranceSeconds ?? 0))
    .filter(({ keys, tokens }) => keys.length + tokens.length > 0)
  return first ? [first, ...more] : 'unusable'
}

const compileForm = (
  form: SignatureForm,
  secrets: readonly string[],
  toleranceSeconds: number,
): CompiledForm => {
  const known = secrets.flatMap((secret) => keyBytes(form, secret) ?? [])
  const isMac = form.check === 'mac'
  return {
    ...form,
    keys: isMac ? known.map((bytes) => createSecretKey(bytes)) : [],
    tokens: isMac ? [] : known.map(tokenDigest),
    toleranceSeconds,
  }
}

const tokenDigest = (token: Buffer): Buffer => createHash('sha256').update(token).digest()
