import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import type { Home } from '../../shared/home/home.ts'
import { type RunningDaemon, startDaemon } from '../support/daemon/daemon.ts'
import { eventWith, startFakeDaemon, statusWith } from '../support/daemon/fake-daemon.ts'
import { type Followed, startFollowing } from '../support/daemon/followed.ts'
import { send } from '../support/servers/http.ts'
import { startHeldAgent } from '../support/daemon/restart.ts'
import { temporaryHome } from '../support/temporary.ts'

const absent = 'Daemon not running'

let home: Home
let followed: Followed | undefined

const followHome = (silentMs?: number): Followed => {
  followed = startFollowing(home, silentMs)
  return followed
}

beforeEach(async () => {
  home = await temporaryHome()
})
afterEach(async () => {
  await followed?.stop()
  followed = undefined
})

const end = async ({ process: child }: RunningDaemon, signal: NodeJS.Signals): Promise<void> => {
  const ended = once(child, 'exit')
  child.kill(signal)
  await ended
}

/** Another program on the port of a daemon that has ended. */
const takePort = async (url: string, ...how: string[]): Promise<ChildProcess> => {
  const program = fileURLToPath(new URL('../../../test/fixtures/holds-port.mjs', import.meta.url))
  const child = spawn(process.execPath, [program, new URL(url).port, ...how], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  children.push(child)
  await once(child.stdout, 'data')
  return child
}
const children: ChildProcess[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
})

describe('following a daemon that goes and comes', () => {
  it('reports when it is killed, when it is back, and when it is stopped', async () => {
    const daemon = await startDaemon({ home })
    const { untilHeard } = followHome()
    await untilHeard('up')
    await end(daemon, 'SIGKILL')
    await untilHeard(absent)
    const next = await startDaemon({ home })
    await untilHeard('up')
    await next.stop()
    await untilHeard(absent)
  })

  it('reports a daemon that stops and still finishes its work, though no event says it', async () => {
    const agent = await startHeldAgent()
    home = await temporaryHome({
      agents: `agents: { held: { kind: http, url: "${agent.url}" } }`,
      webhooks: 'webhooks: [{ path: /a, agent: held, prompt_template: x }]\n',
    })
    const daemon = await startDaemon({ home })
    const { statuses, events, until, untilHeard } = followHome()
    // Before that, it hears nothing of events.
    await untilHeard('up')
    await send(`${daemon.url}/a`, { headers: { 'content-type': 'application/json' }, body: '{}' })
    const { answer } = await agent.next()
    await until(() => events.at(-1)?.state === 'running')
    await until(() => statuses.at(-1)?.queue.running === 1)
    const before = events.length
    await daemon.client.post('/daemon/shutdown')
    await until(() => statuses.at(-1)?.stopping === true)
    assert.equal(events.length, before)
    answer('late')
    await daemon.stop()
    agent.close()
  })

  it('moves to a new daemon while the old one still finishes', async () => {
    const old = await startFakeDaemon(home, statusWith({ url: 'old' }))
    const { heard, statuses, events, until, untilHeard } = followHome()
    await untilHeard('up')
    const next = await startFakeDaemon(home, statusWith({ url: 'next' }))
    await until(() => statuses.at(-1)?.url === 'next')
    old.send(eventWith({ id: 'of-old' }))
    next.send(eventWith({ id: 'of-next' }))
    await until(() => events.length > 0)
    assert.deepEqual(
      events.map(({ id }) => id),
      ['of-next'],
    )
    assert.deepEqual(new Set(heard), new Set(['up']))
  })

  it('stays with the daemon when its files or the whole home are removed', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const { heard, events, until, untilHeard } = followHome()
    await untilHeard('up')
    await rm(home.daemonJson)
    await rm(home.root, { recursive: true })
    daemon.send(eventWith())
    await until(() => events.length === 1)
    assert.deepEqual(new Set(heard), new Set(['up']))
    await daemon.die()
    await untilHeard(`The folder ${home.root} does not exist`)
    await startFakeDaemon(home, statusWith())
    await untilHeard('up')
  })

  it('reports each time a daemon that accepts a connection and closes it', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    daemon.misbehave = (path, response) => {
      if (path !== '/events/stream') return false
      response.end()
      return true
    }
    const { until, heard, untilHeard } = followHome()
    await until(() => heard.filter((what) => what !== 'up').length >= 2)
    daemon.misbehave = undefined
    await untilHeard('up')
  })
})

describe('following a daemon that hangs', () => {
  if (process.platform === 'win32') return

  it('reports it, and immediately when it answers again', async () => {
    const daemon = await startDaemon({ home })
    const { untilHeard } = followHome(500)
    await untilHeard('up')
    daemon.process.kill('SIGSTOP')
    await untilHeard(`The daemon (pid ${daemon.process.pid}) does not answer`)
    daemon.process.kill('SIGCONT')
    await untilHeard('up')
    daemon.process.kill('SIGSTOP')
    await untilHeard('The daemon (pid')
    await end(daemon, 'SIGKILL')
    await untilHeard(absent)
  })
})

