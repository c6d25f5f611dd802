import { type BinaryLike, createHmac } from 'node:crypto'
import { DoorwardError, errorName } from '../../shared/errors.ts'
import {
  keyBytes,
  presetSchemes,
  type SignatureForm,
  type SignatureScheme,
  signedHead,
} from '../../shared/signature-schemes.ts'
import { bodyVariants } from './body-variants.ts'
import type { KnownSecrets, CompiledWebhook } from './compiled-webhook.ts'
import { readSignature, type SignatureHeaders } from './signature-header.ts'

/*
 * Why a signature was refused, in the words of somebody who has seen it before. Looked into only after
 * the refusal, told to the owner only, and decides nothing: what it finds is still refused.
 */

type Refused = {
  readonly bytes: Buffer
  readonly headers: SignatureHeaders
  readonly scheme: SignatureScheme
  readonly secrets: KnownSecrets
  readonly nowMs: number
}

/** Bytes that one examination may hash: as much as a few milliseconds take. */
const maxHashedBytes = 6 * 1024 * 1024
const maxOtherSecrets = 20

/** Of a time in Unix seconds, as far as it is taken. */
const maxSecondsDigits = 12

/**
 * The usual cause that fits, with what mends it. Never a secret or a MAC. The work is bounded whatever
 * was sent.
 */
export const diagnose = (refused: Refused): string => {
  const { headers, scheme, secrets } = refused
  const present = scheme.forms.filter(({ header }) => headers[header] !== undefined)
  const fitting = present.filter((form) =>
    secrets.own.some((secret) => keyBytes(form, secret) !== undefined),
  )
  const form = fitting[0] ?? present[0]
  if (!form) return ofMissingHeader(refused)
  if ((headers[form.header]?.length ?? 0) > 1)
    return 'a proxy adds the header once more, or two senders share the address: one of them has to go'
  if (fitting.length === 0)
    return form.check === 'token'
      ? 'X-Gitlab-Token is there, but the secret is a signing token (whsec_), in whose place no token is taken: set the signing token at GitLab, or the plain token here'
      : `a ${form.header} header is there, but no secret that fits it: set the signing token, which begins with whsec_`
  if (form.check === 'token') return ofToken(refused, form)
  const given = readLoosely(headers, form)
  return given.length === 0
    ? 'it is no signature of a kind that is known here: a proxy may have changed the header'
    : ofMac(refused, form, given)
}

const ofMissingHeader = ({ headers, scheme }: Refused): string => {
  const sender = presetSchemes.find(
    ({ name, forms }) =>
      name !== scheme.name && forms.some(({ header }) => headers[header] !== undefined),
  )
  if (sender) {
    const found = sender.forms.find(({ header }) => headers[header] !== undefined)?.header
    return `the header ${found} is there, as ${sender.name} signs: set signature_scheme: ${sender.name}`
  }
  if (headers['x-hub-signature'] !== undefined)
    return 'there is an x-hub-signature header with SHA-1 alone, which is never taken for SHA-256: the sender is an old one, or a proxy took the other header away'
  if (scheme.name === 'gitlab') return 'GitLab sends no token until one is set at its webhook'
  return 'no secret is set at the sender, or a proxy took the header away'
}

const ofToken = ({ headers, secrets }: Refused, form: SignatureForm): string => {
  const value = Buffer.from(headers[form.header]?.[0] ?? '', 'latin1').toString('utf8')
  if (secrets.own.some((secret) => mended(secret).includes(value)))
    return 'the token fits without the white space or quotes around the secret: mend its value'
  if (secrets.own.includes(value.trim())) return 'the token fits but for white space around it'
  const other = secrets.others.find(({ secret }) => secret === value)
  return other ? ofOther(other.path) : 'it is another token than the one that is set at GitLab'
}

const ofOther = (path: string) =>
  `the secret of the webhook ${path} fits: the sender has the secret of another webhook, or its address`

