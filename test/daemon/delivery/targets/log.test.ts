import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir } from 'node:fs/promises'
import { connect } from '../../../../shared/client/client.ts'
import {
  type RunningDaemon,
  cleanEnvironment,
  daemonMain,
  startDaemon,
  untilFinished,
} from '../../../support/daemon/daemon.ts'
import { send } from '../../../support/servers/http.ts'
import { temporaryHome } from '../../../support/temporary.ts'
import { untilText } from '../../../support/until-text.ts'

const webhooks = `
webhooks:
  - { path: /open, agent: echo, prompt_template: "{{event.text}}", deliver_to: [log, notify:desktop] }
`

describe('delivery to the log', () => {
  let daemon: RunningDaemon
  const post = async (payload: object) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}/open`, { headers, body: JSON.stringify(payload) })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  before(async () => {
    daemon = await startDaemon({
      webhooks,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('prints the answer on standard output, without escape sequences', async () => {
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

  it('fails after 5 s on a terminal that is not read, and blocks nothing else', async function () {
    if (process.platform !== 'linux') this.skip()
    const home = await temporaryHome({ webhooks })
    await mkdir(home.run, { mode: 0o700 })
    const command = [process.execPath, daemonMain, '--foreground', '--home', home.root]
    // Its own terminal, whose output we can stop reading.
    const terminal = spawn('script', ['-qefc', command.join(' '), '/dev/null'], {
      env: cleanEnvironment({ DOORWARD_PORT: '0' }),
      stdio: ['pipe', 'pipe', 'ignore'],
    })
    try {
      terminal.stdout.resume()
      await untilText(home.run, 'daemon.json', /"url"/)
      const client = await connect(home)
      terminal.stdout.pause()
      const body = JSON.stringify({ text: 'x'.repeat(900_000) })
      const headers = { 'content-type': 'application/json' }
      const reply = await send(`${client.daemon.url}/open`, { headers, body })
      const event = await untilFinished({ client }, String(reply.json()['id']))
      assert.deepEqual([event.state, event.code], ['failed', 'delivery-failed'])
      client.close()
    } finally {
      terminal.stdout.resume()
      const ended = once(terminal, 'exit')
      // The hangup of its terminal ends the daemon.
      terminal.kill('SIGKILL')
      await ended
    }
  })

  it('fails when no one reads standard output any more, and the daemon continues', async () => {
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