describe('following a daemon whose port another program has', () => {
  if (process.platform !== 'linux') return

  for (const how of [[], ['silent']])
    it(`names the program, and connects when it has exited: ${how[0] ?? 'it answers'}`, async () => {
      const daemon = await startDaemon({ home })
      const { untilHeard } = followHome()
      await untilHeard('up')
      await end(daemon, 'SIGKILL')
      const other = await takePort(daemon.url, ...how)
      const { port } = new URL(daemon.url)
      const reason = await untilHeard(`Port ${port} is used by`)
      assert.match(
        reason,
        /^Port \d+ is used by node holds-port\.mjs \(pid \d+\), not by the daemon$/,
      )
      assert.equal(/pid (\d+)/.exec(reason)?.[1], String(other.pid))
      const exited = once(other, 'exit')
      other.kill('SIGKILL')
      await exited
      await untilHeard(absent)
      const next = await startDaemon({ home })
      await untilHeard('up')
      await next.stop()
    })
})

describe('following a daemon that answers what it should not', () => {
  it('reports it, and connects when the answers are valid', async () => {
    const daemon = await startFakeDaemon(home, '<html>')
    const { untilHeard } = followHome()
    await untilHeard('The daemon answered 200 with a body that is not JSON')
    daemon.status = { version: 3 }
    await untilHeard('The daemon sends a status that the tray cannot read')
    daemon.status = statusWith({ url: 'x'.repeat(10_000_000) })
    await untilHeard('The daemon sends a status that is too long for the tray')
    daemon.misbehave = (path, response) => {
      if (path === '/status') response.writeHead(500).end('oops')
      return path === '/status'
    }
    await untilHeard('The daemon answered 500 without a reason')
    daemon.misbehave = undefined
    daemon.status = statusWith()
    await untilHeard('up')
  })

  it('ignores what is not an event, and a message without end', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const { events, until, untilHeard } = followHome()
    await untilHeard('up')
    for (const what of ['text', null, 7, [], {}, { id: 'no-time' }]) daemon.send(what)
    daemon.send(eventWith({ id: 'x'.repeat(10_000_000) }))
    await daemon.untilAsked('/events/stream')
    daemon.send(eventWith({ id: 'good' }))
    await until(() => events.length > 0)
    assert.deepEqual(
      events.map(({ id }) => id),
      ['good'],
    )
  })

  it('asks for the status seldom however many events come, and passes on all', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const { events, statuses, until, untilHeard } = followHome()
    await untilHeard('up')
    const asked = daemon.asked('/status')
    const began = performance.now()
    for (let count = 0; count < 5000; count += 1) daemon.send(eventWith({ id: `evt_${count}` }))
    daemon.status = statusWith({ url: 'last' })
    daemon.send(eventWith({ id: 'last' }))
    await until(() => events.length === 5001 && statuses.at(-1)?.url === 'last')
    const most = 2 + (performance.now() - began) / 250
    assert.ok(daemon.asked('/status') - asked <= most)
  })
})

describe('following a daemon that does nothing', () => {
  it('asks for nothing while its heartbeat comes, and again when it does not', async () => {
    const daemon = await startFakeDaemon(home, statusWith())
    const { events, until, untilHeard } = followHome(500)
    await untilHeard('up')
    const asked = daemon.asked('/status')
    for (let count = 0; count < 100; count += 1) daemon.beat()
    daemon.send(eventWith())
    await until(() => events.length === 1)
    assert.equal(daemon.asked('/status'), asked)
    // The event asks once, and the silence after it once more.
    await daemon.untilAsked('/status', asked + 2)
  })
})

describe('following a daemon without run/api.token', () => {
  const cases: Record<string, [string, () => Promise<void>, () => Promise<void>]> = {
    'is open to other users': [
      'TOKEN is open to other users (mode 644)',
      () => chmod(home.apiToken, 0o644),
      () => chmod(home.apiToken, 0o600),
    ],
    'is removed': [
      `Run/api.token is missing, so no client can reach the daemon (pid ${process.pid})`,
      () => rename(home.apiToken, `${home.apiToken}.away`),
      () => rename(`${home.apiToken}.away`, home.apiToken),
    ],
    'is another one': [
      `Run/api.token is not the one that the daemon (pid ${process.pid}) was started with`,
      () => emptied('another-token-0123456789abcdef0123456789'),
      () => filled(),
    ],
    'is a link': [
      'TOKEN is a symbolic link',
      async () => {
        await rename(home.apiToken, `${home.apiToken}.away`)
        await symlink(`${home.apiToken}.away`, home.apiToken)
      },
      () => rename(`${home.apiToken}.away`, home.apiToken),
    ],
  }
  const emptied = async (text = '') => {
    await cp(home.apiToken, `${home.apiToken}.away`)
    await writeFile(home.apiToken, text)
  }
  const filled = async () =>
    writeFile(home.apiToken, await readFile(`${home.apiToken}.away`, 'utf8'))

  if (process.platform === 'linux')
    for (const [what, [reason, spoil, fix]] of Object.entries(cases))
      it(`reports at the next connection that it ${what}, and connects when it is fixed`, async () => {
        const daemon = await startFakeDaemon(home, statusWith())
        const { heard, events, until, untilHeard } = followHome()
        await untilHeard('up')
        await spoil()
        daemon.send(eventWith())
        await until(() => events.length === 1)
        assert.deepEqual(new Set(heard), new Set(['up']))
        daemon.hangUp()
        await untilHeard(reason.replace('TOKEN', home.apiToken))
        await fix()
        await untilHeard('up')
      })
})
