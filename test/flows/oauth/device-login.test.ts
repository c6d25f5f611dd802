import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { loginSchema, startedDeviceLoginSchema } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { startGitHubProvider } from '../../support/providers/github-provider.ts'

describe('a login by device code', () => {
  it('brings tokens of GitHub into a file, without a secret, a browser or a port', async () => {
    const github = await startGitHubProvider({ hasDeviceFlow: true, devicePolls: 0 })
    const daemon = await startDaemon({
      // Nothing could listen there.
      gateway: `oauth: { callback_port: 1 }\nproviders: { github: ${JSON.stringify(github.gatewayEntry)} }\n`,
    })
    try {
      const { home } = daemon
      const { code, stdout, stderr } = await run(
        ['oauth', 'login', 'github', '--device', '--json'],
        { home },
      )
      assert.equal(code, 0, stderr)
      const lines = stdout.trimEnd().split('\n')
      const [first, last] = lines.map((line) => JSON.parse(line) as unknown)
      const started = startedDeviceLoginSchema.parse(first)
      assert.equal(started.userCode, 'WDJB-MJHT')
      assert.equal(loginSchema.parse(last).account?.name, 'octocat')

      const file = join(home.tokens, 'github.json')
      assert.equal((await stat(file)).mode & 0o777, 0o600)
      const { accessToken } = JSON.parse(await readFile(file, 'utf8')) as { accessToken: string }
      assert.equal(github.isAlive(accessToken), true)
      const deviceCode = github.requests
        .find(({ form }) => form.has('device_code'))
        ?.form.get('device_code')
      const log = await readFile(home.log, 'utf8')
      assert.match(log, /login by device code started/)
      for (const secret of [accessToken, deviceCode, started.userCode]) {
        assert.ok(secret)
        assert.equal(log.includes(secret), false)
      }
      assert.equal(stdout.includes(accessToken), false)

      const events = await run(['events', '--json'], { home })
      assert.match(events.stdout, /logged in as octocat/)
    } finally {
      await daemon.stop()
      github.close()
    }
  })

  it('is refused with the way out while the app has it switched off', async () => {
    const github = await startGitHubProvider()
    const daemon = await startDaemon({
      gateway: `providers: { github: ${JSON.stringify(github.gatewayEntry)} }\n`,
    })
    try {
      const { code, stdout, stderr } = await run(['oauth', 'login', 'github', '--device'], {
        home: daemon.home,
      })
      assert.deepEqual([code, stdout], [1, ''])
      assert.match(
        stderr,
        /GitHub does not allow this app to log in this way \(device_flow_disabled/,
      )
      assert.match(stderr, /github\.com\/settings\/developers/)
      assert.match(stderr, /may use the device flow, or log in without --device/)
    } finally {
      await daemon.stop()
      github.close()
    }
  })
})
