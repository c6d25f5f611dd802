import type { SignatureForm, SignatureScheme } from './signature-schemes.ts'

const marker = 'whsec_'

/** The bytes that a secret stands for in this form; undefined when it is none of this form. */
export const keyBytes = (form: SignatureForm, secret: string): Buffer | undefined => {
  const isMarked = secret.startsWith(marker)
  switch (form.secret) {
    case 'text':
      return Buffer.from(secret)
    case 'token':
      return isMarked ? undefined : Buffer.from(secret)
    case 'whsec':
      return isMarked ? decoded(secret.slice(marker.length)) : undefined
    case 'base64':
      return decoded(isMarked ? secret.slice(marker.length) : secret)
  }
}

/** Base64 of RFC 4648 section 4, the padding may be left out; Node itself would take anything. */
const decoded = (text: string): Buffer | undefined => {
  const bare = text.replace(/={1,2}$/, '')
  const isPadded = bare !== text
  if (!/^[A-Za-z0-9+/]+$/.test(bare) || bare.length % 4 === 1) return undefined
  return isPadded && text.length % 4 !== 0 ? undefined : Buffer.from(bare, 'base64')
}

/**
 * What looks wrong with the value of a secret, without a word of the value: `unusable` when nothing can
 * be verified with it.
 */
export const secretFault = (
  scheme: SignatureScheme,
  secret: string,
): { readonly reason: string; readonly unusable: boolean } | undefined => {
  const unusable = !scheme.forms.some((form) => keyBytes(form, secret) !== undefined)
  const reason = faultOf(scheme, secret, unusable)
  return reason === undefined ? undefined : { reason, unusable }
}

const faultOf = (
  scheme: SignatureScheme,
  secret: string,
  unusable: boolean,
): string | undefined => {
  if (/^\s|\s$/.test(secret)) return 'has white space at its beginning or end'
  if (/^(["']).*\1$/s.test(secret)) return 'stands in quotes, which count as a part of it'
  if (scheme.name === 'standard-webhooks' && /^wh[ps]k_/.test(secret))
    return 'is an Ed25519 key (v1a): only the symmetric kind that begins with whsec_ is taken'
  if (unusable) return 'is not base64 after whsec_, as this scheme has it'
  if (scheme.name === 'standard-webhooks' && !secret.startsWith(marker))
    return 'does not begin with whsec_, as secrets of Standard Webhooks do'
  if (scheme.name === 'stripe' && !secret.startsWith(marker))
    return "does not begin with whsec_, as Stripe's signing secrets do (an API key is another thing)"
  if (scheme.name === 'slack' && !/^[0-9a-f]{32}$/.test(secret))
    return "is not 32 hex digits, as Slack's signing secrets are (a token or client secret is another thing)"
  const marked = scheme.forms.find(({ secret: kind }) => kind === 'base64' || kind === 'whsec')
  if (marked && secret.startsWith(marker) && (keyBytes(marked, secret)?.length ?? 0) < 24)
    return 'is shorter than the 24 bytes that Standard Webhooks asks for'
  return undefined
}
