import assert from 'node:assert/strict'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon.ts'
import { send } from '../../support/http.ts'

describe('delivery to the log', () => {
  let daemon: RunningDaemon
  const post = async (payload: object) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/open`, { headers, body: JSON.stringify(payload) })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  before(async () => {
    daemon = await startDaemon({
      webhooks: `
webhooks:
  - { path: /open, agent: echo, prompt_template: "{{event.text}}", deliver_to: [log, notify:desktop] }
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('prints the answer on standard output, without what a terminal obeys', async () => {
    const event = await post({ text: '\u001b[31mred\u001b[0m\u202e' })
    assert.equal(event.state, 'done')
    assert.ok(daemon.stdout().endsWith(`/open ${event.id}\nred\n`))
  })

  it('fails after 5 s when its reader has stopped reading, as a pager does', async () => {
    daemon.process.stdout?.pause()
    const event = await post({ text: 'x'.repeat(900_000) })
    assert.deepEqual([event.state, event.code], ['failed', 'delivery-failed'])
    daemon.process.stdout?.resume()
    assert.equal((await post({ text: 'read again' })).state, 'done')
  })

  it('fails when nobody reads standard output any more, and the daemon goes on', async () => {
    daemon.process.stdout?.destroy()
    for (const text of ['one', 'two']) {
      const event = await post({ text })
      assert.deepEqual([event.state, event.code], ['failed', 'delivery-failed'])
      assert.deepEqual(
        event.targets.map(({ state }) => state),
        ['failed', 'done'],
      )
    }
    assert.equal(daemon.process.exitCode, null)
  })
})
