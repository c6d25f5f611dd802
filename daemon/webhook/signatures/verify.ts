import { createHash, createSecretKey, type KeyObject, verify as verifyByKey } from 'node:crypto'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import {
  computeMac,
  type SignatureForm,
  type SignedValues,
  toSignedBytes,
} from '../../../shared/signatures/form.ts'
import {
  addressAsAudience,
  type SignatureScheme,
  signsAddress,
} from '../../../shared/signatures/scheme.ts'
import { toPublicKey } from '../../../shared/signatures/public-keys.ts'
import { keyBytes } from '../../../shared/signatures/secrets.ts'
import { isFromWebPage } from '../../http/guard.ts'
// oxlint-disable-next-line no-restricted-imports -- a token may be a part of the body
import { parseUnverified, toBodyHeaders } from '../body.ts'
import { couldBeChallenge } from '../senders/challenges.ts'
import { checkSpecial } from '../senders/special-checks.ts'
import {
  type GivenSignature,
  hasSignature,
  invalid,
  readSignature,
  type RequestLine,
  type SignatureHeaders,
  toMilliseconds,
} from './header.ts'
import { checkToken, tokenDigest } from './token.ts'

export type { RequestLine, SignatureHeaders }

/**
 * Second stage. A body with a valid signature, or for a webhook without a secret. Only `verify` and
 * `trustRead` create one, and `parse` accepts nothing else: the type enforces the order of the stages.
 */
class VerifiedBody {
  readonly #bytes: Buffer
  readonly #signedId: string | undefined
  readonly #mac: Buffer | undefined

