import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { type KeptText, createTextRoom, slabBytes } from '../../../daemon/events/text-room.ts'

/** Any units, halves of surrogate pairs and Latin-1 among them. */
const texts = fc.oneof(
  fc.string({ maxLength: 50 }),
  fc.string({
    maxLength: 50,
    unit: fc.nat(0xffff).map((unit) => String.fromCharCode(unit)),
  }),
  fc.string({ maxLength: 50, unit: fc.nat(0xff).map((unit) => String.fromCharCode(unit)) }),
  fc.constantFrom(40_000, slabBytes / 4, slabBytes / 4 + 1).map((size) => 'x'.repeat(size)),
  fc.constantFrom(slabBytes / 8, slabBytes / 8 + 1).map((size) => '\u20ac'.repeat(size)),
)

describe('a room of texts', () => {
  it('gives back each text as it was put, whatever was put and freed since', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(texts, fc.nat(3))), (steps) => {
        const room = createTextRoom()
        const kept: (readonly [KeptText, string])[] = []
        for (const [text, frees] of steps) {
          kept.push([room.put(text), text])
          // In about the order they came.
          for (let n = 0; n < frees; n += 1) {
            const [gone] = kept.splice(n % 2, 1)
            if (gone) room.free(gone[0])
          }
          for (const [place, known] of kept) {
            assert.equal(place.length, known.length)
            assert.ok(room.read(place) === known)
          }
        }
      }),
    )
  })

  it('leaves nothing in memory of a text that is freed', () => {
    const room = createTextRoom()
    const [before, wide, after] = ['before', 'w\u20acde', 'after'].map(room.put)
    assert.ok(before && wide && after)
    room.free(wide)
    const { bytes } = wide.slab
    assert.deepEqual(bytes.subarray(0, 19).toString('latin1'), `before${'\0'.repeat(8)}after`)
    room.free(before)
    room.free(after)
    assert.ok(bytes.subarray(0, 19).every((byte) => byte === 0))
  })

  it('takes no more than three slabs for what one of them holds, however much goes through', () => {
    const room = createTextRoom()
    const text = 'x'.repeat(slabBytes / 64)
    const kept: KeptText[] = []
    const slabs = new Set<object>()
    for (let n = 0; n < 1000; n += 1) {
      const place = room.put(text)
      kept.push(place)
      slabs.add(place.slab)
      const gone = kept.length > 64 ? kept.shift() : undefined
      if (gone) room.free(gone)
    }
    assert.ok(slabs.size <= 3, `${slabs.size} slabs`)
  })
})
