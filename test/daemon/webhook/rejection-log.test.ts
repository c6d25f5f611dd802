import assert from 'node:assert/strict'
import type { Log } from '../../../daemon/log/log.ts'
import { createRejectionLog } from '../../../daemon/webhook/rejection-log.ts'

const setUp = (everyMs: number) => {
  const lines: Record<string, unknown>[] = []
  let wake = () => undefined as void
  const info = (fields: Record<string, unknown>, msg: string) => {
    lines.push({ ...fields, msg })
    wake()
  }
  const refusals = createRejectionLog({ info } as unknown as Log, everyMs)
  const note = (event: string, webhook = '/a', code = 'signature-invalid') =>
    refusals.note({ event, webhook, code })
  const next = () => new Promise<void>((resolve) => (wake = resolve))
  return { lines, refusals, note, next }
}

describe('the log of refusals', () => {
  it('writes the first of a webhook and a code, and counts the others until the time is over', async () => {
    const { lines, note, next, refusals } = setUp(20)
    note('evt_1')
    for (let more = 2; more <= 1000; more += 1) note(`evt_${more}`)
    note('evt_b', '/b')
    note('evt_c', '/a', 'queue-full')
    assert.deepEqual(
      lines.map(({ event }) => event),
      ['evt_1', 'evt_b', 'evt_c'],
    )
    await next()
    const { refused, lastEvent, code, webhook } = lines[3] ?? {}
    assert.deepEqual(
      [refused, lastEvent, code, webhook],
      [999, 'evt_1000', 'signature-invalid', '/a'],
    )
    refusals.close()
  })

  it('says at the end what it has counted', () => {
    const { lines, note, refusals } = setUp(60_000)
    for (const event of ['evt_1', 'evt_2', 'evt_3']) note(event)
    refusals.close()
    assert.deepEqual(
      lines.map(({ refused }) => refused),
      [undefined, 2],
    )
    refusals.close()
    assert.equal(lines.length, 2)
  })
})
