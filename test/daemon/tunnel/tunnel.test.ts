import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createNetServer } from 'node:net'
import { join } from 'node:path'
import { readConfig } from '../../../daemon/config/live-config.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { Hooks } from '../../../daemon/sender-apis/hooks.ts'
import { toOrigin } from '../../../daemon/tunnel/programs.ts'
import { Tunnel } from '../../../daemon/tunnel/tunnel.ts'
import type { TunnelName } from '../../../shared/api/tunnel.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { prepareHome } from '../../../shared/home/home.ts'
import { configureNetwork } from '../../../shared/network/outgoing.ts'
import { makeTunnelPrograms, type TunnelPrograms } from '../../support/servers/tunnel-programs.ts'
import { temporaryHome } from '../../support/temporary.ts'

const gateway = `# mine\r\nserver:\r\n  port: 0 # any\r\noauth: { callback_port: 0 }\r\n`

describe('the tunnel', () => {
  let home: Home
  let server: Server
  let programs: TunnelPrograms
  let events: EventStore
  let tunnel: Tunnel

  const make = async (names?: readonly TunnelName[]) => {
    programs = await makeTunnelPrograms(names)
    home = await temporaryHome({ gateway })
    await prepareHome(home)
    events = new EventStore(50)
    const env = { ...programs.env, NGROK_AUTHTOKEN: 'a token of ngrok' }
    configureNetwork(env)
    let read = await readConfig(home, env)
    const current = () => read
    const access = () => Promise.reject(new Error('nobody asks'))
    tunnel = new Tunnel({
      home,
      listeners: { publicUrl: target },
      live: { current, reload: async () => (read = await readConfig(home, env)) },
      hooks: new Hooks({ home, current, access, events }),
      events,
      log: { warn: () => undefined },
      succession: { successor: () => undefined },
      times: { ping: 100, pingAgain: 50, down: 300, address: 4000, settle: 0, firstPause: 50 },
    })
    server = createServer(
      tunnel.pings.before((_, response) => response.writeHead(404).end()),
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
  }
  const target = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const gatewayText = () => readFile(join(home.config, 'gateway.yaml'), 'utf8')
  /** Waits for a new event that tells this. */
  const untilTold = async (pattern: RegExp) =>
    new Promise<void>((resolve) => {
      const stop = events.follow(({ record }) => {
        if (!pattern.test(record.detail ?? '')) return
        stop()
        resolve()
      })
    })
  const refused = async (name: TunnelName | undefined) => {
    const error = await tunnel.start(name).then(
      () => assert.fail('it started'),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof DoorwardError)
    assert.equal(tunnel.status().state, 'off')
    assert.deepEqual(programs.running(), [])
    return `${error.message} | ${error.hint}`
  }

  afterEach(async () => {
    await tunnel.stop()
    programs.close()
    server.close()
    configureNetwork(process.env)
  })

  for (const name of ['tailscale', 'cloudflared', 'ngrok', 'zrok'] as const)
    it(`opens one with ${name}, and writes its address without touching another byte`, async () => {
      await make()
      await tunnel.start(name)
      const { state, url, problems } = tunnel.status()
      assert.deepEqual([state, problems], ['up', []])
      assert.match(url ?? '', /^https:\/\/127\.0\.0\.1:\d+$/)
      const line = `  port: 0 # any\r\n`
      assert.equal(await gatewayText(), gateway.replace(line, `${line}  public_url: ${url}\r\n`))
      // Nothing but webhooks is reachable: no other path leads anywhere.
      assert.equal(programs.running().length, 1)
      await tunnel.stop()
      assert.deepEqual([tunnel.status().state, programs.running()], ['off', []])
    })

  it('passes on no variable that a program does not need', async () => {
    await make()
    await tunnel.start('zrok')
    const [run] = programs.running()
    assert.deepEqual(
      Object.keys(run?.env ?? {}).filter(
        (key) => !['PATH', 'HOME', 'NODE_EXTRA_CA_CERTS', 'PWD', 'SHLVL', '_'].includes(key),
      ),
      [],
    )
    assert.deepEqual(run?.args, ['share', 'public', target(), '--headless', '--force-local'])
    await tunnel.start('ngrok')
    assert.equal(programs.running()[0]?.env['NGROK_AUTHTOKEN'], 'a token of ngrok')
  })

  it('reads what the second version of zrok says', async () => {
    await make()
    await programs.refuse('second-version')
    await tunnel.start('zrok')
    assert.equal(tunnel.status().state, 'up')
  })

  it('runs the named tunnel whose configuration leads here, and no other', async () => {
    await make()
    const free = createNetServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    const { port } = free.address() as AddressInfo
    free.close()
    const folder = join(programs.env['HOME'] ?? '', '.cloudflared')
    await mkdir(folder)
    const config = (service: string) =>
      writeFile(
        join(folder, 'config.yml'),
        `tunnel: 6ff42ae2\ningress:\n  - hostname: 127.0.0.1:${port}\n    service: ${service}\n  - service: http_status:404\n`,
      )
    await config(target().replace('127.0.0.1', 'localhost'))
    await tunnel.start('cloudflared')
    assert.equal(tunnel.status().url, `https://127.0.0.1:${port}`)
    assert.equal(programs.running()[0]?.args.at(-1), 'run')
    await tunnel.stop()
    await config('http://localhost:1')
    await tunnel.start('cloudflared')
    assert.notEqual(tunnel.status().url, `https://127.0.0.1:${port}`)
  })

  it('uses a funnel that somebody has started, and leaves it when it stops', async () => {
    await make()
    programs.startByHand('tailscale', ['funnel', '--bg', target()], { FUNNEL_TEST_BACKGROUND: '1' })
    while (!(await readFile(join(programs.env['HOME'] ?? '', 'funnel'), 'utf8').catch(() => '')))
      await new Promise((resolve) => setImmediate(resolve))
    await tunnel.start(undefined)
    const { state, program } = tunnel.status()
    assert.deepEqual([state, program, programs.running().length], ['up', 'tailscale', 1])
    await tunnel.stop()
    assert.equal(programs.running().length, 1)
  })

  it('says of one that somebody has started that nothing arrives, and starts its own when it ends', async () => {
    await make()
    await programs.isDead(true)
    programs.startByHand('ngrok', ['http', target()], { NGROK_TEST_PORT: '4040' })
    while (!(await fetch('http://127.0.0.1:4040/api/tunnels').catch(() => undefined)))
      await new Promise((resolve) => setImmediate(resolve))
    await tunnel.start('ngrok')
    assert.equal(tunnel.status().state, 'down')
    assert.equal(programs.running().length, 1)
    const told = untilTold(/^requests arrive through ngrok/)
    programs.close()
    await programs.isDead(false)
    await told
    assert.equal(programs.running().length, 1)
  })

  it('reports a tunnel that is connected and dead, once, and that it is back', async () => {
    await make()
    await tunnel.start('cloudflared')
    const told = untilTold(/nothing arrives/)
    await programs.isDead(true)
    await told
    const [problem] = tunnel.status().problems
    assert.equal(tunnel.status().state, 'down')
    assert.match(
      problem?.detail ?? '',
      /^cloudflared runs, but nothing arrives at https:\S+: .* \(530\)$/,
    )
    assert.equal(problem?.code, 'tunnel-down')
    const back = untilTold(/requests arrive through cloudflared/)
    await programs.isDead(false)
    await back
    assert.deepEqual([tunnel.status().state, tunnel.status().problems], ['up', []])
    const failed = events.list({ limit: 50 }).filter(({ state }) => state === 'failed')
    assert.equal(failed.length, 1)
    assert.equal(programs.runs().length, 1)
  })

  it('says at the start that nothing arrives', async () => {
    await make()
    await programs.isDead(true)
    await tunnel.start('ngrok')
    assert.equal(tunnel.status().state, 'down')
    assert.match(tunnel.status().problems[0]?.detail ?? '', /^ngrok runs, but nothing arrives/)
  })

  it('starts a program that was killed again, and writes its new address', async () => {
    await make()
    await tunnel.start('zrok')
    const before = tunnel.status().url
    const told = untilTold(/^server\.public_url is now/)
    process.kill(programs.running()[0]?.pid ?? 0, 'SIGKILL')
    await told
    const { url } = tunnel.status()
    assert.notEqual(url, before)
    assert.ok((await gatewayText()).includes(`public_url: ${url}\r\n`))
  })

  it('goes on trying when a program that ran is refused, and reports it', async () => {
    await make()
    await tunnel.start('ngrok')
    const told = untilTold(/^ngrok opens no tunnel: authentication failed/)
    await programs.refuse('logged-out')
    programs.close()
    await told
    assert.equal(tunnel.status().problems[0]?.code, 'tunnel-failed')
    const back = untilTold(/^requests arrive/)
    await programs.refuse('')
    await back
    assert.deepEqual(tunnel.status().problems, [])
  })

  it('names the program that is missing, and those that could be', async () => {
    await make(['zrok'])
    assert.match(
      await refused('ngrok'),
      /^ngrok is not on the PATH of the daemon \| install it \(https:/,
    )
    await tunnel.start(undefined)
    assert.equal(tunnel.status().program, 'zrok')
    await tunnel.stop()
    programs.close()
    server.close()
    await make([])
    assert.match(
      await refused(undefined),
      /^none of tailscale, cloudflared, ngrok, zrok is on the PATH/,
    )
  })

  it('repeats what a program said that is logged out, and shows no token', async () => {
    await make()
    await programs.refuse('logged-out')
    const ngrok = await refused('ngrok')
    assert.match(
      ngrok,
      /^ngrok opens no tunnel: authentication failed: Usage of ngrok .* ERR_NGROK_4018/,
    )
    assert.match(ngrok, /\| ngrok config add-authtoken/)
    assert.doesNotMatch(ngrok, /2aBcDeFg/)
    assert.match(await refused('tailscale'), /NeedsLogin \| tailscale up;/)
    assert.match(await refused('zrok'), /did you 'zrok enable'\? \| zrok enable/)
    await programs.refuse('refuses')
    assert.match(await refused('cloudflared'), /failed to request quick Tunnel.* \| wait a minute/)
  })

  it('ends a program that waits for what it may not have, and passes on its link', async () => {
    await make()
    await programs.refuse('not-enabled')
    const words = await refused('tailscale')
    assert.match(
      words,
      /Funnel is not enabled .* https:\/\/login\.tailscale\.com\/f\/funnel\?node=nABC11CNTRL/,
    )
    assert.match(words, /\| allow it on the page that it names/)
  })
  it('takes no address that is none, and reads no more than it needs of what a program writes', async () => {
    await make()
    const origin = 'https://door.example'
    assert.equal(toOrigin(`${origin}/`), origin)
    assert.equal(toOrigin('https://door.example:8443'), 'https://door.example:8443')
    for (const address of [
      'http://door.example',
      'https://ada:secret@door.example',
      'https://door.example/path',
      'https://door.example?x',
      'https://',
      `${origin}\u001b[31m`,
    ])
      assert.equal(toOrigin(address), undefined, address)
    await programs.refuse('says-nonsense')
    const words = await refused('cloudflared')
    assert.match(words, /^cloudflared opens no tunnel: a{40}/)
    assert.ok(words.length < 500)
    assert.equal(await gatewayText(), gateway)
  })
})
