import { DoorwardError, errorName } from '../../../shared/errors.ts'
import {
  computeMac,
  type MacAlgorithm,
  type SignatureForm,
} from '../../../shared/signatures/form.ts'
import { presetSchemes } from '../../../shared/signatures/presets.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'
import { keyBytes } from '../../../shared/signatures/secrets.ts'
import type { CompiledWebhook, KnownSecrets } from '../compiled-webhook.ts'
import {
  type GivenSignature,
  hasSignature,
  readSignature,
  type RequestLine,
  type SignatureHeaders,
  toMilliseconds,
} from './header.ts'
import { readTokens } from './token.ts'
import { toSignedValues } from './verify.ts'

/*
 * Why a signature was refused. This runs only after the refusal and decides nothing; only the owner reads the
 * result.
 */

type Refusal = {
  readonly bytes: Buffer
  readonly headers: SignatureHeaders
  readonly scheme: SignatureScheme
  readonly secrets: KnownSecrets
  readonly nowMs: number
  readonly line?: RequestLine
  readonly publicUrl?: string | undefined
}

/** Limits of one diagnosis: it hashes for a few milliseconds at most. */
const maxHashedBytes = 6 * 1024 * 1024
const maxOtherSecrets = 20
const maxRewrittenBytes = 256 * 1024

/**
 * Finds the usual cause that applies, and says how to fix it. The result contains no secret and no MAC. The
 * work is limited, whatever was sent.
 */
export const diagnose = (refusal: Refusal): string => {
  const { headers, scheme, secrets, line = {} } = refusal
  const [first] = scheme.forms
  if (first && first.check !== 'mac' && first.check !== 'token') return diagnoseSpecial(first)
  const present = scheme.forms.filter((form) => hasSignature(form, headers, line))
  const usable = present.find((form) =>
    secrets.own.some((secret) => keyBytes(form, secret) !== undefined),
  )
  const form = usable ?? present[0]
  if (!form) return diagnoseMissing(refusal)
  if ((headers[form.header]?.length ?? 0) > 1)
    return 'a proxy adds the header again, or two senders share this address: remove one of them'
  if (!usable)
    return form.check === 'token'
      ? 'X-Gitlab-Token is present, but the secret is a signing token (whsec_), and no token replaces its signature: set the signing token at GitLab, or the plain token here'
      : `a ${form.header} header is present, but no secret for it: set the signing token, which begins with whsec_`
  if (form.check === 'token') return diagnoseToken(refusal, form)
  return form.check === 'mac' ? diagnoseMac(refusal, form) : diagnoseSpecial(form)
}

const diagnoseMissing = ({ headers, scheme }: Refusal): string => {
  if (scheme.name === 'github' && headers['x-hub-signature']?.[0]?.startsWith('sha1='))
    return 'only an x-hub-signature header with SHA-1 is present, which is never accepted for SHA-256: the sender is an old one, or a proxy removed the other header'
  const sender = findSender(headers, scheme)
  if (sender !== undefined) return sender
  if (scheme.name === 'gitlab') return 'GitLab sends no token until one is set at its webhook'
  if (scheme.name === 'token')
    return 'the sender sends no token, or sends it in another place: set token_in'
  return headers['authorization'] === undefined
    ? 'no secret is set at the sender, or a proxy removed the header'
    : 'an authorization header is present: if the sender sends the secret itself, set signature_scheme: token'
}

/** What else could be wrong where the check itself has not said it. */
const diagnoseSpecial = ({ check, keysFrom, secret }: SignatureForm): string => {
  if (check === 'twilio')
    return 'the auth token is of another account, or the address at Twilio is not server.public_url with this path'
  if (keysFrom !== undefined) return 'compare the entry with the subscription at the sender'
  return secret === 'text'
    ? 'compare the secret with the one at the sender'
    : 'compare the public key with the one that the sender shows: each app has its own'
}

/** Known senders that sign in a header of this request; several share x-hub-signature. */
const findSender = (headers: SignatureHeaders, { name: own }: SignatureScheme) => {
  // The headers of Standard Webhooks do not say which of its senders it is.
  const others = presetSchemes.filter(
    ({ name, forms }) =>
      name !== own && (name === 'standard-webhooks' || forms[0]?.header !== 'svix-signature'),
  )
  const usual = others.filter(({ forms }) => isUsed(forms.at(-1), headers))
  const signing = usual.length > 0 ? usual : others.filter(({ forms }) => isUsed(forms[0], headers))
  const named = signing.filter(
    ({ event, deliveryId }) =>
      headers[event?.header ?? ''] !== undefined ||
      deliveryId.headers.some((name) => headers[name] !== undefined),
  )
  const [first, ...more] = named.length > 0 ? named : signing
  const header = first?.forms.find((form) => isUsed(form, headers))?.header
  if (!first || header === undefined) return undefined
  return more.length === 0
    ? `the header ${header} is present, as ${first.name} signs: set signature_scheme: ${first.name}`
    : `the header ${header} is present, as ${[first, ...more].map(({ name }) => name).join(', ')} sign: set one of them as signature_scheme`
}

