import assert from 'node:assert/strict'
import { KeptPayloads } from '../../../../daemon/webhook/events/kept-payloads.ts'
import { verify } from '../../../../daemon/webhook/signatures/verify.ts'

const scheme = { forms: [{ header: 'x-signature' }] } as never

const start = (maxBytes: number) => {
  const payloads = new KeptPayloads(maxBytes)
  let count = 0
  const add = (text: string, headers = {}): string => {
    const id = `event-${count++}`
    payloads.keep([id], { body: verify(Buffer.from(text), {}, 'none', 0), headers })
    return id
  }
  const text = (id: string) => payloads.get(id, scheme)?.body.bytes.toString()
  return { payloads, add, text }
}

describe('the payload of an event that may run again', () => {
  it('gives way to newer ones, and is never that of another event', () => {
    const { add, text } = start(10)
    const ids = ['aaaa', 'bbbb', 'cccc'].map((each) => add(each))
    assert.deepEqual(ids.map(text), [undefined, 'bbbb', 'cccc'])
    ids.push(add('d'.repeat(10)))
    assert.deepEqual(ids.map(text), [undefined, undefined, undefined, 'd'.repeat(10)])
    assert.equal(text(add('e'.repeat(11))), undefined)
    assert.equal(text(ids[3] ?? ''), 'd'.repeat(10))
  })

  it('is one of the newest 1,000', () => {
    const { add, text } = start(100_000)
    const ids = Array.from({ length: 1001 }, (_, index) => add(String(index)))
    assert.deepEqual(
      [0, 1, 1000].map((index) => text(ids[index] ?? '')),
      [undefined, '1', '1000'],
    )
  })

  it('is whole or gone, wherever the buffer begins again', () => {
    const { add, text } = start(200)
    const given = new Map<string, string>()
    for (let round = 0; round < 500; round++) {
      const own = String(round).padEnd((round * 7) % 23, '-')
      const newest = add(own)
      given.set(newest, own)
      assert.equal(text(newest), own)
      for (const [id, each] of given) assert.ok([undefined, each].includes(text(id)))
    }
  })

  it('is a copy, which a newer one does not change', () => {
    const { add, payloads } = start(4)
    const kept = payloads.get(add('aaaa'), scheme)
    add('bbbb')
    assert.equal(kept?.body.bytes.toString(), 'aaaa')
  })

  it('comes with its headers as they were sent', () => {
    const { add, payloads } = start(1000)
    const headers = { 'x-event': ['é', ''], 'content-type': ['application/json; a="b"'] }
    assert.deepEqual({ ...payloads.get(add('a', headers), scheme)?.headers }, headers)
  })

  it('comes without what proved its sender', () => {
    const { add, payloads } = start(1000)
    const headers = { 'x-signature': ['s'], cookie: ['c'], authorization: ['a'], 'x-event': ['e'] }
    const id = add('a', headers)
    assert.deepEqual({ ...payloads.get(id, scheme)?.headers }, { 'x-event': ['e'] })
  })
})

describe('a body that is kept', () => {
  it('does not keep the large buffer of which it is a part', () => {
    const body = verify(Buffer.alloc(64 * 1024).subarray(0, 10), {}, 'none', 0)
    assert.equal(body.compact().bytes.buffer.byteLength, 10)
  })
})
