import { describeChange } from '../../../shared/config/environment.ts'
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
  readSignature,
  type SignatureHeaders,
  toMilliseconds,
} from './header.ts'
import { findSignature, findToken } from './search.ts'
import { hasSignature, readTokens, type RequestLine } from './token.ts'
import { toSignedValues } from './verify.ts'

/*
 * Why a signature was refused. It runs only after the refusal, decides nothing, and only the owner reads
 * what it finds.
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
const maxIndentedBytes = 64 * 1024
const maxIndentedDepth = 20

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
  return form.check === 'token' ? diagnoseToken(refusal, form) : diagnoseMac(refusal, form)
}

const diagnoseMissing = (refusal: Refusal): string => {
  const { headers, scheme } = refusal
  const hub = headers['x-hub-signature']?.[0]
  if (scheme.name === 'github' && hub?.startsWith('sha1='))
    return 'only an x-hub-signature header with SHA-1 is present, which is never accepted for SHA-256: the sender is an old one, or a proxy removed the other header'
  const sender = findSender(refusal)
  if (sender !== undefined) return sender
  const found = findElsewhere(refusal)
  if (found !== undefined) return found
  if (scheme.name === 'gitlab') return 'GitLab sends no token until one is set at its webhook'
  return 'no secret is set at the sender, or a proxy removed the header'
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
const findSender = ({ headers, scheme }: Refusal): string | undefined => {
  const others = presetSchemes.filter(({ name }) => name !== scheme.name)
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

/** What the sender sends in another place or form, if it knows the secret. */
const findElsewhere = ({ bytes, headers, secrets, line = {} }: Refusal): string | undefined => {
  const request = { bytes, headers, line, secrets: secrets.own }
  return findToken(request) ?? findSignature(request)
}

const trimmedCause =
  'once surrounding white space or quotes are removed from the secret: fix the value of its secret_env'

const diagnoseToken = (refusal: Refusal, form: SignatureForm): string => {
  const { secrets } = refusal
  const given = readGivenTokens(refusal, form)
  if (secrets.own.some((secret) => trimmed(secret).some((text) => given.includes(text))))
    return `the token matches ${trimmedCause}`
  for (const { written, cause } of listWritten(secrets))
    if (given.includes(written)) return `the token matches ${cause}`
  if (given.some((value) => secrets.own.includes(value.trim())))
    return 'the token matches, but the sender adds white space around it'
  const other = secrets.others.find(({ secret }) => given.includes(secret))
  if (other) return describeOther(other.path)
  return findElsewhere(refusal) ?? 'it differs from the token that is set here'
}

/** None where it is missing, or in a body, which is not read again. */
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

/** The values that `.env` shows but does not set, and what to write there. */
const listWritten = ({ changed = [] }: KnownSecrets) =>
  changed.map((value) => {
    const { what, fix } = describeChange(value)
    return {
      written: value.written,
      cause: `the value of ${value.name} as its line in .env shows it, but that ${what}: ${fix}`,
    }
  })

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
    return (
      (refusal.scheme.name === 'hmac' ? describeUnit(refusal.headers, form) : undefined) ??
      findElsewhere(refusal) ??
      'the signature cannot be read: a proxy changed the headers, or the sender signs in another way'
    )
  const values = toSignedValues(given, refusal.line ?? {}, refusal.publicUrl)
  const rewritten = rewriteJson(refusal.bytes)
  const guess = rewritten?.guess
  const again: Guess[] = guess ? getKeys(refusal, form).map((key) => ({ key, ...guess })) : []
  let hashedBytes = 0
  for (const { cause, key, algorithm = form.algorithm, body = refusal.bytes } of [
    ...listGuesses(refusal, form, given.timestamp),
    ...again,
  ]) {
    hashedBytes += body.length
    if (hashedBytes > maxHashedBytes) return 'not diagnosed completely: the body is too large'
    const digest = computeMac({ ...form, algorithm }, key, body, values)
    if (given.digests.some((signature) => signature.equals(digest))) return cause
  }
  const elsewhere = findElsewhere(refusal)
  if (elsewhere !== undefined) return elsewhere
  if (form.signs.includes('{url}'))
    return `none of the usual causes applies: the sender has another secret, or not exactly the address that it signs here, ${values.url.split('?', 1)[0]}`
  return rewritten?.isAsRelaysWrite
    ? `none of the usual causes applies: the sender has another secret, or ${relay}, which changes white space and escapes: let the sender reach this machine by a tunnel`
    : 'none of the usual causes applies: the sender has another secret, or the body was changed on its way'
}

const relay = 'a relay such as smee parsed the JSON and wrote it again'

/** A time in milliseconds where seconds are expected cannot be read. */
const describeUnit = (
  headers: SignatureHeaders,
  { timestampHeader, timestampParam, timestampUnit, header }: SignatureForm,
): string | undefined => {
  const place = timestampHeader ?? (timestampParam === undefined ? undefined : header)
  const value = place === undefined ? '' : (headers[place]?.[0] ?? '')
  if (timestampUnit === 's' && /(?<!\d)\d{13}(?!\d)/.test(value))
    return 'its time has 13 digits, as one in milliseconds has: set timestamp_unit: ms'
  if (timestampUnit !== 'iso' && /\d{4}-\d\d-\d\dT/.test(value))
    return 'its time is a date: set timestamp_unit: iso'
  return undefined
}

