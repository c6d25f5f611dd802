import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { memoryUsage } from 'node:process'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInThisContext } from 'node:vm'
import { type BodyRooms, createBodyRooms } from '../../../daemon/webhook/body-rooms.ts'

const megabyte = 1024 * 1024

describe('rooms for bodies', () => {
  let rooms: BodyRooms

  beforeEach(() => {
    rooms = createBodyRooms()
  })

  const filled = (body: Buffer, expected: number, pieceBytes: number) => {
    const room = rooms(expected)
    for (let from = 0; from < body.length; from += pieceBytes)
      room.add(body.subarray(from, from + pieceBytes))
    assert.equal(room.size(), body.length)
    return room
  }

  it('give back what came, whatever was expected and however large it is', () => {
    for (const bytes of [0, 1, 1000, 128 * 1024, 128 * 1024 + 1, 700_000, 3 * megabyte + 5]) {
      const body = randomBytes(bytes)
      for (const expected of [bytes, Number.NaN, 20 * megabyte])
        for (const pieceBytes of [65_536, 1000, 4 * megabyte]) {
          const room = filled(body, expected, pieceBytes)
          assert.ok(room.bytes().equals(body), `${bytes} in pieces of ${pieceBytes}`)
          room.release()
        }
    }
  })

  it('show nothing of a large body once it is released, nor of another in its place', () => {
    const first = filled(Buffer.alloc(megabyte, 'first'), megabyte, 65_536)
    const bytes = first.bytes()
    first.release()
    assert.equal(bytes.length, 0)
    const second = filled(Buffer.alloc(megabyte, 'other'), megabyte, 65_536)
    assert.equal(bytes.length, 0)
    // A second time: it is not his any more.
    first.release()
    assert.ok(second.bytes().equals(Buffer.alloc(megabyte, 'other')))
    second.release()
  })

  it('show all large bodies in objects of one hidden class, so that code for buffers stays fast', () => {
    setFlagsFromString('--allow-natives-syntax')
    const isAlike = runInThisContext('(one, other) => %HaveSameMap(one, other)') as (
      one: Buffer,
      other: Buffer,
    ) => boolean
    const [first, ...others] = [megabyte, megabyte, 200_000].map((size) =>
      filled(Buffer.alloc(size), size, 65_536),
    )
    const bytes = first?.bytes() ?? Buffer.alloc(0)
    assert.ok(Buffer.isBuffer(bytes))
    assert.equal(bytes.toString('latin1', 0, 2), '\0\0')
    for (const other of others) {
      assert.ok(isAlike(bytes, other.bytes()))
      other.release()
    }
    first?.release()
    setFlagsFromString('--no-allow-natives-syntax')
  })

  it('keep bodies apart that come at the same time', () => {
    const bodies = Array.from({ length: 20 }, (_, index) => Buffer.alloc(megabyte - index, index))
    for (let round = 0; round < 3; round += 1) {
      const open = bodies.map(({ length }) => rooms(length))
      for (let from = 0; from < megabyte; from += 65_536)
        for (const [index, room] of open.entries())
          room.add(bodies[index]?.subarray(from, from + 65_536) ?? Buffer.alloc(0))
      for (const [index, room] of open.entries())
        assert.ok(bodies[index]?.equals(room.bytes()), `body ${index}`)
      for (const room of open) room.release()
    }
  })

  it('take no more memory than what came, whatever a sender announces', () => {
    const before = memoryUsage().rss
    const open = Array.from({ length: 200 }, () =>
      filled(Buffer.alloc(200_000), 25 * megabyte, 65_536),
    )
    const taken = memoryUsage().rss - before
    for (const room of open) room.release()
    assert.ok(taken < 2 * 200 * 200_000, `${taken} for ${200 * 200_000}`)
  })

  it('take no more for what comes after larger bodies, whose rooms are there', () => {
    const before = memoryUsage().rss
    const rounds = 8
    const open = Array.from({ length: rounds }, () => {
      const larger = Array.from({ length: 30 }, () =>
        filled(Buffer.alloc(megabyte, 'x'), megabyte, 65_536),
      )
      for (const room of larger) room.release()
      return Array.from({ length: 30 }, () => filled(Buffer.alloc(150_000), megabyte, 65_536))
    }).flat()
    const taken = memoryUsage().rss - before
    for (const room of open) room.release()
    // And what is free, and was there before it is collected.
    const most = 2 * open.length * 150_000 + 64 * megabyte
    assert.ok(taken < most, `${taken}, not ${most}`)
  })

  it('give the system its memory back when no more bodies come', async () => {
    const open = Array.from({ length: 30 }, () =>
      filled(Buffer.alloc(megabyte, 'x'), megabyte, 65_536),
    )
    const full = memoryUsage().rss
    for (const room of open) room.release()
    for (let tries = 0; memoryUsage().rss > full - 20 * megabyte; tries += 1) {
      assert.ok(tries < 100, `${memoryUsage().rss} of ${full}`)
      await wait(100)
    }
  })
})
