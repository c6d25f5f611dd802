import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TargetResult } from '../../../shared/api/api.ts'
import {
  makeReply,
  deliverWith,
  quickRules,
  resolveTargets,
} from '../../support/servers/deliver.ts'
import {
  type TargetServer,
  hang,
  json,
  startTargetServer,
} from '../../support/servers/target-server.ts'
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

  it('sends to all targets in parallel: one that hangs or fails delays no other', async () => {
    const stop = new AbortController()
    server.next(hang)
    const targets = resolveTargets(
      ['slack:#a', 'file:{{event.a}}.md', 'file:b.md', 'notify:desktop'],
      { a: 'x/y' },
    )
    const done: string[] = []
    const results = await test().deliver(targets, makeReply(), {
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

  it('sends only to the given targets, and returns their results in order', async () => {
    const targets = resolveTargets(['file:a.md', 'slack:#a', 'file:c.md'])
    const results = await test().deliver(targets, makeReply(), { only: [2, 1] })
    assert.deepEqual(
      results.map(({ target, state }) => [target, state]),
      [
        ['file:c.md', 'done'],
        ['slack:#a', 'done'],
      ],
    )
    await assert.rejects(readFile(join(homeFolder, 'a.md')), { code: 'ENOENT' })
    assert.deepEqual(await test().deliver(targets, makeReply(), { only: [7] }), [])
  })

  it('reports each retry and its reason', async () => {
    server.next(json(503, {}), json(429, {}))
    const told: [number, TargetResult][] = []
    await test().deliver(resolveTargets(['none', 'file:a.md', 'slack:#a']), makeReply(), {
      only: [1],
      changed: (place, result) => told.push([place, result]),
    })
    assert.deepEqual(
      told.map(([place, { state, attempts, detail }]) => [place, state, attempts, detail]),
      [
        [1, 'waiting', 1, 'slack answered 503; retrying'],
        [1, 'waiting', 2, 'slack rate limit reached (429); retrying'],
        [1, 'done', 3, undefined],
      ],
    )
  })

  it('does not take half a response for a success', async () => {
    server.next((response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' })
      response.write('{"ok": true')
    })
    const rules = { ...quickRules, attemptMs: 200 }
    const [result] = await test(rules).deliver(resolveTargets(['slack:#a']), makeReply())
    assert.match(result?.detail ?? '', /outcome unknown: it may have arrived/)
  })
})