const isUsed = (form: SignatureForm | undefined, headers: SignatureHeaders): boolean =>
  form !== undefined &&
  form.in === undefined &&
  form.header !== 'authorization' &&
  headers[form.header] !== undefined

const trimmedCause =
  'once surrounding white space or quotes are removed from the secret: fix the value of its secret_env'

const diagnoseToken = (refusal: Refusal, form: SignatureForm): string => {
  const { secrets } = refusal
  const given = readGivenTokens(refusal, form)
  if (secrets.own.some((secret) => trimmed(secret).some((text) => given.includes(text))))
    return `the token matches ${trimmedCause}`
  if (given.some((value) => secrets.own.includes(value.trim())))
    return 'the token matches, but the sender adds white space around it'
  const other = secrets.others.find(({ secret }) => given.includes(secret))
  return other ? describeOther(other.path) : 'it differs from the token that is set here'
}

/** Empty without a token, and for a token in the body, which is not read again. */
const readGivenTokens = ({ headers, line = {} }: Refusal, form: SignatureForm): string[] => {
  if (form.in === 'field') return []
  try {
    const unread = { size: 0, parse: () => undefined }
    return readTokens(form, headers, line, unread).map((token) => token.toString('utf8'))
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    return []
  }
}

const describeOther = (path: string): string =>
  `the secret of the webhook ${path} matches: the sender uses the secret or the address of another webhook`

/** Something that the sender may have signed, and the key it may have used. */
type Guess = {
  readonly cause: string
  readonly key: Buffer
  readonly algorithm?: MacAlgorithm
  readonly body?: Buffer
}

const diagnoseMac = (refusal: Refusal, form: SignatureForm): string => {
  const given = readGiven(refusal.headers, form)
  if (!given)
    return 'the signature cannot be read: a proxy changed the headers, or the sender signs in another way'
  const values = toSignedValues(given, refusal.line ?? {}, refusal.publicUrl)
  const json = toCompactJson(refusal.bytes)
  let hashedBytes = 0
  for (const guess of listGuesses(refusal, form, given.timestamp, json)) {
    const { cause, key, algorithm = form.algorithm, body = refusal.bytes } = guess
    hashedBytes += body.length
    if (hashedBytes > maxHashedBytes) return 'not diagnosed completely: the body is too large'
    const digest = computeMac({ ...form, algorithm }, key, body, values)
    if (given.digests.some((signature) => signature.equals(digest))) return cause
  }
  if (form.signs.includes('{url}'))
    return `none of the usual causes applies: the sender has another secret, or not exactly the address that it signs here, ${values.url.split('?', 1)[0]}`
  return json?.equals(refusal.bytes)
    ? `none of the usual causes applies: the sender has another secret, or ${relay}, which changes white space and escapes: let the sender reach this machine by a tunnel`
    : 'none of the usual causes applies: the sender has another secret, or the body was changed on its way'
}

const relay = 'a relay such as smee parsed the JSON and wrote it again'

/** Reads the signature strictly, except that a SHA-1 digest may stand where SHA-256 is expected. */
const readGiven = (headers: SignatureHeaders, form: SignatureForm): GivenSignature | undefined => {
  try {
    return readSignature(headers, form)
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
  }
  const value = headers[form.header]?.[0] ?? ''
  const [, sha1] = /^(?:sha1=|sha256=)?([0-9a-f]{40})$/.exec(value) ?? []
  return sha1 === undefined || form.algorithm !== 'sha256'
    ? undefined
    : { digests: [Buffer.from(sha1, 'hex')], timestamp: '', id: '' }
}

