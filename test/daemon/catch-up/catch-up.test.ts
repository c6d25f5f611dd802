import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Journal } from '../../../daemon/catch-up/journal.ts'
import { CaughtUp } from '../../support/daemon/caught-up.ts'
import { type HookServer, startHookServer } from '../../support/servers/hook-api.ts'
import { json } from '../../support/servers/target-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const minuteMs = 60_000
const webhooks = `webhooks:
  - path: /github
    agent: echo
    prompt_template: x
    signature_scheme: github
    secret_env: SECRET
    source: { provider: github, repository: acme/door, hook_id: 1000 }
`
const hook = { provider: 'github', repository: 'acme/door', hookId: 1000 } as const

describe('when deliveries are caught up', () => {
  let server: HookServer
  let own: CaughtUp

  beforeEach(async () => {
    server = await startHookServer()
    server.addHook('acme/door', 'https://gateway.example/github')
    own = await CaughtUp.start(webhooks, `targets: { github: { api_url: "${server.apiUrl}" } }\n`)
  })
  afterEach(() => {
    own.stop.abort()
    server.close()
  })

  const lists = () => server.requests.filter(({ path }) => path.includes('/deliveries?')).length

  /** How often the list is read when this much time passes, in ticks. */
  const readsIn = async (ms: number): Promise<number> => {
    const before = lists()
    await own.pass(ms)
    return lists() - before
  }

  it('reads each hour, and after sleep at once and once more for what GitHub lists late', async () => {
    await readsIn(60 * minuteMs)
    assert.equal(await readsIn(59 * minuteMs), 0)
    own.nowMs += 8 * 60 * minuteMs
    assert.equal(await readsIn(minuteMs / 2), 1)
    assert.equal(await readsIn(4 * minuteMs), 0)
    assert.equal(await readsIn(minuteMs), 1)
    assert.equal(await readsIn(30 * minuteMs), 0)
  })

  it('reads when the network is back', async () => {
    await readsIn(60 * minuteMs)
    own.isOnline = false
    assert.equal(await readsIn(5 * minuteMs), 0)
    own.isOnline = true
    assert.equal(await readsIn(minuteMs / 2), 1)
  })

  it('tries a sender that fails again after growing pauses, and as late as it asks', async () => {
    await readsIn(59 * minuteMs)
    const hour = Array.from({ length: 100 }, () => json(500, {}))
    server.next(...hour)
    const tries = await readsIn(60 * minuteMs)
    assert.ok(tries >= 5 && tries <= 9, String(tries))
    server.next(...hour)
    assert.match(
      own.problems()[0] ?? '',
      /the deliveries of acme\/door cannot be read: GitHub answered 500/,
    )
  })

  it('polls at its pace, more slowly in quiet times, and asks only for what is new', async () => {
    await readsIn(60 * minuteMs)
    own.definitions = webhooks.replace('1000 }', '1000, mode: poll }')
    const [made] = server.hooks
    assert.ok(made)
    await own.catchUp.list(true)
    assert.equal(await readsIn(5 * minuteMs), 5)
    const guid = server.miss(made, { payload: {} })
    await readsIn(minuteMs)
    assert.deepEqual(
      [own.accepted.map(({ rawHeaders }) => rawHeaders[3]), own.problems()],
      [[guid], []],
    )
    const quiet = await readsIn(60 * minuteMs)
    assert.ok(quiet >= 12 && quiet <= 30, String(quiet))
    const last = server.requests.findLast(({ path }) => path.includes('/deliveries?'))
    assert.match(String(last?.headers['if-none-match']), /^"/)
  })

  it('polls at its time, also between two looks at the clock', async () => {
    own.definitions = webhooks.replace('1000 }', '1000, mode: poll, every: 45s }')
    await own.catchUp.list(true)
    const [made] = server.hooks
    assert.ok(made)
    const guid = server.miss(made, { payload: {} })
    const accepted = new Promise((resolve) =>
      own.events.follow(({ record }) => resolve(record.deliveryId)),
    )
    own.nowMs += 44_950
    await own.catchUp.tick()
    own.nowMs += 100
    assert.equal(await accepted, guid)
  })

  it('finds what is missed before the first reading that succeeds', async () => {
    const [made] = server.hooks
    assert.ok(made)
    server.next(json(500, {}))
    const gateway = `targets: { github: { api_url: "${server.apiUrl}" } }\n`
    const fresh = await CaughtUp.start(webhooks, gateway)
    assert.match(fresh.problems()[0] ?? '', /cannot be read: GitHub answered 500/)
    const guid = server.miss(made, { payload: {} })
    fresh.nowMs += minuteMs
    const [read] = await fresh.catchUp.list(true)
    fresh.stop.abort()
    assert.deepEqual(
      read?.waiting.map(({ deliveryId }) => deliveryId),
      [guid],
    )
  })

  it('reads 2,500 missed deliveries by page, and says how many there are', async () => {
    const [made] = server.hooks
    assert.ok(made)
    for (let count = 0; count < 2500; count += 1) server.miss(made, { payload: { count } })
    const [missed] = await own.catchUp.list(true)
    assert.equal(missed?.waiting.length, 2500)
    assert.match(own.problems()[0] ?? '', /^2500 missed deliveries of acme\/door/)
    assert.deepEqual(await own.catchUp.decide({ do: 'skip' }), {
      run: 0,
      skipped: 2500,
      refused: 0,
      waiting: 0,
    })
  })

  it('keeps what was written before a line that was cut off, and what comes after it', async () => {
    const file = join(await temporaryFolder(), 'journal')
    const first = await Journal.open(file)
    first.moveCursor(hook, 7)
    first.finish(hook, ['a', 'b'])
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.slice(0, -20), { mode: 0o600 })
    const second = await Journal.open(file)
    second.finish(hook, ['c'])
    const third = await Journal.open(file)
    assert.equal(third.cursor(hook), 7)
    assert.deepEqual(
      ['a', 'b', 'c'].map((id) => third.isFinished(hook, id)),
      [true, false, true],
    )
    // However long it is used, it does not grow beyond what is needed.
    for (let count = 0; count < 30; count += 1)
      third.finish(
        hook,
        Array.from({ length: 1000 }, (_, index) => `${count} ${index}`),
      )
    const size = (await readFile(file, 'utf8')).split('\n').length
    assert.ok(size <= 25_100, String(size))
    const fourth = await Journal.open(file)
    assert.deepEqual(
      [fourth.cursor(hook), fourth.isFinished(hook, '29 999'), fourth.isFinished(hook, '0 0')],
      [7, true, false],
    )
  })
})
