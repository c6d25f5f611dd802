import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { BotCreation } from '../../../shared/api/bots.ts'
import type { EventLink } from '../../../shared/api/api.ts'
import { isListenerOurs } from '../../../daemon/tunnel/programs.ts'
import { prepareHome } from '../../../shared/home/home.ts'
import type { StartMessage } from '../../../shared/client/spawn.ts'
import { run } from '../../cli/support/cli.ts'
import {
  type RunningDaemon,
  spawnDaemon,
  startDaemon,
  untilFinished,
} from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { hasOtherUser, runAsOther, squatAsOther, squatBeside } from '../../support/other-user.ts'
import { filesIn, temporaryHome } from '../../support/temporary.ts'

/** Tries to read and to write each path, and says how the system answered. */
const tryPaths = `
import { readFileSync, readdirSync, readlinkSync, statSync, openSync, writeFileSync, symlinkSync } from 'node:fs'
const result = {}
for (const path of JSON.parse(process.argv.at(-1))) {
  const attempt = (action) => {
    try { action(); return 'done' } catch (error) { return error.code }
  }
  result[path] = {
    read: attempt(() => readFileSync(path)),
    list: attempt(() => readdirSync(path)),
    follow: attempt(() => readlinkSync(path)),
    write: attempt(() => openSync(path, 'r+')),
    make: attempt(() => writeFileSync(path + '/planted', 'x')),
    link: attempt(() => symlinkSync('/etc/passwd', path + '/planted-link')),
  }
}
process.stdout.write(JSON.stringify(result))`

type Tried = Readonly<Record<string, Readonly<Record<string, string>>>>

const secrets = {
  env: 'a secret of the env file',
  variable: 'a secret of the environment',
  token: 'a-token-of-the-test',
}

/** A program that prints status and text of a page. */
const readPage = `
  import { get } from 'node:http'
  get(process.argv.at(-1), { agent: false }, (answer) => {
    let text = ''
    answer.on('data', (chunk) => (text += chunk)).on('end', () =>
      process.stdout.write(JSON.stringify([answer.statusCode, text])))
  })`

