import assert from 'node:assert/strict'
import { EventStore } from '../../../../daemon/events/event-store.ts'
import { KeptPayloads } from '../../../../daemon/webhook/events/kept-payloads.ts'
import { verify } from '../../../../daemon/webhook/signatures/verify.ts'

const at = new Date(0)
const known = { webhook: '/a', agent: 'echo' }

const start = (maxBytes: number, keep = 100) => {
  const events = new EventStore(keep)
  const payloads = new KeptPayloads(events, maxBytes)
  const add = (text: string, headers = {}): string => {
    const { id } = events.add(at, { state: 'done' })
    const body = verify(Buffer.from(text), {}, 'none', 0)
    const forms = [{ header: 'x-signature', prefix: '', encoding: 'hex' }] as never
    payloads.keep({ body, headers, forms, receivedAt: at }, [{ known, delivery: undefined }], [id])
    return id
  }
  const text = (id: string) => payloads.get(id)?.body.bytes.toString()
  return { payloads, add, text }
}

describe('the payload of an event that may run again', () => {
  it('is kept as long as its event', () => {
    const { add, text } = start(1000, 3)
    const ids = ['1', '2', '3', '4'].map((each) => add(each))
    assert.deepEqual(ids.map(text), [undefined, '2', '3', '4'])
  })

  it('gives way to newer ones, and is never that of another event', () => {
    const { add, text } = start(10)
    const ids = ['aaaa', 'bbbb', 'cccc'].map((each) => add(each))
    // The third begins at the start again, as two bytes were left.
    assert.deepEqual(ids.map(text), [undefined, 'bbbb', 'cccc'])
    ids.push(add('d'.repeat(10)))
    assert.deepEqual(ids.map(text), [undefined, undefined, undefined, 'd'.repeat(10)])
    assert.equal(text(add('e'.repeat(11))), undefined)
    assert.equal(text(ids[3] ?? ''), 'd'.repeat(10))
  })

  it('is whole or gone, wherever the buffer begins again', () => {
    const { add, text } = start(64)
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
    const kept = payloads.get(add('aaaa'))
    add('bbbb')
    assert.equal(kept?.body.bytes.toString(), 'aaaa')
  })

  it('comes without what proved its sender', () => {
    const { add, payloads } = start(100)
    const headers = { 'x-signature': ['s'], cookie: ['c'], authorization: ['a'], 'x-event': ['e'] }
    assert.deepEqual({ ...payloads.get(add('a', headers))?.headers }, { 'x-event': ['e'] })
  })
})

describe('a body that is kept', () => {
  it('does not keep the large buffer of which it is a part', () => {
    const body = verify(Buffer.alloc(64 * 1024).subarray(0, 10), {}, 'none', 0)
    assert.equal(body.compact().bytes.buffer.byteLength, 10)
  })
})
