import assert from 'node:assert/strict'
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { History } from '../../../daemon/history/history.ts'
import { createHistoryKey } from '../../../daemon/history/history-key.ts'

const day = 86_400_000

describe('the history', () => {
  let root: string
  let warnings: object[]
  let settings: { keep: number; contents: 'none' | 'sealed' }
  let isReplaced = false

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'history-'))
    settings = { keep: 30 * day, contents: 'none' }
    warnings = []
    isReplaced = false
  })
  afterEach(async () => rm(root, { recursive: true }))

  const open = (folder = join(root, 'history'), keep = 200) => {
    const events = new EventStore(keep)
    const history = new History({
      folder,
      events,
      settings: () => settings,
      findKey: createHistoryKey(
        root,
        () => ({ isWanted: false, key: undefined }),
        () => settings.contents === 'sealed',
      ),
      isReplaced: () => isReplaced,
      log: { warn: (fields: object) => void warnings.push(fields) } as never,
    })
    return { events, history }
  }
  const add = (events: EventStore, state: 'done' | 'failed' = 'done', webhook = '/a') => {
    const subject = { key: 'acme/shop#12', title: 'title-canary', kind: 'pull request' }
    const { id } = events.add(new Date(), { state: 'running', webhook, subject, detail: 'canary' })
    events.update(id, { state, resultPreview: 'canary' }, { prompt: 'canary', result: 'canary' })
    return id
  }
  const since = new Date(Date.now() - 7 * day)
  const all = { since, limit: 1000 }
  const files = async () => {
    const folder = join(root, 'history')
    const names = await readdir(folder).catch(() => [])
    return Promise.all(names.map(async (name) => readFile(join(folder, name), 'utf8')))
  }

  it('keeps names and codes, no text, for another process', async () => {
    const { events, history } = open()
    const id = add(events)
    await history.settled()
    assert.doesNotMatch((await files()).join(), /canary|acme/)
    const { events: past, damaged } = await open().history.list(all)
    assert.equal(damaged, 0)
    assert.deepEqual(
      past.map((event) => [event.id, event.state, event.past?.subjectKind, event.past?.texts]),
      [[id, 'done', 'pull request', 'none']],
    )
    if (process.platform !== 'win32') {
      const folder = join(root, 'history')
      assert.equal((await stat(folder)).mode & 0o777, 0o700)
      const [name = ''] = await readdir(folder)
      assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600)
    }
  })

  it('seals texts, opens them with its key, and forgets them', async () => {
    settings.contents = 'sealed'
    const { events, history } = open()
    const id = add(events)
    await history.settled()
    assert.doesNotMatch((await files()).join(), /canary|acme/)
    const [past] = (await open().history.list(all)).events
    assert.deepEqual([past?.result, past?.subject?.title], ['canary', 'title-canary'])
    const key = await readFile(join(root, 'history.key'))
    await rm(join(root, 'history.key'))
    settings.contents = 'none'
    assert.equal((await open().history.list(all)).events[0]?.past?.texts, 'unreadable')
    await writeFile(join(root, 'history.key'), key)
    await history.forget(id)
    assert.doesNotMatch((await files()).join(), /sealed/)
    assert.equal((await open().history.list(all)).events[0]?.past?.texts, 'none')
  })

  it('filters, counts damaged lines, and has an event that ran again once', async () => {
    const { events, history } = open()
    const id = add(events, 'failed')
    add(events, 'done', '/b')
    await history.settled()
    events.update(id, { state: 'running' })
    events.update(id, { state: 'done' })
    await history.settled()
    const [name = ''] = await readdir(join(root, 'history'))
    await appendFile(join(root, 'history', name), '{"id":"evt_')
    add(events, 'failed', '/c')
    const list = await history.list(all)
    assert.equal(list.damaged, 1)
    assert.equal(list.events.length, 3)
    const states = (await history.list({ ...all, webhook: '/a' })).events.map(({ state }) => state)
    assert.deepEqual(states, ['done'])
    assert.equal((await history.list({ ...all, state: 'failed' })).events.length, 1)
  })

  it('writes nothing when it is off or replaced, and removes what is too old', async () => {
    const { events, history } = open()
    isReplaced = true
    add(events)
    await history.settled()
    assert.deepEqual(await files(), [])
    isReplaced = false
    add(events)
    await history.settled()
    await writeFile(join(root, 'history', '2020-01-01.jsonl'), '{}\n')
    await history.configured()
    assert.equal((await files()).length, 1)
    settings.keep = 0
    await history.configured()
    add(events)
    await history.settled()
    assert.deepEqual(await files(), [])
  })

  it('writes what left the memory before its batch', async () => {
    const { events, history } = open(undefined, 1)
    for (let count = 0; count < 5; count += 1) add(events)
    assert.equal((await history.list(all)).events.length, 5)
  })

  it('tells once that it cannot be written', async () => {
    await writeFile(join(root, 'taken'), '')
    const { events, history } = open(join(root, 'taken'))
    add(events)
    await history.settled()
    await history.settled()
    assert.equal(warnings.length, 1)
  })
})
