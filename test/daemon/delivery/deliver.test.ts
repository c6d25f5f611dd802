import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TargetResult } from '../../../shared/api.ts'
import { answered, deliverWith, quickRules, ready } from '../../support/deliver.ts'
import { type TargetServer, hang, json, startTargetServer } from '../../support/target-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('deliver', () => {
  let server: TargetServer
  let homeFolder: string
  beforeEach(async () => {
    server = await startTargetServer(json(200, { ok: true }))
    homeFolder = await temporaryFolder()
  })
  afterEach(() => server.close())

  const test = (rules = quickRules) =>
    deliverWith(
      { slack: { api_url: server.origin } },
      { tokens: { slack: ['xoxb-1'] }, homeFolder, rules },
    )

  it('goes to all targets at once: one that hangs or fails keeps it from no other', async () => {
    const stop = new AbortController()
    server.next(hang)
    const targets = ready(['slack:#a', 'file:{{event.a}}.md', 'file:b.md', 'notify:desktop'])
    const done: string[] = []
    const results = await test().deliver(targets, answered(), {
      signal: stop.signal,
      changed: (_place, { target, state }) => {
        done.push(`${target} ${state}`)
        if (done.length === 3) stop.abort()
      },
    })
    assert.deepEqual(
      results.map(({ state, code }) => [state, code]),
      [
        ['failed', 'delivery-failed'],
        ['failed', 'target-invalid'],
        ['done', undefined],
        ['done', undefined],
      ],
    )
    assert.equal(done.at(-1), 'slack:#a failed')
    assert.match(await readFile(join(homeFolder, 'b.md'), 'utf8'), /an answer/)
  })

  it('goes only where it is told to, and gives results for those in their order', async () => {
    const targets = ready(['file:a.md', 'slack:#a', 'file:c.md'])
    const results = await test().deliver(targets, answered(), { only: [2, 1] })
    assert.deepEqual(
      results.map(({ target, state }) => [target, state]),
      [
        ['file:c.md', 'done'],
        ['slack:#a', 'done'],
      ],
    )
    await assert.rejects(readFile(join(homeFolder, 'a.md')), { code: 'ENOENT' })
    assert.deepEqual(await test().deliver(targets, answered(), { only: [7] }), [])
  })

  it('tells of each try that is to be repeated, and why', async () => {
    server.next(json(503, {}), json(429, {}))
    const told: [number, TargetResult][] = []
    await test().deliver(ready(['none', 'file:a.md', 'slack:#a']), answered(), {
      only: [1],
      changed: (place, result) => told.push([place, result]),
    })
    assert.deepEqual(
      told.map(([place, { state, attempts, detail }]) => [place, state, attempts, detail]),
      [
        [1, 'waiting', 1, 'slack answered 503; it is tried again'],
        [1, 'waiting', 2, 'slack takes no more for now (429); it is tried again'],
        [1, 'done', 3, undefined],
      ],
    )
  })

  it('does not take half an answer for a success', async () => {
    server.next((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' })
      response.write('{"ok": true')
    })
    const rules = { ...quickRules, tryMs: 200 }
    const [result] = await test(rules).deliver(ready(['slack:#a']), answered())
    assert.match(result?.detail ?? '', /outcome unknown: it may have arrived/)
  })

  it('warns of nothing when much is delivered at once', async () => {
    const warnings: string[] = []
    const note = (warning: Error) => void warnings.push(warning.name)
    process.on('warning', note)
    const { deliver } = test()
    const { signal } = new AbortController()
    await Promise.all(
      Array.from({ length: 20 }, () => deliver(ready(['slack:#a']), answered(), { signal })),
    )
    await new Promise((resolve) => setImmediate(resolve))
    process.off('warning', note)
    assert.deepEqual(warnings, [])
  })
})