/** One thing that may have been signed, and with what. */
type Guess = {
  readonly why: string
  readonly key: BinaryLike
  readonly algorithm: 'sha256' | 'sha1'
  readonly head?: string | undefined
  readonly body?: Buffer
}

const ofMac = (refused: Refused, form: SignatureForm, given: readonly LooseSignature[]): string => {
  let hashed = 0
  for (const guess of listGuesses(refused, form, given)) {
    const body = guess.body ?? refused.bytes
    hashed += body.length
    if (hashed > maxHashedBytes) return 'not examined to the end: the body is too large for that'
    const hmac = createHmac(guess.algorithm, guess.key)
    if (guess.head !== undefined) hmac.update(guess.head, 'latin1')
    const digest = hmac.update(body).digest()
    const fitting = given.find((signature) => fits(signature, digest))
    if (fitting) return findings(guess.why, fitting, digest)
  }
  return isReadable(refused, form)
    ? 'none of the usual causes fits: the secret is another one than that of the sender, or the body was changed on the way'
    : 'as it came it cannot be checked, which says nothing of the secret: a proxy changed the headers, or the sender signs in another way'
}

/** Only then was the signature computed as the scheme has it, with the time and the id that belong to it. */
const isReadable = ({ headers }: Refused, form: SignatureForm): boolean => {
  try {
    readSignature(headers, form)
    return true
  } catch (error) {
    if (error instanceof DoorwardError) return false
    throw error
  }
}

/** Shorter ones too, of at least 8 bytes: those were cut. */
const fits = ({ digest }: LooseSignature, expected: Buffer): boolean =>
  digest.length >= 8 &&
  digest.length <= expected.length &&
  digest.equals(expected.subarray(0, digest.length))

const findings = (why: string, { notes, digest }: LooseSignature, expected: Buffer): string => {
  const cut =
    digest.length < expected.length
      ? [`the signature is cut short: its first ${digest.length} bytes fit`]
      : []
  const found = [...(why === '' ? [] : [why]), ...cut, ...notes]
  return found.length > 0
    ? found.join('; ')
    : 'the signature itself fits: the secret and the body are right'
}

/** From the likeliest on. */
const listGuesses = function* (
  { bytes, scheme, secrets, nowMs }: Refused,
  form: SignatureForm,
  given: readonly LooseSignature[],
): Generator<Guess> {
  const { timestamp = '', id = '' } = given[0] ?? {}
  const head = signedHead(form.signs, timestamp, id)
  const other = form.algorithm === 'sha256' ? 'sha1' : 'sha256'
  const keys = secrets.own.flatMap((secret) => keyBytes(form, secret) ?? [])
  const usual = { algorithm: form.algorithm, head }

  for (const key of keys) {
    yield { ...usual, key, why: ofTime(timestamp, scheme, nowMs) }
    yield {
      ...usual,
      key,
      algorithm: other,
      why: `it is made with ${other}, not ${form.algorithm}${form.algorithm === 'sha256' ? ': let the sender use SHA-256' : ''}`,
    }
    if (head !== undefined)
      yield {
        key,
        algorithm: form.algorithm,
        why: 'it is made of the body alone, without the time',
      }
  }
  for (const secret of secrets.own)
    for (const { key, why } of otherKeys(secret, form)) yield { ...usual, key, why }
  for (const { path, secret } of secrets.others.slice(0, maxOtherSecrets)) {
    const key = keyBytes(form, secret)
    if (key) yield { ...usual, key, why: ofOther(path) }
  }
  for (const { body, why } of bodyVariants(bytes))
    for (const key of keys) yield { ...usual, key, body, why }
}

const ofTime = (
  timestamp: string,
  { toleranceSeconds }: SignatureScheme,
  nowMs: number,
): string => {
  if (timestamp === '' || toleranceSeconds === undefined) return ''
  if (timestamp.length > maxSecondsDigits)
    return 'the signature fits: the sender writes its time in milliseconds, where seconds are expected'
  const ageSeconds = Math.floor(nowMs / 1000) - Number(timestamp)
  if (Math.abs(ageSeconds) <= toleranceSeconds) return ''
  return ageSeconds > 0
    ? `the signature fits: the clock of this machine is ${ageSeconds} s fast, or the delivery is that old (held up, or sent again by somebody)`
    : `the signature fits: the clock of this machine is ${-ageSeconds} s slow, or that of the sender is fast`
}

