import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail, Status } from '../../../shared/api/api.ts'
import { type Explanation, explanationSchema } from '../../../shared/api/explain.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

describe('a webhook with max_runs', () => {
  let daemon: RunningDaemon
  const post = async () => {
    const headers = { 'content-type': 'application/json' }
    return (await send(`${daemon.url}/webhook/a`, { headers, body: '{}' })).json()
  }
  const explain = async () => {
    const asked = { path: '/webhook/a', payload: '{}' }
    const explanation = await daemon.client.post<Explanation>('/webhooks/explain', asked)
    return explanationSchema.parse(explanation).rules?.map(({ rule, maxRuns }) => [rule, maxRuns])
  }
  const problems = async () =>
    (await daemon.client.get<Status>('/status')).problems.filter(
      ({ code }) => code === 'over-budget',
    )

  before(async () => {
    daemon = await startDaemon({
      webhooks: `
webhooks:
  - path: /webhook/a
    agent: echo
    prompt_template: x
    rules:
      - { name: some, max_runs: 2/hour }
      - { name: all }
`,
    })
  })

  it('is explained with the runs that are left', async () => {
    const maxRuns = { limit: '2/hour', left: 2, isUsedUp: false }
    assert.deepEqual(await explain(), [
      ['some', maxRuns],
      ['all', undefined],
    ])
  })

  it('passes over what comes after them, says so once, and runs its other rules', async () => {
    for (let run = 1; run <= 2; run += 1) {
      const { id, status } = await post()
      assert.equal(status, 'accepted')
      await untilFinished(daemon, String(id))
    }
    assert.deepEqual(await problems(), [])
    const over = await post()
    const events = over['events'] as { id: string; status: string; rule: string }[]
    assert.deepEqual(
      events.map(({ status, rule }) => [status, rule]),
      [
        ['accepted', 'all'],
        ['filtered', 'some'],
      ],
    )
    assert.equal(over['status'], 'accepted')
    const event = await daemon.client.get<EventDetail>(`/events/${events[1]?.id}`)
    assert.deepEqual(
      [event.rule, event.state, event.code, event.detail],
      ['some', 'filtered', 'over-budget', 'the max_runs of 2/hour is used up'],
    )
    await post()
    assert.deepEqual(await problems(), [
      {
        code: 'over-budget',
        detail:
          'webhook /webhook/a some has used up its max_runs of 2/hour; its events are filtered',
        hint: 'raise max_runs in webhooks.yaml, or wait',
        about: { webhook: '/webhook/a' },
      },
    ])
    assert.deepEqual((await explain())?.[0], ['some', { limit: '2/hour', left: 0, isUsedUp: true }])
    const args = ['webhook', 'explain', '/webhook/a', '-']
    const { stdout } = await run(args, { home: daemon.home, stdin: '{}' })
    assert.match(stdout, /^max_runs +✗ 2\/hour is used up$/m)
    assert.match(stdout, /^outcome +the rule all would run$/m)
    assert.equal(await daemon.stop(), 0)
    const log = await readFile(daemon.home.log, 'utf8')
    assert.equal(log.split('is used up').length - 1, 1, log)
  })

  it('counts the runs before a stop and before a crash', async () => {
    const { home } = daemon
    const left = async () => (await explain())?.[0]
    const usedUp = ['some', { limit: '2/hour', left: 0, isUsedUp: true }]
    daemon = await startDaemon({ home })
    assert.deepEqual(await left(), usedUp)
    const over = (await post())['events'] as { status: string; rule: string }[]
    assert.deepEqual(
      over.map(({ status, rule }) => [status, rule]),
      [
        ['accepted', 'all'],
        ['filtered', 'some'],
      ],
    )
    const ended = once(daemon.process, 'exit')
    daemon.process.kill('SIGKILL')
    await ended
    daemon.client.close()
    daemon = await startDaemon({ home })
    assert.deepEqual(await left(), usedUp)
    assert.equal(await daemon.stop(), 0)
    assert.match(
      await readFile(join(home.run, 'last-day'), 'utf8'),
      /^(\n*run [\w-]{43} \d+ \.\n){2}$/,
    )
  })
})
