import { createHmac, type KeyObject, verify } from 'node:crypto'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { invalid } from '../signatures/header.ts'

/*
 * JSON Web Tokens (RFC 7519) with the two algorithms that senders of webhooks use. Which one is in question is
 * decided here, never by the token: `none` and any other is refused.
 */

export type JwtAlgorithm = 'HS256' | 'RS256'

export type Jwt = {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  readonly signed: Buffer
  readonly signature: Buffer
}

const maxLength = 16 * 1024

/** Takes a token apart without trusting it. Throws `signature-invalid`. */
export const parseJwt = (text: string, algorithm: JwtAlgorithm): Jwt => {
  const parts = text.length > maxLength ? [] : text.split('.')
  const [header, claims, signature] = parts
  if (parts.length !== 3 || !parts.every(isBase64Url))
    throw invalid('the token is no JWT with a signature')
  const jwt = {
    header: parseObject(header),
    claims: parseObject(claims),
    signed: Buffer.from(`${header}.${claims}`, 'latin1'),
    signature: Buffer.from(signature ?? '', 'base64url'),
  }
  if (jwt.header['alg'] !== algorithm)
    throw invalid(`the JWT is not signed with ${algorithm}, which is all that is accepted here`)
  if (jwt.header['crit'] !== undefined) throw invalid('the JWT demands an extension')
  return jwt
}

/** In the one text that encodes these bytes (RFC 4648 section 3.5). */
const isBase64Url = (part: string): boolean =>
  part !== '' && Buffer.from(part, 'base64url').toString('base64url') === part

const parseObject = (part = ''): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, 'base64url').toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>
  } catch {
    // Not JSON; its text is not shown.
  }
  throw invalid('the token is no JWT: its header or claims are no JSON object')
}

/** True for a signature of HS256 by one of these secrets. */
export const isSignedBy = ({ signed, signature }: Jwt, keys: readonly KeyObject[]): boolean => {
  let matches = false
  for (const key of keys) {
    const digest = createHmac('sha256', key).update(signed).digest()
    if (constantTimeEqual(digest, signature)) matches = true
  }
  return matches
}

/** True for a signature of RS256 by the owner of this public key. */
export const isSignedByRsa = ({ signed, signature }: Jwt, key: KeyObject): boolean =>
  key.asymmetricKeyType === 'rsa' && verify('sha256', signed, key, signature)

const clockSeconds = 60

/** Checks the times in the claims, of which `exp` must be there where it is demanded. */
export const checkTimes = (
  { claims: { exp, nbf, iat } }: Jwt,
  nowMs: number,
  needsExpiry: boolean,
): void => {
  const now = nowMs / 1000
  for (const time of [exp, nbf, iat])
    if (time !== undefined && !Number.isFinite(time))
      throw invalid('a time of the JWT is no number')
  if (typeof exp === 'number' ? exp + clockSeconds < now : needsExpiry)
    throw invalid(
      typeof exp === 'number'
        ? `the JWT expired ${Math.ceil(now - exp)} s ago: it was sent again, or the clock of this machine is wrong`
        : 'the JWT has no time at which it expires',
    )
  for (const time of [nbf, iat])
    if (typeof time === 'number' && time - clockSeconds > now)
      throw invalid(
        `the JWT is from ${Math.ceil(time - now)} s in the future: the clock of this machine is slow`,
      )
}
