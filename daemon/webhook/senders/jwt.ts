import type { KeyObject } from 'node:crypto'
import type { errors, JWTVerifyGetKey } from 'jose'
import { invalid, type ProvenClaims } from '../signatures/header.ts'

/*
 * JSON Web Tokens (RFC 7519), verified by jose, which is loaded with the first of them. Which algorithms are
 * in question is decided here, never by the token: HS256 for a secret, and the others for a public key.
 */

/** What a public key verifies; of `Ed25519` the older name. */
export const publicAlgorithms = ['RS256', 'PS256', 'ES256', 'ES384', 'EdDSA'] as const
type PublicAlgorithm = (typeof publicAlgorithms)[number]

export type JwtRules = {
  readonly algorithms: readonly ['HS256'] | readonly PublicAlgorithm[]
  /** Any of these may have signed. */
  readonly keys: readonly (KeyObject | JWTVerifyGetKey)[]
  readonly needsExpiry: boolean
  readonly nowMs: number
}

const maxLength = 16 * 1024
const clockSeconds = 60

/** Throws `signature-invalid`, and what a key that has to be fetched throws. */
export const verifyJwt = async (token: string, rules: JwtRules): Promise<ProvenClaims> => {
  const parts = token.length > maxLength ? [] : token.split('.')
  if (parts.length !== 3 || !parts.every(isBase64Url))
    throw invalid('the token is no JWT with a signature')
  const { jwtVerify, errors: jose } = await import('jose')
  const options = {
    algorithms: [...rules.algorithms],
    clockTolerance: clockSeconds,
    currentDate: new Date(rules.nowMs),
    ...(rules.needsExpiry && { requiredClaims: ['exp'] }),
  }
  for (const key of rules.keys)
    try {
      const { payload } = await (typeof key === 'function'
        ? jwtVerify(token, key, options)
        : jwtVerify(token, key, options))
      return payload as ProvenClaims
    } catch (error) {
      if (!(error instanceof jose.JOSEError)) throw error
      if (!(error instanceof jose.JWSSignatureVerificationFailed))
        throw invalid(describeFault(error, rules))
    }
  throw invalid('the signature of the JWT does not match the key')
}

/** In the one text that encodes these bytes (RFC 4648 section 3.5). */
const isBase64Url = (part: string): boolean =>
  part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part

const describeFault = (error: errors.JOSEError, { algorithms, nowMs }: JwtRules): string => {
  const now = nowMs / 1000
  const { claim, reason, payload } = error as Partial<errors.JWTClaimValidationFailed>
  if (error.code === 'ERR_JOSE_ALG_NOT_ALLOWED')
    return `the JWT is not signed with ${algorithms.join(', ')}, which is all that is accepted here`
  if (error.code === 'ERR_JWT_EXPIRED')
    return `the JWT expired ${Math.ceil(now - (payload?.exp ?? now))} s ago: it was sent again, or the clock of this machine is wrong`
  if (error.code !== 'ERR_JWT_CLAIM_VALIDATION_FAILED')
    return 'the token is no JWT: its header or claims are no JSON object, or it demands an extension'
  if (reason === 'missing') return 'the JWT has no time at which it expires'
  if (claim === 'nbf' && reason === 'check_failed')
    return `the JWT is from ${Math.ceil((payload?.nbf ?? now) - now)} s in the future: the clock of this machine is slow`
  return 'a time of the JWT is no number'
}

/** True when this key can have signed by this algorithm: jose would throw an error that is none of a token. */
export const isKeyFor = (algorithm: string | undefined, key: KeyObject): boolean => {
  const { asymmetricKeyType: type, asymmetricKeyDetails: details } = key
  switch (algorithm) {
    case 'RS256':
    case 'PS256':
      return type === 'rsa' && (details?.modulusLength ?? 0) >= 2048
    case 'ES256':
      return type === 'ec' && details?.namedCurve === 'prime256v1'
    case 'ES384':
      return type === 'ec' && details?.namedCurve === 'secp384r1'
    case 'EdDSA':
      return type === 'ed25519'
    default:
      return false
  }
}
