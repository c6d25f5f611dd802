import type { SignatureForm } from '../../shared/signature-schemes.ts'
import type { SignatureHeaders } from './read-signature.ts'

/** A signature in whatever form it came, for finding out what is wrong with it; never for verifying. */
export type LooseSignature = {
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
export const readLoosely = (headers: SignatureHeaders, form: SignatureForm): LooseSignature[] => {
  const value = headers[form.header]?.[0] ?? ''
  const pieces = piecesOf(value.slice(0, maxCharacters * maxItems), form)
  const timestamp = digits(
    form.list === 'commas'
      ? pieces.find((piece) => /^\s*t=/.test(piece))?.replace(/^\s*t=/, '')
      : headers[form.timestampHeader ?? '']?.[0],
  )
  const id = headers[form.idHeader ?? '']?.[0] ?? ''
  return pieces
    .filter((piece) => !/^\s*(t=|v1a,)/.test(piece))
    .slice(0, maxItems)
    .flatMap((piece) => looseOf(piece, form))
    .map((found) => ({ ...found, timestamp, id }))
}

const piecesOf = (value: string, { list }: SignatureForm): string[] => {
  if (list === 'spaces') return value.trim().split(/\s+/, maxItems * 2)
  // A proxy joins doubled headers with commas.
  return value.split(/,(?![A-Za-z0-9+/]{43}=)/, maxItems * 2)
}

const digits = (text: string | undefined): string => {
  const trimmed = text?.trim() ?? ''
  // Milliseconds too.
  return /^\d{1,16}$/.test(trimmed) ? trimmed : ''
}

const looseOf = (
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