/** The ways in which a secret goes wrong between where it was shown and where it is kept. */
const otherKeys = (secret: string, form: SignatureForm): { why: string; key: BinaryLike }[] => {
  const found: { why: string; key: BinaryLike }[] = []
  const isDecoded = form.secret === 'base64' || form.secret === 'whsec'
  for (const text of mended(secret)) {
    const key = keyBytes(form, text)
    if (key)
      found.push({
        key,
        why: 'the secret fits without the white space or quotes around it: mend the value of its secret_env',
      })
  }
  if (!isDecoded) {
    for (const end of ['\n', '\r\n'])
      found.push({
        key: `${secret}${end}`,
        why: 'the sender has the secret with a line break at its end: set it there again',
      })
  }
  const bare = secret.replace(/^whsec_/, '')
  if (isDecoded) {
    const why = 'the sender does not decode the secret: it uses the text as it stands'
    found.push({ key: secret, why }, { key: bare, why })
    return found
  }
  if (bare !== secret)
    found.push({ key: bare, why: 'the sender uses the secret without the whsec_ before it' })
  if (/^[A-Za-z0-9+/]{16,}={0,2}$/.test(bare))
    found.push({
      key: Buffer.from(bare, 'base64'),
      why: 'the sender decodes the secret from base64, as Standard Webhooks does: set signature_scheme: standard-webhooks if it is one',
    })
  if (/^([0-9a-fA-F]{2}){8,}$/.test(secret))
    found.push({
      key: Buffer.from(secret, 'hex'),
      why: 'the sender decodes the secret from hex',
    })
  return found
}

