import { randomFillSync } from 'node:crypto'

const pool = Buffer.allocUnsafeSlow(4096)
let used = pool.length

/**
 * So many random bytes of the system's generator as hex digits, at most 64. Drawn from a pool that is
 * filled now and then: asking for each alone costs more than all the rest.
 */
export const randomHex = (bytes: number): string => {
  if (used + bytes > pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const text = pool.toString('hex', used, used + bytes)
  // What was given out does not stay behind.
  pool.fill(0, used, used + bytes)
  used += bytes
  return text
}
