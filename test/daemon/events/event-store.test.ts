import assert from 'node:assert/strict'
import type { EventFields } from '../../../daemon/events/event-record.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { eventDetailSchema } from '../../../shared/api/api.ts'

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second))
const done: EventFields = { state: 'done', webhook: '/a' }

describe('the event store', () => {
  it('gives each event its own id and a record of the documented form', () => {
    const events = new EventStore(10)
    const first = events.add(at(1), done)
    const second = events.add(at(1), done)
    assert.notEqual(first.id, second.id)
    assert.match(first.id, /^evt_[0-9a-f]{18}$/)
    assert.deepEqual(
      eventDetailSchema.parse(events.get(first.id)),
      JSON.parse(JSON.stringify(first)),
    )
    assert.equal(first.receivedAt, '2026-01-01T00:00:01.000Z')
  })

  it('lists the newest first, by limit, webhook and state', () => {
    const events = new EventStore(10)
    const ids = ['/a', '/b', '/a'].map((webhook, i) => events.add(at(i), { ...done, webhook }).id)
    events.add(at(4), { state: 'failed', webhook: '/a' })
    const list = (filter: object) => events.list({ limit: 10, ...filter }).map(({ id }) => id)
    assert.deepEqual(list({ state: 'done' }), ids.toReversed())
    assert.deepEqual(list({ state: 'done', webhook: '/a' }), [ids[2], ids[0]])
    assert.deepEqual(list({ state: 'done', limit: 1 }), [ids[2]])
    assert.deepEqual(list({ webhook: '/nothing' }), [])
  })

  it('finds the one event that begins as typed, from four digits on', () => {
    const events = new EventStore(10)
    const ids = ['evt_abcd00000000000001', 'evt_abcd00000000000002', 'evt_abce00000000000003']
    for (const id of ids) events.add(at(0), done, id)
    for (const typed of ['evt_abce', 'abce', 'abce00000000000003', ids[2] ?? ''])
      assert.equal(events.resolve(typed), ids[2])
    assert.equal(events.resolve('abcd00000000000001'), ids[0])
    const notFound = (message: RegExp) => ({ code: 'event-not-found', message })
    assert.throws(() => events.resolve('abcd'), notFound(/^several events begin so$/))
    for (const typed of ['', 'abc', 'evt_', 'ABCE', 'ffff', 'evt_abce00000000000003x', '.*'])
      assert.throws(() => events.resolve(typed), notFound(/^there is no such event/))
  })

  it('keeps a retried event until it finishes again', () => {
    const events = new EventStore(2)
    const { id } = events.add(at(0), { state: 'failed' })
    events.update(id, { state: 'queued' })
    for (let i = 0; i < 5; i += 1) events.add(at(1), done)
    assert.equal(events.get(id)?.state, 'queued')
    events.update(id, { state: 'done' })
    assert.deepEqual([events.list({ limit: 10 }).length, events.get(id)?.state], [2, 'done'])
  })

  it('reports whose prompt and answer it removes', () => {
    const events = new EventStore(1)
    const gone: string[] = []
    events.onForget((id) => gone.push(id))
    const first = events.add(at(0), done).id
    assert.deepEqual(gone, [])
    events.add(at(0), done)
    assert.deepEqual(gone, [first])
  })

  it('keeps events of one sort through a flood of another', () => {
    const events = new EventStore(2)
    const ran = events.add(at(0), done).id
    const passed = events.add(at(0), { state: 'filtered' }).id
    for (let i = 0; i < 50; i += 1) events.add(at(1), { state: 'rejected' })
    assert.ok(events.get(ran) && events.get(passed))
    for (let i = 0; i < 50; i += 1) events.add(at(1), { state: 'filtered' })
    assert.ok(events.get(ran))
    assert.equal(events.get(passed), undefined)
    assert.equal(events.list({ limit: 1000 }).length, 5)
  })

  it('keeps what ran through a flood of events that newer ones replaced, and few of their prompts', () => {
    const events = new EventStore(20)
    const forgotten: string[] = []
    events.onForget((id) => forgotten.push(id))
    const run = (state: 'failed' | 'filtered') => {
      const { id } = events.add(at(0), { state: 'queued', webhook: '/a' })
      events.update(id, {}, { prompt: 'x'.repeat(4 * 1024 * 1024) })
      events.update(id, { state })
      return id
    }
    const failed = run('failed')
    const replaced = Array.from({ length: 50 }, () => run('filtered'))
    assert.deepEqual(
      events.failures(10).map(({ id }) => id),
      [failed],
    )
    assert.equal(events.lastRun()?.id, failed)
    assert.equal(events.list({ limit: 1000 }).length, 21)
    const withPrompt = replaced.filter((id) => events.get(id)?.prompt !== undefined)
    assert.ok(withPrompt.length <= 8, String(withPrompt.length))
    const copied = new EventStore(20)
    copied.restore(events.snapshot())
    assert.equal(copied.lastRun()?.id, failed)
    for (let i = 0; i < 30; i += 1) run('failed')
    assert.equal(events.get(failed), undefined)
    assert.equal(new Set(forgotten).size, 81 - 8)
  })

  it('keeps every event that is not finished', () => {
    const events = new EventStore(1)
    const open = events.add(at(0), { state: 'accepted' }).id
    events.update(open, { state: 'queued' }, { prompt: 'p' })
    for (let i = 0; i < 20; i += 1) events.add(at(1), done)
    assert.equal(events.get(open)?.prompt, 'p')
    events.update(open, { state: 'done' }, { result: 'r' })
    events.add(at(2), done)
    assert.equal(events.get(open), undefined)
  })

  it('returns prompt and answer unchanged, and newer ones instead of them', () => {
    const events = new EventStore(10)
    const text = 'p\u00e9\u20ac\ud800'
    for (const state of ['done', 'failed'] as const) {
      const { id } = events.add(at(0), { state: 'running' })
      events.update(id, { state }, { prompt: text, result: '' })
      assert.deepEqual([events.get(id)?.prompt, events.get(id)?.result], [text, ''])
      const copied = new EventStore(10)
      copied.restore(events.snapshot())
      assert.deepEqual(copied.get(id), events.get(id))
      events.update(id, {}, { result: 'another' })
      assert.deepEqual([events.get(id)?.prompt, events.get(id)?.result], [text, 'another'])
    }
  })

  it('shows a prompt with its contexts to one question only, and to another process', () => {
    const events = new EventStore(10)
    const { id } = events.add(at(0), { state: 'queued' })
    const missing = (message: RegExp, store = events) =>
      assert.throws(() => store.agentPrompt(id), { code: 'prompt-not-found', message })
    events.update(id, { state: 'queued' }, { prompt: 'see {{context.diff}}' })
    missing(/has no prompt yet/)
    const context = [{ name: 'diff', bytes: 5, leftOut: null }]
    events.update(id, { promptSize: 9, context }, { asked: 'see +code' })
    assert.equal(events.agentPrompt(id), 'see +code')
    assert.ok(!JSON.stringify([events.get(id), events.list({ limit: 9 })]).includes('+code'))
    const copied = new EventStore(10)
    copied.restore(structuredClone(events.snapshot()))
    assert.equal(copied.agentPrompt(id), 'see +code')
    events.update(id, { state: 'queued' }, { prompt: 'see {{context.diff}}' })
    missing(/is no longer in memory/)
    events.update(id, { state: 'failed', promptSize: undefined, context: undefined })
    missing(/no agent was asked/)
    assert.throws(() => events.agentPrompt('evt_none'), { code: 'event-not-found' })
  })

  it('keeps the newest prompts with contexts within a limit, and every prompt that a retry needs', () => {
    const events = new EventStore(100)
    const whole = '\u20ac'.repeat(1024 * 1024)
    const context = [{ name: 'diff', bytes: 5, leftOut: null }]
    const run = (asked: string) => {
      const { id } = events.add(at(0), { state: 'running' })
      events.update(id, { promptSize: 9, context }, { prompt: 'p' })
      events.update(id, { state: 'done' }, { asked })
      return id
    }
    const ids = [run(whole), run(whole), run('a short one'), run(whole)]
    const has = (id: string) => events.texts(id).asked !== undefined
    assert.deepEqual(ids.map(has), [false, true, true, true])
    assert.ok(!has(run(whole + whole + whole)))
    assert.deepEqual(ids.map(has), [false, true, true, true])
    assert.ok(ids.every((id) => events.get(id)?.prompt === 'p'))
    const [, second = ''] = ids
    events.update(second, {}, { asked: whole })
    assert.deepEqual(ids.map(has), [false, true, true, true])
    run(whole)
    // The second was made again, so the third is the oldest, and is too short to make room.
    assert.deepEqual(ids.map(has), [false, true, false, false])
  })

  it('removes the oldest prompts and answers over the limit, and keeps the events', () => {
    const events = new EventStore(100)
    const text = 'x'.repeat(4 * 1024 * 1024)
    const ids = Array.from({ length: 12 }, (_, i) => {
      const { id } = events.add(at(i), { state: 'accepted' })
      events.update(id, { state: 'running' }, { prompt: text })
      events.update(id, { state: 'done' })
      return id
    })
    const kept = ids.map((id) => events.get(id)?.prompt !== undefined)
    assert.equal(events.list({ limit: 100 }).length, 12)
    assert.deepEqual(kept.slice(0, 4), [false, false, false, false])
    assert.deepEqual(kept.slice(-7), [true, true, true, true, true, true, true])
  })

  it('removes each prompt once, and none of an event that runs again', () => {
    const events = new EventStore(100)
    const forgotten: string[] = []
    events.onForget((id) => forgotten.push(id))
    const text = 'x'.repeat(8 * 1024 * 1024)
    const run = () => {
      const { id } = events.add(at(0), { state: 'running' })
      events.update(id, { state: 'failed' }, { prompt: text })
      return id
    }
    const [again, ...others] = [run(), run(), run(), run()]
    events.update(again, { state: 'queued' })
    const more = [run(), run()]
    assert.deepEqual(forgotten, others.slice(0, 2))
    assert.deepEqual(
      [again, ...more].map((id) => events.get(id)?.prompt?.length),
      [text.length, text.length, text.length],
    )
  })

  it('lists the newest of one kind, however many of others there are', () => {
    const events = new EventStore(100)
    const ids = Array.from({ length: 30 }, (_, i) => {
      events.add(at(i), { kind: 'oauth', state: 'done' })
      return events.add(at(i), done).id
    })
    assert.deepEqual(
      events.list({ limit: 3, kind: 'webhook' }).map(({ id }) => id),
      ids.slice(-3).toReversed(),
    )
  })

  it('lists the last failures, however many events came since', () => {
    const events = new EventStore(20)
    const run = (state: 'done' | 'failed' | 'dropped') => {
      const { id } = events.add(at(0), { state: 'queued' })
      events.update(id, { state })
      return id
    }
    const [old, again, dropped, last] = [
      run('failed'),
      run('failed'),
      run('dropped'),
      run('failed'),
    ]
    events.add(at(0), { kind: 'oauth', state: 'failed' })
    for (let i = 0; i < 15; i += 1) run('done')
    for (let i = 0; i < 50; i += 1) events.add(at(1), { state: 'rejected' })
    const failures = () => events.failures(3).map(({ id }) => id)
    assert.deepEqual(failures(), [last, dropped, again])
    assert.equal(events.lastRun()?.state, 'done')
    events.update(again, { state: 'queued' })
    assert.deepEqual(failures(), [last, dropped, old])
    events.update(again, { state: 'failed' })
    assert.deepEqual(failures(), [again, last, dropped])
    assert.equal(events.lastRun()?.id, again)

    const successor = new EventStore(20)
    successor.restore(events.snapshot())
    assert.deepEqual(
      successor.failures(3).map(({ id }) => id),
      [again, last, dropped],
    )
    assert.equal(successor.lastRun()?.id, again)
    for (let i = 0; i < 19; i += 1) run('done')
    assert.deepEqual(failures(), [again])
    run('done')
    assert.deepEqual(failures(), [])
  })

  it('calls its listeners at each change, in order, until they unsubscribe', () => {
    const events = new EventStore(10)
    const seen: string[] = []
    const leave = events.follow(({ sequence, record }) => seen.push(`${sequence} ${record.state}`))
    const { id } = events.add(at(0), { state: 'accepted' })
    events.update(id, { state: 'queued' })
    leave()
    events.update(id, { state: 'done' })
    assert.deepEqual(seen, ['1 accepted', '2 queued'])
  })

  it('replays missed changes, each with its record of that time', () => {
    const events = new EventStore(10)
    events.keepChanges()
    const { id } = events.add(at(0), { state: 'accepted' })
    events.update(id, { state: 'queued' })
    events.update(id, { state: 'done' })
    const states = (after: number) => events.since(after).map(({ record }) => record.state)
    assert.deepEqual(states(0), ['accepted', 'queued', 'done'])
    assert.deepEqual(states(2), ['done'])
    assert.deepEqual(states(3), [])
  })

  it('replays the last change of each event from before the first client', () => {
    const events = new EventStore(10)
    const [first, second] = [0, 1].map((i) => events.add(at(i), { state: 'accepted' }).id)
    events.update(first ?? '', { state: 'failed' })
    const known = (store: typeof events, after: number) =>
      store.since(after).map(({ sequence, record }) => `${sequence} ${record.id} ${record.state}`)
    assert.deepEqual(known(events, 0), [])
    events.keepChanges()
    const last = [`2 ${second} accepted`, `3 ${first} failed`]
    assert.deepEqual(known(events, 0), last)
    assert.deepEqual(known(events, 2), last.slice(1))
    events.update(first ?? '', { state: 'queued' })
    events.keepChanges()
    const later = [...last, `4 ${first} queued`]
    assert.deepEqual(known(events, 0), later)
    const successor = new EventStore(10)
    successor.restore(events.snapshot())
    assert.deepEqual(known(successor, 0), later)
  })

  it('remembers a bounded number of changes, the newest', () => {
    const events = new EventStore(10)
    events.keepChanges()
    for (let i = 0; i < 5000; i += 1) events.add(at(0), done)
    const known = events.since(0)
    assert.ok(known.length <= 2000)
    assert.equal(known.at(-1)?.sequence, 5000)
  })

  it('replays at most 250 events from before the first client', () => {
    const events = new EventStore(5000)
    for (let i = 0; i < 3000; i += 1) events.add(at(0), done)
    events.keepChanges()
    const missed = events.since(0).map(({ sequence }) => sequence)
    assert.deepEqual([missed.length, missed[0], missed.at(-1)], [250, 2751, 3000])
  })

  it('ignores a change of an unknown event', () => {
    const events = new EventStore(10)
    events.update('evt_gone', { state: 'done' })
    assert.equal(events.get('evt_gone'), undefined)
  })
})
