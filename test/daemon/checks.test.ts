import assert from 'node:assert/strict'
import { checksSchema } from '../../shared/api/checks.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { startTargetServer, type TargetServer } from '../support/servers/target-server.ts'

describe('POST /checks', () => {
  let daemon: RunningDaemon
  let server: TargetServer
  let waiting = 0
  let most = 0

  before(async () => {
    server = await startTargetServer((response) => {
      waiting += 1
      most = Math.max(most, waiting)
      setTimeout(() => {
        waiting -= 1
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}')
      }, 50)
    })
    daemon = await startDaemon({
      env: 'TOKEN=canary-token\n',
      gateway: `targets: { slack: { api_url: "${server.origin}", token_env: TOKEN } }\n`,
      webhooks:
        'webhooks: [{ path: /a, agent: echo, prompt_template: x, deliver_to: "slack:#a" }]\n',
    })
  })
  after(async () => {
    await daemon.stop()
    server.close()
  })

  it('answers with checks alone, and asks no one unless it is told to', async () => {
    const { checks } = checksSchema.parse(await daemon.client.post('/checks'))
    assert.deepEqual(
      checks.map(({ group, name, status }) => [group, name, status]),
      [
        ['agents', 'echo', 'ok'],
        ['logins', 'logins', 'skipped'],
        ['targets', 'slack', 'skipped'],
        ['tunnel', 'tunnel', 'skipped'],
      ],
    )
    assert.equal(server.requests.length, 0)
  })

  it('takes one run at a time, and tells the time of the servers', async () => {
    const runs = await Promise.all(
      ['/checks?online', '/checks?online=true'].map((path) => daemon.client.post(path)),
    )
    for (const found of runs.map((run) => checksSchema.parse(run))) {
      assert.equal(found.checks.find(({ name }) => name === 'slack')?.status, 'ok')
      assert.ok(Math.abs(found.clockAheadMs ?? Infinity) < 5000)
    }
    assert.equal(most, 1)
    assert.doesNotMatch(JSON.stringify(runs), /canary/)
  })

  it('refuses any other query, and other methods', async () => {
    for (const query of ['online=false', 'online&online', 'offline'])
      await assert.rejects(
        daemon.client.post(`/checks?${query}`),
        (error) => error instanceof DoorwardError && error.code === 'request-invalid',
      )
    await assert.rejects(
      daemon.client.get('/checks'),
      (error) => error instanceof DoorwardError && error.code === 'method-not-allowed',
    )
  })
})