/** The likeliest first. */
const listGuesses = function* (
  { bytes, scheme, secrets, nowMs }: Refusal,
  form: SignatureForm,
  timestamp: string,
  json: Buffer | undefined,
): Generator<Guess> {
  const keys = secrets.own.flatMap((secret) => keyBytes(form, secret) ?? [])
  for (const key of keys) {
    yield { key, cause: describeClock(timestamp, form, scheme, nowMs) }
    if (form.algorithm === 'sha256')
      yield { key, algorithm: 'sha1', cause: 'it is made with SHA-1: set SHA-256 at the sender' }
  }
  for (const secret of secrets.own) {
    for (const text of trimmed(secret)) {
      const key = keyBytes(form, text)
      if (key) yield { key, cause: `the signature matches ${trimmedCause}` }
    }
    if (form.secret === 'base64' || form.secret === 'whsec')
      for (const text of [secret, secret.replace(/^whsec_/, '')])
        yield {
          key: Buffer.from(text),
          cause: 'the sender uses the secret as text and does not decode its base64',
        }
  }
  for (const { path, secret } of secrets.others.slice(0, maxOtherSecrets)) {
    const key = keyBytes(form, secret)
    if (key) yield { key, cause: describeOther(path) }
  }
  if (json && !json.equals(bytes))
    for (const key of keys)
      yield {
        key,
        body: json,
        cause: `the signature matches the body as JSON.stringify writes it: ${relay}`,
      }
}

const describeClock = (
  timestamp: string,
  { timestampUnit }: SignatureForm,
  { toleranceSeconds = 0 }: SignatureScheme,
  nowMs: number,
): string => {
  const sentMs = timestamp === '' ? nowMs : toMilliseconds(timestamp, timestampUnit)
  const ageSeconds = Math.floor(nowMs / 1000) - Math.floor(sentMs / 1000)
  if (Math.abs(ageSeconds) <= toleranceSeconds) return 'the signature itself matches'
  // A clock may be wrong, but never by decades.
  if (timestampUnit === 'ms' && sentMs < nowMs / 100)
    return 'the signature matches, but its time is in seconds: set timestamp_unit: s'
  return ageSeconds > 0
    ? `the signature matches: the clock of this machine is ${ageSeconds} s fast, or the delivery is that old (delayed, or sent again): timestamp_tolerance can allow that`
    : `the signature matches: the clock of this machine is ${-ageSeconds} s slow, or that of the sender is fast`
}

/** The secret without surrounding white space and quotes, where it has some. */
const trimmed = (secret: string): string[] => {
  const text = secret.trim()
  const unquoted = /^(["'])(.*)\1$/s.exec(text)?.[2]
  return [text, ...(unquoted === undefined ? [] : [unquoted, unquoted.trim()])].filter(
    (found) => found !== secret && found !== '',
  )
}

/** The body as a relay writes it that parsed it before; undefined when the body is large or not JSON. */
const toCompactJson = (bytes: Buffer): Buffer | undefined => {
  if (bytes.length > maxRewrittenBytes) return undefined
  try {
    return Buffer.from(JSON.stringify(JSON.parse(bytes.toString('utf8'))))
  } catch {
    // Not JSON, or nested too deeply to be written.
    return undefined
  }
}

/**
 * Adds the cause of a refused signature to its `localDetail`, for the owner alone. Returns any other
 * thrown value unchanged.
 */
export type DiagnoseRefusal = (
  error: unknown,
  bytes: Buffer,
  headers: SignatureHeaders,
  webhook: CompiledWebhook,
  nowMs: number,
  line?: RequestLine,
) => unknown

const maxDebtMs = 60
const shareOfTime = maxDebtMs / 1000

/**
 * Limits the time for diagnoses to 60 ms per second, so that a flood of bad signatures costs a few percent of
 * a processor. A diagnosis that took longer counts against the next seconds too. `clock` is in milliseconds.
 */
export const diagnoseWithBudget = (
  clock: () => number = () => performance.now(),
): DiagnoseRefusal => {
  let debtMs = 0
  let countedAt = 0
  return (error, bytes, headers, webhook, nowMs, line = {}) => {
    if (!(error instanceof DoorwardError) || error.code !== 'signature-invalid') return error
    const start = clock()
    debtMs = Math.max(0, debtMs - (start - countedAt) * shareOfTime)
    countedAt = start
    let cause = 'not diagnosed: too many signatures were refused in this second'
    if (debtMs < maxDebtMs) {
      const { scheme, verifier } = webhook
      const publicUrl = typeof verifier === 'string' ? undefined : verifier[0].publicUrl
      const known = { secrets: webhook.secrets(), line, publicUrl }
      cause = diagnoseSafely({ bytes, headers, scheme, nowMs, ...known })
      debtMs += clock() - start
    }
    return new DoorwardError(error.code, error.message, {
      localDetail: `${error.localDetail ?? error.message}; ${cause}`,
    })
  }
}

/** Whatever goes wrong here, the sender gets the same refusal. */
const diagnoseSafely = (refusal: Refusal): string => {
  try {
    return diagnose(refusal)
  } catch (error) {
    return `not diagnosed completely (${errorName(error)})`
  }
}
