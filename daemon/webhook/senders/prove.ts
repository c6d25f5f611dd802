import type { KeyObject } from 'node:crypto'
import {
  invalid,
  oneValue,
  type Proof,
  type ProvenClaims,
  type SignatureHeaders,
} from '../signatures/header.ts'
import type { Verifier } from '../signatures/verify.ts'
import { isKeyFor, publicAlgorithms, verifyJwt } from './jwt.ts'
import type { RemoteKeys } from './remote-keys.ts'

export type ToProve = {
  readonly headers: SignatureHeaders
  readonly bytes: Buffer
  readonly nowMs: number
  /** In place of the sender's, for one delivery by `webhook send`. */
  readonly testKey?: KeyObject | undefined
  readonly remoteKeys: Pick<
    RemoteKeys,
    'findOfGoogle' | 'findOfIssuer' | 'findOfPaypal' | 'findOfPlaid' | 'findOfSns'
  >
}

/**
 * What a sender needs that proves itself by a JWT or by a key that it publishes; undefined for any other.
 * Throws `signature-invalid`, and `unavailable` when a key cannot be fetched.
 */
export const prove = (
  verifier: Verifier,
  { headers, bytes, nowMs, remoteKeys, testKey }: ToProve,
): Promise<Proof> | undefined => {
  if (typeof verifier === 'string') return undefined
  const [{ check, header, keys, issuer = '', account = '' }] = verifier
  const hs256 = { algorithms: ['HS256'], keys, nowMs } as const
  const isPlainKey = check === 'key-pair' || check === 'paypal' || check === 'sns'
  if (testKey && isPlainKey) return Promise.resolve({ key: testKey })
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
          algorithms: publicAlgorithms,
          keys: [
            async ({ alg, kid }) =>
              requireKind(alg, testKey ?? (await remoteKeys.findOfIssuer(issuer, kid))),
          ],
          needsExpiry: true,
          nowMs,
        }),
      )
    case 'google':
      return proveBy(async () =>
        verifyJwt(readBearer(headers), {
          algorithms: ['RS256'],
          keys: [
            async ({ alg, kid }) =>
              requireKind(alg, testKey ?? (await remoteKeys.findOfGoogle(kid))),
          ],
          needsExpiry: true,
          nowMs,
        }),
      )
    case 'paypal':
      return remoteKeys.findOfPaypal(oneOrNone(headers, 'paypal-cert-url')).then((key) => ({ key }))
    case 'plaid': {
      const secret = keys[0]?.export().toString('utf8') ?? ''
      return proveBy(async () =>
        verifyJwt(oneValue(headers, header), {
          algorithms: ['ES256'],
          keys: [
            async ({ alg, kid }) =>
              requireKind(
                alg,
                testKey ?? (await remoteKeys.findOfPlaid(kid, bytes, { account, secret })),
              ),
          ],
          needsExpiry: false,
          nowMs,
        }),
      )
    }
    case 'sns':
      return remoteKeys.findOfSns(bytes).then((key) => ({ key }))
    default:
      return undefined
  }
}

const oneOrNone = (headers: SignatureHeaders, name: string): string | undefined =>
  headers[name]?.length === 1 ? headers[name][0] : undefined

const requireKind = (algorithm: string | undefined, key: KeyObject): KeyObject => {
  if (isKeyFor(algorithm, key)) return key
  throw invalid('the JWT names a key of another kind than its algorithm has')
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
