import assert from 'node:assert/strict'
import {
  appendFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { EventState, PastEvent } from '../../../shared/api/api.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { History } from '../../../daemon/history/history.ts'
import { createHistoryKey } from '../../../daemon/history/history-key.ts'
import { parseKey, type SealKey } from '../../../daemon/oauth/tokens/sealed-file.ts'

const dayMs = 86_400_000

describe('the history', () => {
  let root: string
  let warnings: object[]
  let settings: { keep: number; contents: 'none' | 'sealed' }
  let keychain: { isWanted: boolean; key: SealKey | undefined }

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'history-'))
    settings = { keep: 30 * dayMs, contents: 'none' }
    keychain = { isWanted: false, key: undefined }
    warnings = []
  })
  afterEach(async () => rm(root, { recursive: true }))

  const open = (folder = join(root, 'history'), keep = 200) => {
    const events = new EventStore(keep)
    const process = { isHandingOver: false }
    const history = new History({
      folder,
      events,
      settings: () => settings,
      key: createHistoryKey(root, () => keychain),
      isHandingOver: () => process.isHandingOver,
      log: { warn: (fields: object) => void warnings.push(fields) },
    })
    return { events, history, process }
  }
  type Given = { state?: EventState; webhook?: string; at?: Date; title?: string }
  const add = (
    events: EventStore,
    { state = 'done', webhook = '/a', at = new Date(), title = 'title-canary' }: Given = {},
  ) => {
    const subject = { key: 'acme/shop#12', title, kind: 'pull request' }
    const { id } = events.add(at, { state: 'running', webhook, subject, detail: 'canary' })
    events.update(id, { state, resultPreview: 'canary' }, { prompt: 'canary', result: 'canary' })
    return id
  }
  const all = { since: new Date(Date.now() - 7 * dayMs), limit: 1000 }
  const fileNames = async () => readdir(join(root, 'history')).catch(() => [])
  const text = async () => {
    const files = (await fileNames()).map((name) => readFile(join(root, 'history', name), 'utf8'))
    return (await Promise.all(files)).join('')
  }
  const ids = (events: readonly PastEvent[]) => events.map(({ id }) => id)

  it('keeps names and codes, no text, for another process', async () => {
    const { events, history } = open()
    const id = add(events)
    await history.settled()
    assert.doesNotMatch(await text(), /canary|acme/)
    const { events: past, damaged } = await open().history.list(all)
    assert.equal(damaged, 0)
    assert.deepEqual(
      past.map((event) => [event.id, event.state, event.past?.subjectKind, event.past?.texts]),
      [[id, 'done', 'pull request', 'none']],
    )
    assert.equal((await open().history.find(id))?.prompt, undefined)
    if (process.platform !== 'win32') {
      const folder = join(root, 'history')
      assert.equal((await stat(folder)).mode & 0o777, 0o700)
      const [name = ''] = await fileNames()
      assert.equal((await stat(join(folder, name))).mode & 0o777, 0o600)
    }
  })

  it('keeps no refused delivery, no login, and nothing that has not ended', async () => {
    const { events, history } = open()
    add(events, { state: 'rejected' })
    add(events, { state: 'waiting' })
    events.add(new Date(), { kind: 'oauth', state: 'done' })
    await history.settled()
    assert.deepEqual(await fileNames(), [])
  })

  it('seals texts, opens them with its key, and removes an event whole', async () => {
    settings.contents = 'sealed'
    const { events, history } = open()
    const id = add(events)
    const other = add(events)
    await history.settled()
    assert.doesNotMatch(await text(), /canary|acme/)
    if (process.platform !== 'win32')
      assert.equal((await stat(join(root, 'history.key'))).mode & 0o777, 0o600)
    const past = await open().history.find(id.slice(4, 12))
    assert.deepEqual([past?.id, past?.result, past?.subject?.title], [id, 'canary', 'title-canary'])
    const [listed] = (await open().history.list(all)).events
    assert.equal(listed?.subject?.title, 'title-canary')
    assert.equal(listed.result, undefined)
    const size = (await text()).length
    assert.equal((await history.forget(id))?.subject, undefined)
    assert.ok(!(await text()).includes(id))
    assert.equal((await text()).length, size)
    assert.deepEqual(ids((await history.list(all)).events), [other])
    assert.equal(await history.forget(id), undefined)
  })

  it('says which texts a lost key has taken, and seals with a new one', async () => {
    settings.contents = 'sealed'
    const { events, history } = open()
    const id = add(events)
    await history.settled()
    await rm(join(root, 'history.key'))
    const later = add(events)
    const { events: past } = await history.list(all)
    assert.deepEqual(
      new Map(past.map((event) => [event.id, event.past?.texts])),
      new Map([
        [id, 'unreadable'],
        [later, 'kept'],
      ]),
    )
    assert.equal((await history.find(id))?.result, undefined)
    await writeFile(join(root, 'history.key'), 'damaged')
    assert.equal((await history.find(later))?.past?.texts, 'unreadable')
  })

  it('makes no other key while its own cannot be read', async () => {
    await mkdir(join(root, 'history.key'))
    const key = createHistoryKey(root, () => keychain)
    assert.equal(await key.findOrMake(), undefined)
    assert.ok((await stat(join(root, 'history.key'))).isDirectory())
  })

  it('seals with the key of the keychain, and no text before it is there', async () => {
    settings.contents = 'sealed'
    keychain.isWanted = true
    const { events, history } = open()
    const early = add(events)
    await history.settled()
    assert.doesNotMatch(await text(), /head|canary/)
    keychain.key = parseKey(Buffer.alloc(32, 7).toString('base64'))
    const late = add(events)
    assert.equal((await history.find(early))?.past?.texts, 'none')
    assert.equal((await history.find(late))?.result, 'canary')
    await assert.rejects(stat(join(root, 'history.key')))
    keychain.key = parseKey(Buffer.alloc(32, 8).toString('base64'))
    assert.equal((await history.find(late))?.past?.texts, 'unreadable')
  })

  it('filters, and has an event that ran again once, as it is now', async () => {
    settings.contents = 'sealed'
    const { events, history } = open()
    const id = add(events, { state: 'failed' })
    const b = add(events, { webhook: '/b', title: 'Fix the “Total” <b>' })
    await history.settled()
    events.update(id, { state: 'running' })
    events.update(id, { state: 'done' })
    const c = add(events, { state: 'failed', webhook: '/c' })
    const find = async (filter: object) => ids((await history.list({ ...all, ...filter })).events)
    assert.equal((await find({})).length, 3)
    assert.deepEqual(await find({ webhook: '/a' }), [id])
    assert.deepEqual(await find({ state: 'failed' }), [c])
    assert.deepEqual(await find({ webhook: '/a', state: 'failed' }), [])
    assert.deepEqual(await find({ text: 'the “TOTAL” <' }), [b])
    assert.deepEqual(await find({ text: '/C' }), [c])
    assert.deepEqual(await find({ text: 'durations' }), [])
    assert.deepEqual(await find({ until: all.since }), [])
    settings.contents = 'none'
    const plain = add(events, { webhook: '/plain' })
    assert.deepEqual(await find({ text: 'PLAIN' }), [plain])
    assert.equal((await find({ text: 'pull request' })).length, 4)
  })

  it('counts lines that are damaged or cut off, and goes on after them', async () => {
    const { events, history } = open()
    const id = add(events)
    await history.settled()
    const [name = ''] = await fileNames()
    const file = join(root, 'history', name)
    const line = (await readFile(file, 'utf8')).trim()
    await appendFile(file, `\0\0garbage\n{}\n${line.replace('"done"', '"gone"')}\n`)
    await appendFile(file, line.slice(0, 200))
    const later = add(events)
    const list = await history.list(all)
    assert.deepEqual(ids(list.events), [later])
    assert.equal(list.damaged, 4)
    assert.equal((await history.find(later))?.state, 'done')
    assert.ok(await history.forget(later))
    assert.ok((await text()).includes(id))
  })

  it('lists in pages by a cursor, across days, whatever the clock did', async () => {
    const { events, history } = open(undefined, 1)
    const hoursAgo = [1, 3, 2, 30, 50, 49, -40]
    for (const hours of hoursAgo)
      add(events, { webhook: `/${hours}`, at: new Date(Date.now() - hours * 3_600_000) })
    await history.settled()
    assert.ok((await fileNames()).length >= 4)
    const seen: (string | null)[] = []
    for (let cursor: string | undefined, pages = 0; pages < 9; pages += 1) {
      const page = await history.list({ limit: 2, ...(cursor !== undefined && { cursor }) })
      seen.push(...page.events.map(({ webhook }) => webhook))
      if (page.cursor === undefined) break
      cursor = page.cursor
    }
    assert.deepEqual(seen, ['/-40', '/1', '/2', '/3', '/30', '/49', '/50'])
    const day = { since: new Date(Date.now() - dayMs), until: new Date(), limit: 9 }
    assert.equal((await history.list(day)).events.length, 3)
  })

  it('lists what is in memory and what is not together, in one order', async () => {
    const { events, history } = open(undefined, 2)
    for (let count = 0; count < 6; count += 1)
      add(events, { webhook: `/${count}`, at: new Date(Date.now() - 1000 - count * 1000) })
    await history.settled()
    const running = events.add(new Date(), { state: 'running', webhook: '/now' })
    const first = await history.listAll({ limit: 3 })
    assert.deepEqual(
      first.events.map(({ webhook, past }) => [webhook, past !== undefined]),
      [
        ['/now', false],
        ['/0', true],
        ['/1', true],
      ],
    )
    const rest = await history.listAll({ limit: 9, cursor: first.cursor ?? '' })
    assert.deepEqual(
      rest.events.map(({ webhook, past }) => [webhook, past !== undefined]),
      [
        ['/2', true],
        ['/3', true],
        ['/4', false],
        ['/5', false],
      ],
    )
    assert.equal(rest.cursor, undefined)
    assert.deepEqual(ids((await history.listAll({ limit: 9, text: '/NOW' })).events), [running.id])
  })

  it('writes nothing when it is off, and removes what is too old', async () => {
    const { events, history } = open()
    add(events)
    await history.settled()
    await writeFile(join(root, 'history', '2020-01-01.jsonl'), '{}\n')
    await history.configured()
    assert.equal((await fileNames()).length, 1)
    settings.keep = 0
    await history.configured()
    add(events)
    await history.settled()
    assert.deepEqual(await fileNames(), [])
  })

  it('has one writer over a restart, and a forgotten event does not come back', async () => {
    settings.contents = 'sealed'
    const old = open()
    const written = add(old.events)
    await old.history.settled()
    const [unwritten, forgotten] = [add(old.events), add(old.events)]
    old.process.isHandingOver = true
    await old.history.paused()
    const next = open()
    next.events.restore(old.events.snapshot())
    next.history.restore(old.history.unwritten())
    const late = add(old.events)
    const record = old.events.record(late)
    assert.ok(record)
    next.events.put(record, { prompt: 'canary' })
    next.events.forget(forgotten)
    await next.history.forget(forgotten)
    await next.history.forget(written)
    // Whatever it still has, it does not write.
    await old.history.settled()
    const { events } = await next.history.list(all)
    assert.deepEqual(new Set(ids(events)), new Set([unwritten, late]))
    for (const id of [unwritten, late])
      assert.equal((await text()).split(`{"id":"${id}"`).length, 2)
    assert.ok(!(await text()).includes(forgotten))
    await next.history.forgetAll()
    await old.history.settled()
    assert.deepEqual(await fileNames(), [])
    await assert.rejects(stat(join(root, 'history.key')))
  })

  it('writes after a restart that failed', async () => {
    const { events, history, process } = open()
    process.isHandingOver = true
    const id = add(events)
    await history.settled()
    assert.deepEqual(await fileNames(), [])
    process.isHandingOver = false
    assert.deepEqual(ids((await history.list(all)).events), [id])
  })

  it('tells once that it cannot be written, and writes when it can', async () => {
    const folder = join(root, 'history')
    await writeFile(folder, '')
    const { events, history } = open()
    const [id, forgotten] = [add(events), add(events)]
    await history.settled()
    await history.settled()
    assert.equal(warnings.length, 1)
    events.forget(forgotten)
    await assert.rejects(history.forget(forgotten), { code: 'home-unusable' })
    await rm(folder)
    assert.deepEqual(ids((await history.list(all)).events), [id])
  })

  it('follows no link', async () => {
    const { events, history } = open()
    add(events)
    await history.settled()
    const [name = ''] = await fileNames()
    const file = join(root, 'history', name)
    await rm(file)
    await writeFile(join(root, 'mine'), 'mine')
    await symlink(join(root, 'mine'), file)
    add(events)
    await history.settled()
    assert.equal(await readFile(join(root, 'mine'), 'utf8'), 'mine')
    assert.equal(warnings.length, 1)
    await assert.rejects(history.list(all), { code: 'home-unusable' })
  })
})
