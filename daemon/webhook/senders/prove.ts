import {
  invalid,
  oneValue,
  type Proof,
  type ProvenClaims,
  type SignatureHeaders,
} from '../signatures/header.ts'
import type { Verifier } from '../signatures/verify.ts'
import { verifyJwt } from './jwt.ts'
import type { RemoteKeys } from './remote-keys.ts'

export type ToProve = {
  readonly headers: SignatureHeaders
  readonly bytes: Buffer
  readonly nowMs: number
  readonly remoteKeys: Pick<RemoteKeys, 'findOfGoogle' | 'findOfSns'>
}

/**
 * What a sender needs that proves itself by a JWT or by a key that it publishes; undefined for any other.
 * Throws `signature-invalid`, and `unavailable` when a key cannot be fetched.
 */
export const prove = (
  verifier: Verifier,
  { headers, bytes, nowMs, remoteKeys }: ToProve,
): Promise<Proof> | undefined => {
  if (typeof verifier === 'string') return undefined
  const [{ check, header, keys }] = verifier
  const hs256 = { algorithm: 'HS256', keys, nowMs } as const
  switch (check) {
    case 'jwt-of-body':
      return proveBy(async () =>
        verifyJwt(oneValue(headers, header), { ...hs256, needsExpiry: false }),
      )
    case 'jwt':
      return proveBy(async () =>
        verifyJwt(oneValue(headers, header).replace(/^Bearer +/i, ''), {
          ...hs256,
          needsExpiry: true,
        }),
      )
    case 'oidc':
      return proveBy(async () =>
        verifyJwt(readBearer(headers), {
          algorithm: 'RS256',
          keys: [async ({ kid }) => remoteKeys.findOfGoogle(kid)],
          needsExpiry: true,
          nowMs,
        }),
      )
    case 'sns':
      return remoteKeys.findOfSns(bytes).then((key) => ({ key }))
    default:
      return undefined
  }
}

const proveBy = async (verified: () => Promise<ProvenClaims>): Promise<Proof> => ({
  claims: await verified(),
})

/** The token of `Authorization: Bearer`. Throws `signature-invalid`. */
const readBearer = (headers: SignatureHeaders): string => {
  const [, token] = /^Bearer +(\S+)$/i.exec(oneValue(headers, 'authorization')) ?? []
  if (token === undefined) throw invalid('the authorization header has no Bearer token')
  return token
}
