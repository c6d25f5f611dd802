import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CatchUp } from '../../../daemon/catch-up/catch-up.ts'
import { Journal } from '../../../daemon/catch-up/journal.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { openSource } from '../../../daemon/sources/hooks.ts'
import { webhooksByPath } from '../../../daemon/webhook/compiled-webhook.ts'
import { check } from '../../support/daemon/config-files.ts'
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
  let folder: string
  let nowMs: number
  let isOnline: boolean
  let catchUp: CatchUp
  let stop: AbortController
  let definitions: string
  let accepted: string[]

  beforeEach(async () => {
    server = await startHookServer()
    server.addHook('acme/door', 'https://gateway.example/github')
    folder = await temporaryFolder()
    nowMs = Date.now()
    definitions = webhooks
    accepted = []
    isOnline = true
    stop = new AbortController()
    const env = { SECRET: 'a secret' }
    const open = (text: string) =>
      check({
        webhooks: text,
        gateway: `targets: { github: { api_url: "${server.apiUrl}" } }\n`,
      })
    const access = async () => ({
      provider: 'github',
      accessToken: 'gho_1',
      tokenType: 'bearer',
      expiresAt: null,
      scopes: [],
    })
    catchUp = new CatchUp({
      journalFile: join(folder, 'catch-up'),
      current: () => ({ byPath: webhooksByPath(open(definitions), env) }),
      open: (provider) => openSource(provider, { config: open(definitions), env }, access),
      accept: async ({ rawHeaders }) => accepted.push(rawHeaders[3] ?? ''),
      events: new EventStore(10),
      log: { warn: () => undefined },
      isServing: () => true,
      signal: stop.signal,
      now: () => nowMs,
      isOnline: () => isOnline,
    })
    await catchUp.start()
    await catchUp.tick()
  })
  afterEach(() => {
    stop.abort()
    server.close()
  })

  /** How often the list is read when this much time passes, in ticks. */
  const readsIn = async (ms: number): Promise<number> => {
    const before = server.requests.length
    for (let left = ms; left > 0; left -= minuteMs / 2) {
      nowMs += minuteMs / 2
      await catchUp.tick()
    }
    return server.requests.length - before
  }

  it('reads each hour, and after sleep at once and once more for what GitHub lists late', async () => {
    await readsIn(60 * minuteMs)
    assert.equal(await readsIn(59 * minuteMs), 0)
    nowMs += 8 * 60 * minuteMs
    assert.equal(await readsIn(minuteMs / 2), 1)
    assert.equal(await readsIn(4 * minuteMs), 0)
    assert.equal(await readsIn(minuteMs), 1)
    assert.equal(await readsIn(30 * minuteMs), 0)
  })

  it('reads when the network is back', async () => {
    await readsIn(60 * minuteMs)
    isOnline = false
    assert.equal(await readsIn(5 * minuteMs), 0)
    isOnline = true
    assert.equal(await readsIn(minuteMs / 2), 1)
  })

  it('tries a sender that fails again after growing pauses, and as late as it asks', async () => {
    await readsIn(59 * minuteMs)
    const hour = Array.from({ length: 100 }, () => json(500, {}))
    server.next(...hour)
    const tries = await readsIn(60 * minuteMs)
    assert.ok(tries >= 5 && tries <= 9, String(tries))
    server.next(...hour)
    const [problem] = catchUp.problems()
    assert.match(
      problem?.detail ?? '',
      /the deliveries of acme\/door cannot be read: GitHub answered 500/,
    )
  })

  it('polls at its pace, more slowly in quiet times, and asks only for what is new', async () => {
    await readsIn(60 * minuteMs)
    definitions = webhooks.replace('1000 }', '1000, mode: poll }')
    const [own] = server.hooks
    assert.ok(own)
    await catchUp.list(true)
    assert.equal(await readsIn(5 * minuteMs), 5)
    const guid = server.miss(own, { payload: {} })
    await readsIn(minuteMs)
    assert.deepEqual([accepted, catchUp.problems()], [[guid], []])
    const quiet = await readsIn(60 * minuteMs)
    assert.ok(quiet >= 12 && quiet <= 30, String(quiet))
    const last = server.requests.at(-1)
    assert.match(String(last?.headers['if-none-match']), /^"/)
  })

  it('finds what GitHub lists minutes late, by the clock of GitHub', async () => {
    const [own] = server.hooks
    assert.ok(own)
    // Ours is hours behind.
    server.aheadMs = 5 * 60 * minuteMs
    await catchUp.list(true)
    server.miss(own, { payload: {}, minutesAgo: 8 })
    server.miss(own, { payload: {}, minutesAgo: 12 })
    const [missed] = await catchUp.list(true)
    assert.equal(missed?.waiting.length, 1)
  })

  it('reads 2,500 missed deliveries by page, and says how many there are', async () => {
    const [own] = server.hooks
    assert.ok(own)
    for (let count = 0; count < 2500; count += 1) server.miss(own, { payload: { count } })
    const [missed] = await catchUp.list(true)
    assert.equal(missed?.waiting.length, 2500)
    assert.match(catchUp.problems()[0]?.detail ?? '', /^2500 missed deliveries of acme\/door/)
    assert.deepEqual(await catchUp.decide({ do: 'skip' }), {
      run: 0,
      skipped: 2500,
      refused: 0,
      waiting: 0,
    })
  })

  it('keeps what was written before a line that was cut off, and what comes after it', async () => {
    const file = join(folder, 'journal')
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
