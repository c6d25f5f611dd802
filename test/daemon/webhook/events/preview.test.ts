import assert from 'node:assert/strict'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { toPreview } from '../../../../daemon/webhook/events/run-to-end.ts'

describe('the preview of an answer', () => {
  it('is its first 600 characters, without what repaints a terminal', () => {
    assert.equal(toPreview('all \u001b[31mgood\u001b[0m\r\n'), 'all good\n')
    assert.equal(toPreview('x'.repeat(5000)).length, 600)
    assert.equal(toPreview(''), '')
  })

  it('does not keep the whole answer in memory', async () => {
    setFlagsFromString('--expose-gc')
    const collectGarbage = runInNewContext('gc') as () => void
    const megabyte = 1024 * 1024
    const answer = (index: number) => Buffer.alloc(megabyte, `${index} yes\n`).toString()
    const held = () => {
      collectGarbage()
      const { heapUsed, external } = process.memoryUsage()
      return heapUsed + external
    }
    const before = held()
    const previews = Array.from({ length: 100 }, (_, index) => toPreview(answer(index)))
    // What is collected first frees its memory outside the heap a little later.
    let more = held() - before
    for (let turns = 0; turns < 100 && more >= 20 * megabyte; turns += 1) {
      await nextTurn()
      more = held() - before
    }
    assert.equal(previews.length, 100)
    assert.ok(more < 20 * megabyte, `${more} bytes more`)
  })
})
