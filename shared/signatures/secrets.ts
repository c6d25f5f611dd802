import type { KeyAlgorithm, SignatureForm } from './form.ts'
import { readPublicKey } from './public-keys.ts'
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
      // Supabase shows the version before it.
      return decoded(secret.replace(/^(v1,)?whsec_/, ''))
    case 'public-key':
      return form.keyAlgorithm && readPublicKey(form.keyAlgorithm, secret)
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
  const isStandard =
    scheme.name !== 'hmac' && scheme.forms.some(({ header }) => header === 'svix-signature')
  if (isStandard && /^wh[ps]k_/.test(secret))
    return 'is an Ed25519 key (v1a): only the symmetric kind that begins with whsec_ is taken'
  if (unusable) return unusableReason(scheme)
  if (isStandard && !/^(v1,)?whsec_/.test(secret))
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

const keyKinds: Readonly<Record<KeyAlgorithm, string>> = {
  ed25519: 'an Ed25519 public key',
  'ecdsa-p256': 'an ECDSA public key (P-256)',
  'rsa-sha256': 'an RSA public key of 2048 bits or more',
}

const unusableReason = ({ name, forms }: SignatureScheme): string => {
  const [first] = forms
  if (first?.secret === 'public-key')
    return `is not ${keyKinds[first.keyAlgorithm ?? 'ed25519']}, in PEM, base64 or hex`
  if (name !== 'hmac') return 'is not base64 after whsec_, as this scheme has it'
  return `is not ${forms[0]?.secret === 'hex' ? 'hex' : 'base64'}, as secret_encoding says`
}
