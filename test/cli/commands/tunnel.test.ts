import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TunnelStatus } from '../../../shared/api/tunnel.ts'
import { statusSchema } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import type { Home } from '../../../shared/home/home.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { examined } from '../../support/daemon/doctor.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { restart, stopHome, untilDead } from '../../support/daemon/restart.ts'
import { type HookServer, startHookServer } from '../../support/servers/hook-api.ts'
import { makeTunnelPrograms, type TunnelPrograms } from '../../support/servers/tunnel-programs.ts'
import { temporaryHome } from '../../support/temporary.ts'
import { run } from '../support/cli.ts'

const path = '/webhook/github/acme/door'

describe('cli: tunnel', () => {
  let home: Home
  let hooks: HookServer
  let programs: TunnelPrograms

  beforeEach(async () => {
    programs = await makeTunnelPrograms(['cloudflared', 'zrok'])
    hooks = await startHookServer()
    home = await temporaryHome({
      gateway: `# mine\noauth: { callback_port: 0 }\nserver: { port: 0 }\ntargets: { github: { token_env: GH, api_url: "${hooks.apiUrl}" } }\n`,
      env: 'GH=gho_never-shown-0123456789\n',
    })
  })
  afterEach(async () => {
    await stopHome(home).catch(() => undefined)
    hooks.close()
    programs.close()
  })

  const cli = (...args: string[]) => run(args, { home, env: programs.env })
  const status = async () => {
    const client = await connect(home)
    try {
      return await client.get<TunnelStatus>('/daemon/tunnel')
    } finally {
      client.close()
    }
  }

  it('chooses a port, opens one, shows it, and stops it', async () => {
    assert.equal((await cli('tunnel', 'status')).code, 3)
    const opened = await cli('tunnel', '--with', 'cloudflared')
    assert.equal(opened.code, 0, opened.stderr)
    assert.match(opened.stderr, /server\.public_port is now 0: it serves webhooks and nothing else/)
    const { url = '', leadsTo } = await status()
    assert.match(opened.stdout, new RegExp(`tunnel +cloudflared, up\naddress +${url}\n`))
    assert.equal(
      await readFile(join(home.config, 'gateway.yaml'), 'utf8'),
      `# mine\noauth: { callback_port: 0 }\nserver: { public_url: ${url}, public_port: 0, port: 0 }\ntargets: { github: { token_env: GH, api_url: "${hooks.apiUrl}" } }\n`,
    )
    const client = await connect(home)
    assert.notEqual(leadsTo, client.daemon.url)
    const { tunnel, publicUrl } = statusSchema.parse(await client.get('/status'))
    assert.deepEqual([tunnel?.program, tunnel?.state, publicUrl], ['cloudflared', 'up', url])
    client.close()
    assert.match(
      (await cli('status')).stdout,
      /tunnel cloudflared, a request of our own came through it/,
    )
    const { of } = await examined(home)
    assert.equal(of('tunnel', 'program')[0]?.status, 'ok')

    const again = await cli('tunnel')
    assert.deepEqual([again.code, (await status()).url], [0, url])
    const stopped = await cli('tunnel', 'stop')
    assert.match(stopped.stdout, /^closed the tunnel of \w+$/m)
    assert.deepEqual(programs.running(), [])
    assert.match((await cli('tunnel', 'stop', '--with', 'zrok')).stderr, /takes no --with/)
  })

  it('gives an address that changes to the hooks of senders', async () => {
    await cli('tunnel', '--with', 'zrok')
    const before = (await status()).url ?? ''
    hooks.tunnel = (await status()).leadsTo ?? undefined
    const connected = await cli('webhook', 'connect', 'github', 'acme/door')
    assert.equal(connected.code, 0, connected.stderr)
    assert.equal(hooks.hooks[0]?.config.url, `${before}${path}`)
    const secret = hooks.hooks[0]?.config.secret

    const daemon = { client: await connect(home) }
    const followed = await followEvents(daemon as Parameters<typeof followEvents>[0])
    for (let address = before; ;) {
      process.kill(programs.running()[0]?.pid ?? 0, 'SIGKILL')
      await followed.next(({ detail }) => detail?.startsWith('the hook of acme/door') ?? false)
      const { url = '', moved } = await status()
      assert.notEqual(url, address)
      assert.deepEqual(hooks.hooks[0]?.config, { url: `${url}${path}`, secret })
      assert.deepEqual(moved, [path])
      if (address !== before) break
      address = url
    }
    followed.close()
    daemon.client.close()
  })

  it('keeps program and address over a restart, ends with the daemon, and comes back with it', async () => {
    await cli('tunnel', '--with', 'cloudflared')
    const { url } = await status()
    const pid = programs.running()[0]?.pid
    const client = await connect(home)
    const { previous } = await restart(client)
    client.close()
    await untilDead(previous.pid)
    assert.equal((await cli('tunnel')).code, 0)
    assert.deepEqual([(await status()).url, programs.running().map((own) => own.pid)], [url, [pid]])

    await stopHome(home)
    assert.deepEqual(programs.running(), [])
    const back = await cli('tunnel', '--with', 'cloudflared')
    assert.equal(back.code, 0, back.stderr)
    assert.equal(programs.running().length, 1)
  })

  it('leaves no program behind when the daemon is killed', async () => {
    const daemon = await startDaemon({ home, variables: programs.env })
    await cli('tunnel', '--with', 'zrok')
    daemon.client.close()
    const client = await connect(home)
    process.kill(client.daemon.pid, 'SIGKILL')
    await untilDead(client.daemon.pid)
    client.close()
    assert.equal(programs.running().length, 1)
    const pid = programs.running()[0]?.pid
    // The port is another one: the old program would lead nowhere.
    const back = await cli('tunnel')
    assert.equal(back.code, 0, back.stderr)
    assert.equal(programs.running().length, 1)
    assert.notEqual(programs.running()[0]?.pid, pid)
  })

  it('says what is wrong, and that nothing arrives', async () => {
    const missing = await cli('tunnel', '--with', 'ngrok')
    assert.equal(missing.code, 1)
    assert.match(missing.stderr, /ngrok is not on the PATH of the daemon\nhint: install it/)
    assert.equal((await status()).leadsTo, null)
    await programs.refuse('logged-out')
    const out = await cli('tunnel', '--with', 'zrok', '--json')
    assert.equal(out.code, 1)
    assert.equal((JSON.parse(out.stderr) as { code: string }).code, 'tunnel-failed')
    assert.equal((await status()).state, 'off')
  })
})
