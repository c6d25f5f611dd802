import { createHash } from 'node:crypto'

/** The S256 code challenge of a code verifier. RFC 7636 section 4.2. */
export const codeChallengeOf = (codeVerifier: string): string =>
  createHash('sha256').update(codeVerifier, 'ascii').digest('base64url')