/** Reads the signature strictly, but for a SHA-1 digest, which is too short for SHA-256. */
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

const getKeys = ({ secrets }: Pick<Refusal, 'secrets'>, form: SignatureForm): Buffer[] =>
  secrets.own.flatMap((secret) => keyBytes(form, secret) ?? [])

/** The likeliest first. */
const listGuesses = function* (
  { scheme, secrets, nowMs }: Refusal,
  form: SignatureForm,
  timestamp: string,
): Generator<Guess> {
  for (const key of getKeys({ secrets }, form)) {
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
  for (const { written, cause } of listWritten(secrets)) {
    const key = keyBytes(form, written)
    if (key) yield { key, cause: `the signature matches ${cause}` }
  }
  for (const { path, secret } of secrets.others.slice(0, maxOtherSecrets)) {
    const key = keyBytes(form, secret)
    if (key) yield { key, cause: describeOther(path) }
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
  // 1970 is not a clock that is wrong.
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

/** Indentation makes a deeply nested body many times larger. */
const canIndent = (bytes: Buffer): boolean => {
  let depth = 0
  for (const byte of bytes) {
    if (byte === 0x5b || byte === 0x7b) depth += 1
    else if (byte === 0x5d || byte === 0x7d) depth -= 1
    if (depth > maxIndentedDepth) return false
  }
  return bytes.length <= maxIndentedBytes
}

type RewrittenJson = {
  /** Another form of the body, which the sender may have signed. */
  readonly guess?: { readonly body: Buffer; readonly cause: string }
  /** The received body is what JSON.stringify writes, as smee does. */
  readonly isAsRelaysWrite: boolean
}

/**
 * The body as a relay writes it that has parsed it. A body that looks so already may have been indented, as
 * Stripe sends it. Undefined where nothing can be known.
 */
const rewriteJson = (bytes: Buffer): RewrittenJson | undefined => {
  if (bytes.length > maxRewrittenBytes) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    const body = Buffer.from(JSON.stringify(value))
    if (!body.equals(bytes)) {
      const cause = `the signature matches the body as JSON.stringify writes it: ${relay}`
      return { guess: { body, cause }, isAsRelaysWrite: false }
    }
    if (!canIndent(bytes)) return { isAsRelaysWrite: true }
    const indented = Buffer.from(JSON.stringify(value, null, 2))
    const cause = `the signature matches this JSON with an indentation of two spaces: ${relay} without it`
    return { guess: { body: indented, cause }, isAsRelaysWrite: true }
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

const windowMs = 1000
const maxWebhookMs = 20
const maxTotalMs = 60

type Spent = { since: number; ms: number }

/**
 * Limits the time for diagnoses per second, for each webhook and in all, so that a flood of bad signatures
 * costs a few percent of a processor. A diagnosis that took longer counts against the next seconds too.
 * `clock` is in milliseconds.
 */
export const diagnoseWithBudget = (
  clock: () => number = () => performance.now(),
): DiagnoseRefusal => {
  const total: Spent = { since: Number.NEGATIVE_INFINITY, ms: 0 }
  const byPath = new Map<string, Spent>()

  const hasTime = (spent: Spent, now: number, maxMs: number): boolean => {
    const windows = Math.floor((now - spent.since) / windowMs)
    if (windows >= 1) {
      spent.since = now
      spent.ms = Math.max(0, spent.ms - windows * maxMs)
    }
    return spent.ms < maxMs
  }

  return (error, bytes, headers, webhook, nowMs, line = {}) => {
    if (!(error instanceof DoorwardError) || error.code !== 'signature-invalid') return error
    const start = clock()
    const ofWebhook = byPath.get(webhook.path) ?? { since: Number.NEGATIVE_INFINITY, ms: 0 }
    byPath.set(webhook.path, ofWebhook)
    const isInBudget = [hasTime(total, start, maxTotalMs), hasTime(ofWebhook, start, maxWebhookMs)]
    let cause = 'not diagnosed: too many signatures were refused in this second'
    if (!isInBudget.includes(false)) {
      const { scheme } = webhook
      const publicUrl = getPublicUrl(webhook)
      const known = { secrets: webhook.secrets(), line, publicUrl }
      cause = diagnoseSafely({ bytes, headers, scheme, nowMs, ...known })
      const tookMs = clock() - start
      total.ms += tookMs
      ofWebhook.ms += tookMs
    }
    return new DoorwardError(error.code, error.message, {
      localDetail: `${error.localDetail ?? error.message}; ${cause}`,
    })
  }
}

const getPublicUrl = ({ verifier }: CompiledWebhook): string | undefined =>
  typeof verifier === 'string' ? undefined : verifier[0].publicUrl

/** Whatever goes wrong here, the sender gets the same refusal. */
const diagnoseSafely = (refusal: Refusal): string => {
  try {
    return diagnose(refusal)
  } catch (error) {
    return `not diagnosed completely (${errorName(error)})`
  }
}