/** The secret without what does not belong to it, where there is something. */
const mended = (secret: string): string[] => {
  const trimmed = secret.trim()
  const unquoted = /^(["'])(.*)\1$/s.exec(trimmed)?.[2]
  return [
    ...new Set([trimmed, ...(unquoted === undefined ? [] : [unquoted, unquoted.trim()])]),
  ].filter((text) => text !== secret && text !== '')
}

/** A signature in whatever form it came, for finding out what is wrong with it; never for verifying. */
type LooseSignature = {
  readonly digest: Buffer
  readonly timestamp: string
  readonly id: string
  /** What is wrong with its form. */
  readonly notes: readonly string[]
}

const knownPrefix = /^(sha256=|sha1=|sha-256=|hmac-sha256=|v0=|v1=|v1,)/i
const maxItems = 10
const maxCharacters = 400

/** Reads what looks like signatures in the header of a form, at most ten. */
const readLoosely = (headers: SignatureHeaders, form: SignatureForm): LooseSignature[] => {
  const value = headers[form.header]?.[0] ?? ''
  const pieces = splitPieces(value.slice(0, maxCharacters * maxItems), form)
  const timestamp = digits(
    form.list === 'commas'
      ? pieces.find((piece) => /^\s*t=/.test(piece))?.replace(/^\s*t=/, '')
      : headers[form.timestampHeader ?? '']?.[0],
  )
  const id = headers[form.idHeader ?? '']?.[0] ?? ''
  return pieces
    .filter((piece) => !/^\s*(t=|v1a,)/.test(piece))
    .slice(0, maxItems)
    .flatMap((piece) => parseLoosely(piece, form))
    .map((found) => ({ ...found, timestamp, id }))
}

const splitPieces = (value: string, { list }: SignatureForm): string[] => {
  if (list === 'spaces') return value.trim().split(/\s+/, maxItems * 2)
  // A proxy joins doubled headers with commas.
  return value.split(/,(?![A-Za-z0-9+/]{43}=)/, maxItems * 2)
}

const digits = (text: string | undefined): string => {
  const trimmed = text?.trim() ?? ''
  // Milliseconds too.
  return /^\d{1,16}$/.test(trimmed) ? trimmed : ''
}

const parseLoosely = (
  piece: string,
  { prefix, encoding, list }: SignatureForm,
): { digest: Buffer; notes: string[] }[] => {
  const notes: string[] = []
  let text = piece
  if (list === 'one' && text.trim() !== text) notes.push('it has white space around it')
  text = text.trim()
  const found = knownPrefix.exec(text)?.[0] ?? ''
  if (found !== prefix)
    notes.push(
      found === ''
        ? `"${prefix}" is missing before it`
        : prefix === ''
          ? `it begins with "${found}", where nothing is expected before it`
          : `it begins with "${found}" instead of "${prefix}"`,
    )
  text = text.slice(found.length)
  if (/^[0-9a-f]{16,}$/i.test(text) && text.length % 2 === 0 && text.length <= 64) {
    if (encoding === 'base64') notes.push('it is in hex, where base64 is expected')
    else if (text !== text.toLowerCase()) notes.push('its hex digits are in upper case')
    return [{ digest: Buffer.from(text, 'hex'), notes }]
  }
  if (/^[A-Za-z0-9+/_-]{22,44}={0,2}$/.test(text)) {
    if (encoding === 'hex') notes.push('it is in base64, where hex is expected')
    else if (/[_-]/.test(text)) notes.push('it is in base64url, where base64 is expected')
    else if (!text.endsWith('=')) notes.push('the = at its end is missing')
    return [{ digest: Buffer.from(text, /[_-]/.test(text) ? 'base64url' : 'base64'), notes }]
  }
  return []
}

/**
 * Adds to a refusal what was found to be its cause, for the owner alone. Anything but a refused
 * signature is given back as it is.
 */
export type Examine = (
  error: unknown,
  bytes: Buffer,
  headers: SignatureHeaders,
  webhook: CompiledWebhook,
  nowMs: number,
) => unknown

const windowMs = 1000
const maxWebhookMs = 20
const maxTotalMs = 60

type Spent = { since: number; ms: number }

/**
 * Spends at most so much of each second on examinations, by webhook and in all, that a flood of bad
 * signatures costs no more than a few percent of a processor; what comes beyond is not examined, and
 * one that took longer is made up for in the seconds that follow. `clock` is in milliseconds.
 */
export const createExamine = (clock: () => number = () => performance.now()): Examine => {
  const total: Spent = { since: Number.NEGATIVE_INFINITY, ms: 0 }
  const byPath = new Map<string, Spent>()
  const spentAt = (path: string): Spent => {
    const known = byPath.get(path)
    if (known) return known
    const fresh = { since: Number.NEGATIVE_INFINITY, ms: 0 }
    byPath.set(path, fresh)
    return fresh
  }

  return (error, bytes, headers, webhook, nowMs) => {
    if (!(error instanceof DoorwardError) || error.code !== 'signature-invalid') return error
    const start = clock()
    const spent = [total, spentAt(webhook.path)] as const
    for (const [index, one] of spent.entries()) {
      const windows = Math.floor((start - one.since) / windowMs)
      if (windows < 1) continue
      one.since = start
      one.ms = Math.max(0, one.ms - windows * (index === 0 ? maxTotalMs : maxWebhookMs))
    }
    const isExhausted = spent[0].ms >= maxTotalMs || spent[1].ms >= maxWebhookMs
    const finding = isExhausted
      ? 'not examined: too many were refused in this second'
      : found({ bytes, headers, scheme: webhook.scheme, secrets: webhook.secrets(), nowMs })
    if (!isExhausted) {
      const took = clock() - start
      for (const one of spent) one.ms += took
    }
    return new DoorwardError(error.code, error.message, {
      localDetail: `${error.localDetail ?? error.message}; ${finding}`,
    })
  }
}

/** Whatever goes wrong here, the sender sees the same refusal. */
const found = (refused: Refused): string => {
  try {
    return diagnose(refused)
  } catch (error) {
    return `not examined to the end (${errorName(error)})`
  }
}
