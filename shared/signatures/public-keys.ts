import { createPublicKey, type KeyObject } from 'node:crypto'
import type { KeyAlgorithm } from './form.ts'

/*
 * Public keys as senders show them: PEM, the base64 of its DER, or the raw key in base64 or hex.
 */

/** DER (RFC 5280, SubjectPublicKeyInfo) before the 32 bytes of an Ed25519 key and the 65 of a point on P-256. */
const heads: {
  readonly [Algorithm in KeyAlgorithm]?: { readonly der: string; readonly size: number }
} = {
  ed25519: { der: '302a300506032b6570032100', size: 32 },
  'ecdsa-p256': { der: '3059301306072a8648ce3d020106082a8648ce3d030107034200', size: 65 },
}

/** The DER of a public key for this algorithm, undefined for any other text; a private key is none. */
export const readPublicKey = (algorithm: KeyAlgorithm, text: string): Buffer | undefined => {
  const bytes = toBytes(text)
  const head = heads[algorithm]
  const isRaw = head?.size === bytes.length
  const der = isRaw ? Buffer.concat([Buffer.from(head.der, 'hex'), bytes]) : bytes
  return fits(algorithm, der) ? der : undefined
}

/** Node takes hex and base64 as far as they go: what follows is no DER then. */
const toBytes = (text: string): Buffer => {
  const bare = text.replaceAll(/-----(BEGIN|END) PUBLIC KEY-----|\\n|\s/g, '')
  return Buffer.from(bare, /^([0-9a-f]{2})+$/i.test(bare) ? 'hex' : 'base64')
}

/** The public key in this DER. Throws what Node throws for any other bytes. */
export const toPublicKey = (der: Buffer): KeyObject =>
  createPublicKey({ key: der, format: 'der', type: 'spki' })

const smallestRsa = 2048

const fits = (algorithm: KeyAlgorithm, der: Buffer): boolean => {
  try {
    const { asymmetricKeyType: type, asymmetricKeyDetails: details } = toPublicKey(der)
    switch (algorithm) {
      case 'ed25519':
        return type === 'ed25519'
      case 'ecdsa-p256':
        return type === 'ec' && details?.namedCurve === 'prime256v1'
      case 'rsa-sha256':
        return type === 'rsa' && (details?.modulusLength ?? 0) >= smallestRsa
    }
  } catch {
    return false
  }
}
