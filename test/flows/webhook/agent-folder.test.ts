import assert from 'node:assert/strict'
import { mkdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { run } from '../../cli/support/cli.ts'
import { startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryHome } from '../../support/temporary.ts'

const program = JSON.stringify([process.execPath, '-e', 'process.stdout.write(process.cwd())'])

describe('the working folder of an agent', () => {
  it('is under the home where it is relative, wherever the daemon was started, and for doctor too', async () => {
    const home = await temporaryHome({
      webhooks: 'webhooks: [{ path: /here, agent: here, prompt_template: x }]\n',
      agents: `agents: { here: { kind: command, command: ${program}, cwd: work/here } }\n`,
    })
    const folder = join(home.root, 'work', 'here')
    await mkdir(folder, { recursive: true })
    const daemon = await startDaemon({ home })
    try {
      const headers = { 'content-type': 'application/json' }
      const accepted = await send(`${daemon.url}/here`, { headers, body: '{}' })
      const { id } = accepted.json() as { id: string }
      assert.equal((await untilFinished(daemon, id)).result, await realpath(folder))
      const { stdout } = await run(['doctor', '--json'], { home })
      const { checks } = JSON.parse(stdout) as { checks: { name: string; status: string }[] }
      assert.equal(checks.find(({ name }) => name === 'here')?.status, 'ok')
    } finally {
      await daemon.stop()
    }
  })
})
