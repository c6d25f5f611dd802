import assert from 'node:assert/strict'
import { appendFile, chmod, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DayJournal, toDigest } from '../../../daemon/util/day-journal.ts'
import { checkEventName } from '../../../daemon/webhook/event-name.ts'
import { SeenDeliveries } from '../../../daemon/webhook/dedupe.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('what a day of deliveries leaves on the disk', () => {
  let path: string
  const warnings: object[] = []
  const log = { warn: (details: object) => void warnings.push(details) }
  const open = async (): Promise<DayJournal> => {
    const journal = new DayJournal(path, log)
    await journal.load()
    return journal
  }
  const written = async () => new Promise((resolve) => setImmediate(resolve))
  const [a, b, rule] = [toDigest('a'), toDigest('b'), toDigest('/webhook/a')]

  beforeEach(async () => {
    path = join(await temporaryFolder(), 'last-day')
    warnings.length = 0
  })

  it('is what a later start finds, without what was forgotten or given back', async () => {
    const journal = await open()
    journal.remember(a, 'evt_1')
    journal.remember(b, 'evt_2')
    journal.forget(a, 'evt_other')
    journal.forget(b, 'evt_2')
    for (let run = 0; run < 3; run += 1) journal.noteRun(rule)
    journal.giveBackRun(rule)
    await written()
    const later = await open()
    assert.deepEqual([later.find(a), later.find(b)], ['evt_1', undefined])
    assert.equal(later.runsOf(rule).length, 2)
  })

  it('ends after a day, and leaves out lines that were cut off', async () => {
    const [old, now] = [Date.now() - 25 * 3_600_000, Date.now()]
    const lines = [
      `seen ${a} ${old} evt_1 .`,
      `seen ${b} ${now} evt_2`,
      `run ${rule} ${old} .`,
      `run ${rule} ${now} .`,
      `run ${rule} ${now + 1e9} .`,
      `run ${rule} 17`,
    ]
    await writeFile(path, lines.join('\n'), { mode: 0o600 })
    const journal = await open()
    assert.deepEqual([journal.find(a), journal.find(b)], [undefined, undefined])
    // A clock was set back: it is not counted for longer than a day.
    assert.equal(journal.runsOf(rule).length, 2)
    assert.ok(journal.runsOf(rule).every((ms) => ms <= Date.now()))
  })

  it('does not grow beyond what it needs', async () => {
    await writeFile(path, `forgot ${a} .\n`.repeat(6000), { mode: 0o600 })
    const journal = await open()
    journal.noteRun(rule)
    assert.match(await readFile(path, 'utf8'), /^run \S+ \d+ \.\n$/)
  })

  it('stops no event where it cannot be read or written, and the log says so', async () => {
    await appendFile(path, 'x')
    await chmod(path, 0o644)
    const journal = await open()
    assert.deepEqual(warnings, [{ code: 'home-insecure' }])
    const full = new DayJournal(join(path, 'no-folder'), log)
    for (let runs = 0; runs < 3; runs += 1) full.noteRun(rule)
    assert.equal(full.runsOf(rule).length, 3)
    // One line, not one for each delivery.
    assert.deepEqual(warnings.slice(1), [{ code: 'home-unusable' }])
    assert.equal(journal.find(a), undefined)
  })

  it('refuses signed bytes under another event name, without their name', async () => {
    const check = async (event: string) => {
      const delivery = {
        webhook: { path: '/a', scheme: { name: 'gitea' }, eventHeaders: ['x-gitea-event'] },
        headers: { 'x-gitea-event': [event] },
        body: { mac: Buffer.from('a MAC') },
        payload: {},
      }
      checkEventName(delivery, new SeenDeliveries(10, await open()), 0)
      await written()
    }
    await check('push')
    await check('push')
    await assert.rejects(check('issues'), {
      code: 'event-mismatch',
      localDetail: /^these signed bytes came before as another event, and now as issues: /,
    })
    assert.doesNotMatch(await readFile(path, 'utf8'), /push/)
  })

  it('lets deliveries be known by either of their hashes', async () => {
    const key = { webhook: '/a', hash: 'id', bodyHash: 'body' }
    const deliveries = new SeenDeliveries(10, await open())
    deliveries.settle(key, 'evt_1')
    await written()
    const later = new SeenDeliveries(10, await open())
    assert.equal(later.eventFor({ webhook: '/a', hash: 'body' }, 0), 'evt_1')
    assert.equal(later.eventFor({ webhook: '/b', hash: 'body' }, 0), undefined)
    later.forget(key, 'evt_1')
    assert.equal(later.eventFor(key, 0), undefined)
  })
})
