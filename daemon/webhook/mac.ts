import { createHash, createHmac, createSecretKey, hash } from 'node:crypto'

/** The MAC under one key of `head`, a text in Latin-1 that may be empty, and the bytes behind it. */
export type Mac = (head: string, bytes: Buffer) => Buffer

/** A block of SHA-1 and of SHA-256. */
const blockBytes = 64

/** What is hashed, for messages that fit; others are not copied. */
const room = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * Prepares HMAC with a key: H(key xor opad, H(key xor ipad, message)) (RFC 2104 section 2). Node's `createHmac`
 * makes an object of OpenSSL for each message that its garbage collector has to see to, which costs a small
 * delivery more than the two hashes; so does a hash that is given as bytes, where a text in Latin-1 is half the
 * price.
 */
export const prepareMac = (algorithm: 'sha256' | 'sha1', key: Buffer): Mac => {
  const block = Buffer.alloc(blockBytes)
  const short = key.length > blockBytes ? createHash(algorithm).update(key).digest() : key
  short.copy(block)
  const innerPad = combined(block, 0x36)
  const outerPad = combined(block, 0x5c)
  const keyObject = createSecretKey(key)
  return (head, bytes) => {
    const start = blockBytes + head.length
    const end = start + bytes.length
    if (end > room.length)
      return createHmac(algorithm, keyObject).update(head, 'latin1').update(bytes).digest()
    innerPad.copy(room)
    if (head !== '') room.write(head, blockBytes, 'latin1')
    bytes.copy(room, start)
    const inner = hash(algorithm, room.subarray(0, end), 'binary')
    outerPad.copy(room)
    room.write(inner, blockBytes, 'latin1')
    const outer = hash(algorithm, room.subarray(0, blockBytes + inner.length), 'binary')
    return Buffer.from(outer, 'latin1')
  }
}

/** Not in the memory that small buffers share. */
const combined = (block: Buffer, pad: number): Buffer => {
  const bytes = Buffer.alloc(blockBytes, pad)
  for (const [place, byte] of block.entries()) bytes[place] = byte ^ pad
  return bytes
}
