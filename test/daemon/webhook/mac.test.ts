import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { prepareMac } from '../../../daemon/webhook/mac.ts'

const algorithms = ['sha256', 'sha1'] as const

/** Test cases 1, 2 and 6 (a key longer than a block) of RFC 4231 section 4, with SHA-256. */
const published = [
  [
    Buffer.alloc(20, 0x0b),
    'Hi There',
    'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  ],
  [
    Buffer.from('Jefe'),
    'what do ya want for nothing?',
    '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  ],
  [
    Buffer.alloc(131, 0xaa),
    'Test Using Larger Than Block-Size Key - Hash Key First',
    '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
  ],
] as const

describe('the MAC of a body', () => {
  it('is that of the published vectors', () => {
    for (const [key, text, hex] of published)
      assert.equal(prepareMac('sha256', key)('', Buffer.from(text)).toString('hex'), hex)
  })

  it('is that of Node for any key, head and bytes, whatever another key has hashed before', () => {
    const bytes = (maxLength: number) => fc.uint8Array({ minLength: 1, maxLength })
    const head = fc.string({ maxLength: 300, unit: fc.nat(255).map((n) => String.fromCharCode(n)) })
    const other = prepareMac('sha1', Buffer.from('another key'))
    fc.assert(
      fc.property(
        fc.constantFrom(...algorithms),
        bytes(200),
        head,
        bytes(5000),
        (algorithm, key, head, message) => {
          const mac = prepareMac(algorithm, Buffer.from(key))
          other(head.toUpperCase().slice(0, 50), Buffer.from(message.toReversed()))
          assert.deepEqual(
            mac(head, Buffer.from(message)),
            createHmac(algorithm, key).update(head, 'latin1').update(message).digest(),
          )
        },
      ),
    )
  })

  it('is that of Node on both sides of the largest message that is copied', () => {
    for (const algorithm of algorithms)
      for (const length of [0, 1, 65_470, 65_471, 65_472, 65_473, 1_000_000])
        for (const head of ['', 'v0:1:']) {
          const message = Buffer.alloc(length, 'ab')
          assert.deepEqual(
            prepareMac(algorithm, Buffer.from('key'))(head, message),
            createHmac(algorithm, 'key').update(head, 'latin1').update(message).digest(),
            `${algorithm} of ${length} bytes behind "${head}"`,
          )
        }
  })
})