  constructor(bytes: Buffer, signedId?: string, mac?: Buffer) {
    this.#bytes = bytes
    this.#signedId = signedId
    this.#mac = mac
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /** The id of the delivery that the signature covers, where the scheme signs one in a header. */
  get signedId(): string | undefined {
    return this.#signedId
  }

  /** The MAC that matched, of a key pair the hash: the same for the same signed bytes. */
  get mac(): Buffer | undefined {
    return this.#mac
  }

  /** For keeping: a small body may be a part of a large buffer. */
  compact(): VerifiedBody {
    const { length } = this.#bytes
    if (this.#bytes.buffer.byteLength <= length + maxUnusedBytes) return this
    const copy = Buffer.allocUnsafeSlow(length)
    this.#bytes.copy(copy)
    return new VerifiedBody(copy, this.#signedId, this.#mac)
  }
}

export type { VerifiedBody }

const maxUnusedBytes = 1024

/**
 * What no signature has to prove again: what a login read from the API of the sender over TLS, and what was
 * verified before and kept.
 */
export const trustRead = (bytes: Buffer): VerifiedBody => new VerifiedBody(bytes)

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
  line: RequestLine = {},
): VerifiedBody => {
  if (typeof verifier === 'string') return withoutSignature(bytes, headers, verifier)
  const form =
    verifier.find((each) => hasSignature(each, headers, line)) ?? verifier.at(-1) ?? verifier[0]
  if (form.check === 'token') {
    const parseBody = () => parseUnverified(bytes, toBodyHeaders(headers))
    checkToken(form, headers, line, { size: bytes.length, parse: parseBody })
    return new VerifiedBody(bytes)
  }
  if (form.check !== 'mac' && form.check !== 'key-pair') {
    const { url } = toSignedValues({ timestamp: '', id: '' }, line, form.publicUrl)
    const contentType = headers['content-type']?.[0] ?? ''
    const request = { bytes, headers, contentType, url, nowMs, proof: line.proof }
    return new VerifiedBody(bytes, checkSpecial(form.check, request, form))
  }
  const given = readSignature(headers, form)
  const { digests, timestamp, id } = given
  if (form.signsChallenges && couldBeChallenge(bytes))
    throw invalid('the body could be a challenge, whose HMAC any client is given')
  if (form.signs.at(-1) !== '{body}') requireEnd(bytes)
  if (timestamp !== '') checkAge(timestamp, form, nowMs)
  const values = form.signs.length === 1 ? nothing : toSignedValues(given, line, form.publicUrl)
  const signedId = id === '' ? undefined : id
  if (form.check === 'key-pair') {
    const signed = toSignedBytes(form, bytes, values)
    const keys = line.proof?.key ? [line.proof.key] : form.keys
    if (!isSignedByKey({ ...form, keys }, signed, digests))
      throw invalid('the signature does not match the body and the public key')
    return new VerifiedBody(bytes, signedId, createHash('sha256').update(signed).digest())
  }
  // Every key is tried with every signature, so that the time does not show which one fits.
  let mac: Buffer | undefined
  for (const key of form.keys) {
    const digest = computeMac(form, key, bytes, values)
    for (const signature of digests) if (constantTimeEqual(digest, signature)) mac = digest
  }
  if (!mac) throw invalid('the signature does not match the body and the secret')
  return new VerifiedBody(bytes, signedId, mac)
}

/**
 * Where the body is not the end of what is signed, bytes could be moved between it and what follows, such as the
 * first digits of a time. No such body ends as an object or list of JSON does.
 */
const requireEnd = (bytes: Buffer): void => {
  const end = bytes.subarray(-maxSpace).toString('latin1').trimEnd().at(-1)
  if (end !== '}' && end !== ']')
    throw invalid('the body is not the end of what is signed, and no JSON object or list')
}

const maxSpace = 64

/** True when one of the keys has made one of the signatures. */
const isSignedByKey = (
  { keyAlgorithm, keys }: CompiledForm,
  signed: Buffer,
  signatures: readonly Buffer[],
): boolean => {
  const hash = keyAlgorithm === 'ed25519' ? null : 'sha256'
  return keys.some((key) =>
    signatures.some(
      (signature) =>
        verifyByKey(hash, signed, key, signature) ||
        // The two numbers of ECDSA without DER, as in a JWS (RFC 7518 section 3.4).
        (keyAlgorithm === 'ecdsa-p256' &&
          signature.length === 64 &&
          verifyByKey(hash, signed, { key, dsaEncoding: 'ieee-p1363' }, signature)),
    ),
  )
}

const whyUnavailable = {
  unset: 'its secret_env names a variable that is unset or empty',
  unusable:
    'the value of its secret_env is not a secret of its signature_scheme: doorward config check says why',
  'no-address': 'its signature covers the public address: set server.public_url in gateway.yaml',
} as const

/** For a signature of the body alone. */
const nothing: SignedValues = { timestamp: '', id: '', method: '', url: '', path: '' }

/** What this request has of what a signature can cover. */
export const toSignedValues = (
  { timestamp, id }: Pick<GivenSignature, 'timestamp' | 'id'>,
  { method = 'POST', url = '/' }: RequestLine,
  publicUrl = '',
): SignedValues => {
  const query = url.indexOf('?')
  const path = query === -1 ? url : url.slice(0, query)
  return { timestamp, id, method, url: publicUrl + url, path }
}

const withoutSignature = (
  bytes: Buffer,
  headers: SignatureHeaders,
  verifier: Extract<Verifier, string>,
): VerifiedBody => {
  requireSecret(verifier)
  // A web page in the owner's browser can post a form to this machine.
  if (isFromWebPage(headers['origin']?.[0], headers['sec-fetch-site']?.join()))
    throw new DoorwardError('origin-forbidden', 'web pages may not send to this webhook', {
      hint: 'a webhook with secret_env accepts signed deliveries from anywhere',
    })
  return new VerifiedBody(bytes)
}

/** Throws `unavailable` where a webhook needs a secret and has none that it can use. */
export const requireSecret = (verifier: Verifier): void => {
  if (typeof verifier === 'string' && verifier !== 'none')
    throw new DoorwardError('unavailable', 'this webhook cannot accept deliveries now', {
      localDetail: whyUnavailable[verifier],
    })
}

const checkAge = (timestamp: string, form: CompiledForm, nowMs: number): void => {
  const sentSeconds = Math.floor(toMilliseconds(timestamp, form.timestampUnit) / 1000)
  const ageSeconds = Math.floor(nowMs / 1000) - sentSeconds
  const { toleranceSeconds } = form
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
  /** Before the path, where the signature covers the address. */
  readonly publicUrl?: string | undefined
  /** Any client is given the MAC of a challenge. */
  readonly signsChallenges?: boolean
}

/**
 * How deliveries are verified: `none` when no secret is configured, `unset` when the named variables are
 * unset or empty, `unusable` when their values are not secrets of the scheme, `no-address` when the
 * signature covers an address that is not configured.
 */
export type Verifier =
  'none' | 'unset' | 'unusable' | 'no-address' | readonly [CompiledForm, ...CompiledForm[]]

/** Compiles the forms of a scheme that have a usable secret. */
export const prepareVerifier = (
  scheme: SignatureScheme,
  secrets: readonly string[],
  publicUrl?: string,
): readonly [CompiledForm, ...CompiledForm[]] | 'unusable' | 'no-address' => {
  if (publicUrl === undefined && signsAddress(scheme)) return 'no-address'
  const [first, ...more] = scheme.forms
    .map((form) => compileForm(form, secrets, scheme.toleranceSeconds ?? 0))
    .filter(({ keys, tokens, keysFrom }) => keysFrom || keys.length + tokens.length > 0)
    .map((form) => ({
      ...form,
      publicUrl,
      ...(form.audience === addressAsAudience && { audience: publicUrl ?? '' }),
      signsChallenges: scheme.challenge?.hmac !== undefined,
    }))
  return first ? [first, ...more] : 'unusable'
}

const createSecretKeyOf = (bytes: Buffer): KeyObject => createSecretKey(bytes)

const compileForm = (
  form: SignatureForm,
  secrets: readonly string[],
  toleranceSeconds: number,
): CompiledForm => {
  const known = secrets.flatMap((secret) => keyBytes(form, secret) ?? [])
  const isToken = form.check === 'token' || form.check === 'client-state'
  const toKey = form.secret === 'public-key' ? toPublicKey : createSecretKeyOf
  return {
    ...form,
    keys: isToken ? [] : known.map(toKey),
    tokens: isToken ? known.map(tokenDigest) : [],
    toleranceSeconds,
  }
}
