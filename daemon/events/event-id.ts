import { randomBytes } from 'node:crypto'

const prefix = 'evt_'
const bytesEach = 9
const made = 256

/** Ids one behind the other, each given out once. */
let ids = Buffer.alloc(0)
let next = 0

/**
 * 72 random bits; what an event is called in lists, links and logs. Many are made at a time, and each is a
 * string of its own: one put together of two pieces is kept, and moved by the garbage collector, as three.
 */
export const newEventId = (): string => {
  if (next === ids.length) {
    const digits = randomBytes(bytesEach * made).toString('hex')
    ids = Buffer.from(
      digits.replaceAll(/.{18}/g, (id) => prefix + id),
      'latin1',
    )
    next = 0
  }
  const start = next
  next += prefix.length + 2 * bytesEach
  return ids.toString('latin1', start, next)
}