describe('another user of this machine', () => {
  let daemon: RunningDaemon

  before(async () => {
    assert.ok(
      hasOtherUser(),
      'no program can be run as another user here: run as root, or let sudo work without a password',
    )
    const home = await temporaryHome({
      env: `HOOK_SECRET=${secrets.env}\n`,
      webhooks: `webhooks:
  - { path: /hook, agent: echo, prompt_template: "{{event.text}}" }
`,
    })
    await prepareHome(home)
    for (const folder of [home.tokens, home.clients])
      await writeFile(
        join(folder, 'mine.json'),
        JSON.stringify({ accessToken: secrets.token, clientSecret: secrets.token }),
        { mode: 0o600 },
      )
    daemon = await startDaemon({ home, variables: { OTHER_SECRET: secrets.variable } })
  })
  after(() => daemon?.stop())

  it('reads, lists, changes and plants nothing in a home', async () => {
    const { home } = daemon
    const files = (await filesIn(home.root)).map((name) => join(home.root, name))
    const folders = [home.root, home.config, home.run, home.logs, home.tokens, home.clients]
    assert.ok(files.includes(home.apiToken) && files.includes(home.log))
    const tried = await runAsOther<Tried>(tryPaths, JSON.stringify([...files, ...folders]))
    for (const [path, answers] of Object.entries(tried))
      for (const [what, answer] of Object.entries(answers))
        // The name of the home itself is no secret: that it is no link may be seen.
        assert.ok(path === home.root ? answer !== 'done' : answer === 'EACCES', `${what} ${path}`)
  })

  it('reads no secret where the folders of a home have been opened under the daemon', async () => {
    const { home } = daemon
    const folders = [home.root, home.run, home.logs, home.tokens, home.clients]
    const modes = await Promise.all(folders.map(async (folder) => (await stat(folder)).mode))
    await Promise.all(folders.map((folder) => chmod(folder, 0o755)))
    try {
      const names = (await filesIn(home.root)).filter((name) => /env$|token|clients|log/.test(name))
      const paths = names.map((name) => join(home.root, name))
      assert.ok(paths.length >= 5, names.join())
      const tried = await runAsOther<Tried>(tryPaths, JSON.stringify(paths))
      for (const [path, { read, write }] of Object.entries(tried))
        assert.deepEqual([read, write], ['EACCES', 'EACCES'], path)
    } finally {
      await Promise.all(folders.map((folder, place) => chmod(folder, modes[place] ?? 0o700)))
    }
  })

  it('learns nothing from /proc but the command line, on which there is no secret', async () => {
    const pid = daemon.process.pid ?? 0
    const names = ['environ', 'mem', 'maps', 'fd', 'cwd', 'root', 'stack', 'io']
    const paths = names.map((name) => `/proc/${pid}/${name}`)
    const tried = await runAsOther<Tried>(tryPaths, JSON.stringify(paths))
    for (const [path, { read, list, follow }] of Object.entries(tried))
      assert.ok(![read, list, follow].includes('done'), path)
    const commandLine = await runAsOther<string>(
      `import { readFileSync } from 'node:fs'
       process.stdout.write(JSON.stringify(readFileSync(process.argv.at(-1), 'utf8')))`,
      `/proc/${pid}/cmdline`,
    )
    assert.match(commandLine, /daemon/)
    for (const secret of [...Object.values(secrets), daemon.apiToken])
      assert.ok(!commandLine.includes(secret))
  })

  it('gets nothing from the local API, and what /health tells everyone', async () => {
    const script = `
      const base = process.argv.at(-1)
      const result = {}
      for (const path of ['/health', '/status', '/events', '/oauth/tokens', '/oauth/tokens/mine/access'])
        result[path] = await fetch(base + path, { headers: { 'sec-fetch-mode': '' } }).then(
          async (answer) => [answer.status, await answer.text()])
      process.stdout.write(JSON.stringify(result))`
    const answers = await runAsOther<Record<string, [number, string]>>(script, daemon.url)
    const { '/health': health, ...others } = answers
    assert.deepEqual(Object.keys(JSON.parse(health?.[1] ?? '') as object).sort(), [
      'name',
      'status',
      'version',
    ])
    for (const [status] of Object.values(others)) assert.ok([401, 403].includes(status))
  })

  it('opens no page of an event, not even by a link that it has seen, and does not use it up', async () => {
    const { id } = (
      await send(`${daemon.url}/hook`, {
        headers: { 'content-type': 'application/json' },
        body: '{"text":"for its owner alone"}',
      })
    ).json()
    await untilFinished(daemon, String(id))
    const { url } = await daemon.client.post<EventLink>(`/events/${String(id)}/link`)
    const [status, text] = await runAsOther<[number, string]>(readPage, url)
    assert.equal(status, 403)
    assert.ok(!text.includes('for its owner alone'))
    const opened = await send(url, { method: 'GET' })
    assert.equal(opened.status, 303)
    const [cookie = ''] = opened.headers['set-cookie'] ?? []
    const mine = await send(new URL(String(opened.headers.location), url).href, {
      method: 'GET',
      headers: { cookie: cookie.split(';')[0] ?? '' },
    })
    assert.equal(mine.status, 200)
    assert.ok(mine.text.includes('for its owner alone'))
  })

  it('opens no page that makes a bot, not even by its address, and does not use it up', async () => {
    const { url = '' } = await daemon.client.post<BotCreation>('/bots', { provider: 'github' })
    const [status, text] = await runAsOther<[number, string]>(readPage, url)
    assert.deepEqual([status, text], [404, ''])
    const mine = await send(url, { method: 'GET' })
    assert.equal(mine.status, 200)
    assert.match(mine.text, /state=/)
  })

  it('that has the port before the daemon is told nothing, and the daemon does not start', async () => {
    const squatter = await squatAsOther('127.0.0.1', 0)
    const home = await temporaryHome({ env: `HOOK_SECRET=${secrets.env}\n` })
    const child = spawnDaemon(home, { DOORWARD_PORT: String(squatter.port) })
    let stderr = ''
    child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
    await once(child, 'close')
    const heard = await squatter.end()
    assert.equal(child.exitCode, 1)
    assert.match(stderr, /is taken by /)
    assert.match(heard, /^GET \/health /)
    assert.doesNotMatch(heard, /authorization|bearer|secret/i)
  })

  it('that listens where the agent of ngrok usually does names no address for a tunnel', async () => {
    const squatter = await squatAsOther('127.0.0.1', 0)
    assert.equal(await isListenerOurs(squatter.port), false)
    await squatter.end()
    assert.equal(await isListenerOurs(Number(new URL(daemon.url).port)), true)
  })

  it('that takes the port of a daemon that was killed gets no token from any command', async () => {
    const killed = await startDaemon({})
    const { port } = new URL(killed.url)
    const ended = once(killed.process, 'exit')
    killed.process.kill('SIGKILL')
    await ended
    killed.client.close()
    const squatter = await squatAsOther('127.0.0.1', Number(port))
    const env = { DOORWARD_PORT: port }
    for (const args of [
      ['status', '--no-start'],
      ['oauth', 'token', 'github', '--no-start'],
      ['events', '--no-start'],
      ['webhook', 'list', '--no-start'],
    ])
      assert.equal((await run(args, { home: killed.home, env })).code, 3, args.join(' '))
    // The number of its process may be another's by now: then only the proof tells.
    const left = JSON.parse(await readFile(killed.home.daemonJson, 'utf8')) as object
    await writeFile(killed.home.daemonJson, JSON.stringify({ ...left, pid: process.pid }))
    for (const args of [
      ['status', '--no-start'],
      ['events', '--no-start'],
      ['daemon', 'status'],
    ])
      assert.notEqual((await run(args, { home: killed.home, env })).code, 0, args.join(' '))
    const heard = await squatter.end()
    assert.match(heard, /^GET \/health /m)
    assert.doesNotMatch(heard, /authorization|bearer/i)
    assert.ok(!heard.includes(killed.apiToken))
  })

  it('that has the same port of the other loopback family hears of nothing', async () => {
    for (const [host, other] of [
      ['127.0.0.1', '::1'],
      ['::1', '127.0.0.1'],
      ['localhost', '::1'],
      ['localhost', '127.0.0.1'],
    ] as const) {
      const squatter = await squatBeside(other === '::1' ? '127.0.0.1' : '::1', other)
      const home = await temporaryHome({
        gateway: `server: { host: "${host}" }\noauth: { callback_port: 0 }\n`,
        webhooks: 'webhooks:\n  - { path: /hook, agent: echo, prompt_template: "{{event}}" }\n',
      })
      const env = { DOORWARD_PORT: String(squatter.port) }
      const child = spawnDaemon(home, env)
      const ended = once(child, 'exit')
      const [told] = (await once(child, 'message')) as [StartMessage]
      if ('code' in told) {
        // `localhost` was the family that is taken: it says so and does not start.
        assert.equal(host, 'localhost')
        assert.equal(told.code, 'port-in-use')
        assert.deepEqual(await ended, [1, null])
      } else {
        for (const args of [
          ['status', '--no-start'],
          ['webhook', 'send', '/hook', '--sample', 'github:ping', '--no-start'],
          ['events', '--no-start'],
        ])
          assert.equal((await run(args, { home, env })).code, 0, `${host}: ${args.join(' ')}`)
        // A browser that is sent to a name may try the other family first.
        assert.doesNotMatch(await readFile(home.daemonJson, 'utf8'), /localhost/)
        child.kill('SIGTERM')
        await ended
      }
      const heard = await squatter.end()
      assert.doesNotMatch(heard, /authorization|bearer|x-hub/i)
      if ('url' in told) assert.equal(heard, '', `${host} beside ${other}`)
    }
  })

  it('that holds the callback port, of either family, keeps a login from starting', async () => {
    for (const host of ['127.0.0.1', '::1'] as const) {
      const squatter = await squatAsOther(host, 0)
      const other = await startDaemon({
        gateway: `oauth: { callback_port: ${squatter.port} }
providers: { mine: { authorization_endpoint: "https://id.example/a", token_endpoint: "https://id.example/t", client_id: x, redirect_host: localhost } }
`,
      })
      const bearer = { authorization: `Bearer ${other.apiToken}` }
      const refused = await send(`${other.url}/oauth/start`, {
        headers: { ...bearer, 'content-type': 'application/json' },
        body: '{"provider":"mine"}',
      })
      assert.equal(refused.status, 409)
      assert.equal(refused.json()['code'], 'callback-port-in-use')
      assert.ok(!refused.text.includes('id.example'))
      assert.equal(await other.stop(), 0)
      assert.equal(await squatter.end(), '')
    }
  })
})
