import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'

/*
 * What travels between machines is sealed with AES-256-GCM: the broker sees no prompt and no answer. What a
 * sealed text is, and of which event, is authenticated with it, so it cannot be used as another.
 */

const algorithm = 'aes-256-gcm'
const nonceBytes = 12
const tagBytes = 16

/** What a sealed text is of. */
export type Kind = 'run' | 'done' | 'ticket' | 'progress' | 'cancel' | 'machine'

export const seal = (key: Buffer, kind: Kind, id: string, plain: Uint8Array): Buffer => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce)
  cipher.setAAD(Buffer.from(`${kind} ${id}`))
  const sealed = [cipher.update(plain), cipher.final()]
  return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed])
}

/** Tries each key; undefined where none of them has sealed this for that kind and id. */
export const unseal = (
  keys: readonly Buffer[],
  kind: Kind,
  id: string,
  sealed: Buffer,
): Buffer | undefined => {
  if (sealed.length < nonceBytes + tagBytes) return undefined
  for (const key of keys) {
    const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes))
    decipher.setAAD(Buffer.from(`${kind} ${id}`))
    decipher.setAuthTag(sealed.subarray(nonceBytes, nonceBytes + tagBytes))
    try {
      const plain = decipher.update(sealed.subarray(nonceBytes + tagBytes))
      return Buffer.concat([plain, decipher.final()])
    } catch {
      // Another key.
    }
  }
  return undefined
}

/** Joins parts to one message, each after its length. */
export const pack = (...parts: readonly Uint8Array[]): Buffer =>
  Buffer.concat(
    parts.flatMap((part) => {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(part.length)
      return [length, part]
    }),
  )

/** The parts of a message; a damaged one gives fewer. */
export const unpack = (bytes: Uint8Array): Buffer[] => {
  const all = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const parts: Buffer[] = []
  for (let at = 0; at + 4 <= all.length;) {
    const end = at + 4 + all.readUInt32BE(at)
    if (end > all.length) break
    parts.push(all.subarray(at + 4, end))
    at = end
  }
  return parts
}
