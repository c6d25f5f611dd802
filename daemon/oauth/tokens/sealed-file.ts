import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto'
import { z } from 'zod'

/*
 * A token file that is sealed with the key of the keychain: AES-256-GCM with a new random nonce for each
 * write. Its label, such as the name of the login, is authenticated too: a file does not open under another.
 */

const algorithm = 'aes-256-gcm'
const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** Base64 of exactly, or at least, this many bytes. */
const base64 = (bytes?: number) =>
  z
    .base64()
    .transform((text) => Buffer.from(text, 'base64'))
    .refine(({ length }) => (bytes === undefined ? length > 0 : length === bytes))

const envelopeSchema = z.object({
  sealed: z.literal(algorithm),
  version: z.literal(1),
  /** Tells a key that was replaced from a damaged file. */
  keyId: z.string(),
  nonce: base64(nonceBytes),
  tag: base64(tagBytes),
  data: base64(),
})

export type SealKey = { readonly id: string; readonly key: KeyObject }

/** A key from base64; undefined for any other text. */
export const parseKey = (text: string): SealKey | undefined => {
  const bytes = Buffer.from(text, 'base64')
  if (bytes.length !== keyBytes || bytes.toString('base64') !== text) return undefined
  const id = createHash('sha256').update('doorward key id').update(bytes).digest('hex').slice(0, 16)
  return { id, key: createSecretKey(bytes) }
}

export const sealText = ({ id, key }: SealKey, label: string, text: string): string => {
  const { nonce, tag, data } = encrypt(key, label, text)
  const envelope = {
    sealed: algorithm,
    version: 1,
    keyId: id,
    nonce: nonce.toString('base64'),
    tag: tag.toString('base64'),
    data: data.toString('base64'),
  }
  return `${JSON.stringify(envelope, null, 2)}\n`
}

/** The same in one word, for many small texts: the id of the key, then nonce, tag and data in base64. */
export const sealWord = ({ id, key }: SealKey, label: string, text: string): string => {
  const { nonce, tag, data } = encrypt(key, label, text)
  return `${id}.${Buffer.concat([nonce, tag, data]).toString('base64')}`
}

/** The text of such a word; undefined where this key did not seal it, or it is damaged. */
export const openWord = ({ id, key }: SealKey, label: string, word: string): string | undefined => {
  if (!word.startsWith(`${id}.`)) return undefined
  const bytes = Buffer.from(word.slice(id.length + 1), 'base64')
  const from = nonceBytes + tagBytes
  if (bytes.length <= from) return undefined
  try {
    return decrypt(key, label, {
      nonce: bytes.subarray(0, nonceBytes),
      tag: bytes.subarray(nonceBytes, from),
      data: bytes.subarray(from),
    })
  } catch {
    return undefined
  }
}

/** True also for an envelope that is damaged or of a later version. */
export const isSealed = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && 'sealed' in value
  } catch {
    return false
  }
}

/** The text in a sealed file; `other-key` where this key did not seal it, undefined where it is damaged. */
export const openText = (
  { id, key }: SealKey,
  label: string,
  text: string,
): { readonly text: string } | 'other-key' | undefined => {
  try {
    const { keyId, nonce, tag, data } = envelopeSchema.parse(JSON.parse(text))
    if (keyId !== id) return 'other-key'
    return { text: decrypt(key, label, { nonce, tag, data }) }
  } catch {
    return undefined
  }
}

type Sealed = { readonly nonce: Buffer; readonly tag: Buffer; readonly data: Buffer }

const encrypt = (key: KeyObject, label: string, text: string): Sealed => {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  cipher.setAAD(Buffer.from(label))
  const data = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()])
  return { nonce, tag: cipher.getAuthTag(), data }
}

/** Throws for a text that another key or label sealed, or that was changed. */
const decrypt = (key: KeyObject, label: string, { nonce, tag, data }: Sealed): string => {
  const decipher = createDecipheriv(algorithm, key, nonce, { authTagLength: tagBytes })
  decipher.setAAD(Buffer.from(label)).setAuthTag(tag)
  return `${decipher.update(data, undefined, 'utf8')}${decipher.final('utf8')}`
}
