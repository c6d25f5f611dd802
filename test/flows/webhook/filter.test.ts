import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'

describe('a filter with tests', () => {
  let daemon: RunningDaemon

  before(async () => {
    daemon = await startDaemon({
      webhooks: `
webhooks:
  - path: /push
    agent: echo
    prompt_template: x
    filter:
      headers.X-Event: [push, create]
      ref: { glob: refs/heads/release/* }
      commits[*].modified[*]: { regex: '\\.ts$' }
      commits[*].author["user.name"]: { not: bot }
      any: [{ forced: true }, { commits: { exists: true }, size: { above: 1 } }]
      none: [{ message: { contains: '[skip]' } }]
`,
    })
  })
  after(async () => daemon.stop())

  const push = {
    ref: 'refs/heads/release/2',
    size: '2',
    message: 'fix',
    commits: [
      { modified: ['a.md'], author: { 'user.name': 'ada' } },
      { modified: ['b.md', 'b.ts'], author: {} },
    ],
  }
  const post = async (payload: object, event = 'push'): Promise<string> => {
    const reply = await send(`${daemon.url}/push`, {
      headers: { 'content-type': 'application/json', 'x-event': event },
      body: JSON.stringify(payload),
    })
    const { id, status } = reply.json()
    if (status !== 'filtered') return String(status)
    const { detail } = await daemon.client.get<EventRecord>(`/events/${String(id)}`)
    return detail ?? ''
  }

  it('runs the agent for what passes all of them', async () => {
    assert.equal(await post(push), 'accepted')
    assert.equal(await post({ ...push, size: 0, forced: true }, 'create'), 'accepted')
  })

  it('names the first that does not match', async () => {
    const bot = [{ modified: ['b.ts'], author: { 'user.name': 'bot' } }]
    for (const [payload, event, name] of [
      [push, 'ping', 'headers.X-Event'],
      [{ ...push, ref: 'refs/heads/release/2/x' }, 'push', 'ref'],
      [{ ...push, commits: push.commits.slice(0, 1) }, 'push', 'commits[*].modified[*]'],
      [{ ...push, commits: bot }, 'push', 'commits[*].author["user.name"]'],
      [{ ...push, size: 1 }, 'push', 'any'],
      [{ ...push, message: 'x [skip]' }, 'push', 'none'],
    ] as const)
      assert.equal(await post(payload, event), `the filter on ${name} does not match`)
  })
})
