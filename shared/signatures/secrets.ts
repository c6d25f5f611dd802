import { createPublicKey, type KeyObject } from 'node:crypto'
import type { SignatureForm } from './form.ts'
import type { SignatureScheme } from './scheme.ts'

const marker = 'whsec_'

/** The key bytes of a secret in this form, of a public key its DER; undefined when the secret does not fit. */
export const keyBytes = (form: SignatureForm, secret: string): Buffer | undefined => {
  const isMarked = secret.startsWith(marker)
  switch (form.secret) {
    case 'text':
      return Buffer.from(secret)
    case 'hex':
      return /^([0-9a-fA-F]{2})+$/.test(secret) ? Buffer.from(secret, 'hex') : undefined
    case 'token':
      return isMarked ? undefined : Buffer.from(secret)
    case 'whsec':
      return isMarked ? decoded(secret.slice(marker.length)) : undefined
    case 'base64':
      return decoded(isMarked ? secret.slice(marker.length) : secret)
    case 'ed25519':
      return /^[0-9a-fA-F]{64}$/.test(secret) ? Buffer.from(ed25519Head + secret, 'hex') : undefined
    case 'ec':
      return isEcKey(secret) ? toDer(secret) : undefined
  }
}

/** The 32 bytes of an Ed25519 key come after this in its DER (RFC 8410). */
const ed25519Head = '302a300506032b6570032100'

/** The DER of a public key in PEM, or in base64 without its first and last line. */
const toDer = (text: string): Buffer =>
  Buffer.from(text.replaceAll(/-----(BEGIN|END) PUBLIC KEY-----|\\n|\s/g, ''), 'base64')

/** The public key in this DER. Throws what Node throws for any other bytes. */
export const toPublicKey = (der: Buffer): KeyObject =>
  createPublicKey({ key: der, format: 'der', type: 'spki' })

const isEcKey = (text: string): boolean => {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = toPublicKey(toDer(text))
    return type === 'ec' && details?.namedCurve === 'prime256v1'
  } catch {
    return false
  }
}

/** Base64 (RFC 4648 section 4) with optional padding; Node itself accepts anything. */
const decoded = (text: string): Buffer | undefined => {
  const bare = text.replace(/={1,2}$/, '')
  const isPadded = bare !== text
  if (!/^[A-Za-z0-9+/]+$/.test(bare) || bare.length % 4 === 1) return undefined
  return isPadded && text.length % 4 !== 0 ? undefined : Buffer.from(bare, 'base64')
}

/**
 * What looks wrong with a secret, without any part of it: `unusable` when it cannot verify anything.
 */
export const secretFault = (
  scheme: SignatureScheme,
  secret: string,
): { readonly reason: string; readonly unusable: boolean } | undefined => {
  const hasKey = scheme.forms.some((form) => keyBytes(form, secret) !== undefined)
  const reason = findMiscopied(secret)
  if (reason !== undefined) return { reason, unusable: true }
  const fault = findFault(scheme, secret, !hasKey)
  return fault === undefined ? undefined : { reason: fault, unusable: !hasKey }
}

/** Senders show secrets without white space and quotes: no signature matches with them. */
const findMiscopied = (secret: string): string | undefined => {
  if (/^\s|\s$/.test(secret)) return 'has white space at its beginning or end'
  if (/^(["']).*\1$/s.test(secret)) return 'has quotes around it, which count as a part of it'
  return undefined
}

const findFault = (
  scheme: SignatureScheme,
  secret: string,
  unusable: boolean,
): string | undefined => {
  if (scheme.name === 'standard-webhooks' && /^wh[ps]k_/.test(secret))
    return 'is an Ed25519 key (v1a): only the symmetric kind that begins with whsec_ is taken'
  if (unusable) return unusableReason(scheme)
  if (scheme.name === 'standard-webhooks' && !secret.startsWith(marker))
    return 'does not begin with whsec_, as secrets of Standard Webhooks do'
  if (scheme.name === 'stripe' && !secret.startsWith(marker))
    return "does not begin with whsec_, as Stripe's signing secrets do (an API key is another thing)"
  if (scheme.name === 'slack' && !/^[0-9a-f]{32}$/.test(secret))
    return "is not 32 hex digits, as Slack's signing secrets are (a token or client secret is another thing)"
  if (scheme.secretForm?.pattern.test(secret) === false) return scheme.secretForm.fault
  const marked = scheme.forms.find(({ secret: kind }) => kind === 'base64' || kind === 'whsec')
  if (
    scheme.name !== 'hmac' &&
    marked &&
    secret.startsWith(marker) &&
    (keyBytes(marked, secret)?.length ?? 0) < 24
  )
    return 'is shorter than the 24 bytes that Standard Webhooks asks for'
  return undefined
}

const unusableReason = ({ name, forms }: SignatureScheme): string => {
  if (forms[0]?.secret === 'ed25519') return 'is not a public key of 64 hex digits'
  if (forms[0]?.secret === 'ec') return 'is not an ECDSA public key (P-256) in base64 or PEM'
  if (name !== 'hmac') return 'is not base64 after whsec_, as this scheme has it'
  return `is not ${forms[0]?.secret === 'hex' ? 'hex' : 'base64'}, as secret_encoding says`
}
