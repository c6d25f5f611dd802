import { createHash, timingSafeEqual } from 'node:crypto'

/**
 * Compares two secrets in a time that does not depend on where they differ. Texts are hashed first, so the time
 * does not show their length either; the length of bytes, such as a MAC, is no secret.
 */
export const constantTimeEqual = <Secret extends Buffer | string>(
  a: Secret,
  b: Secret,
): boolean => {
  const [left, right] = [toBytes(a), toBytes(b)]
  return left.length === right.length && timingSafeEqual(left, right)
}

const toBytes = (secret: Buffer | string): Buffer =>
  typeof secret === 'string' ? createHash('sha256').update(secret).digest() : secret
