import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'dotenv'
import { hooksSchema } from '../../../../shared/api/hooks.ts'
import type { EventRecord } from '../../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon } from '../../../support/daemon/daemon.ts'
import { examined } from '../../../support/daemon/doctor.ts'
import { type HookServer, startHookServer } from '../../../support/servers/hook-api.ts'
import { json } from '../../../support/servers/target-server.ts'
import { hasTerminal, resultOf, run, startOnTerminal, untilSaid } from '../../support/cli.ts'
import { startContractServer } from '../../support/contract-server.ts'
import { authorized, started } from '../../support/login-server.ts'

const token = 'gho_never-shown-0123456789'
const path = '/webhook/github/acme/door'
const address = `https://gateway.example${path}`
const webhooks = `# mine\r
webhooks:\r
  - { path: /webhook/flow, agent: echo, prompt_template: x } # in one line\r
  - path: "/webhook/two" # of two
    agent: echo

    signature_scheme: github
    secret_env: TWO
    prompt_template: |
      a text
`

describe('cli: webhook connect', () => {
  let server: HookServer
  let daemon: RunningDaemon

  beforeEach(async () => {
    server = await startHookServer()
    const gateway = `oauth: { callback_port: 0 }
server: { public_url: https://gateway.example/ }
targets: { github: { token_env: GH, api_url: "${server.apiUrl}" } }
`
    const env = `GH=${token}\nTWO=secret-of-two\n`
    daemon = await startDaemon({ gateway, webhooks, env })
    server.tunnel = daemon.url
  })
  afterEach(async () => {
    server.close()
    await daemon.stop()
  })

  const cli = async (...args: string[]) => {
    const result = await run(['webhook', ...args], { home: daemon.home })
    assert.ok(!(result.stdout + result.stderr).includes(token))
    return result
  }
  const connect = async (...more: string[]) => cli('connect', 'github', 'acme/door', ...more)
  const file = () => readFile(join(daemon.home.config, 'webhooks.yaml'), 'utf8')
  const secrets = async () => parse(await readFile(daemon.home.env, 'utf8'))
  const line = (id: number) =>
    `    source: { provider: github, repository: acme/door, hook_id: ${id} }\n`

  it('makes hook, webhook and secret, shows the ping, and does nothing twice', async () => {
    const { code, stdout, stderr } = await connect()
    assert.equal(code, 0, stderr)
    assert.match(stdout, /acme\/door, hook 1000 created/)
    assert.match(stdout, /evt_\w+ arrived/)
    const text = await file()
    assert.ok(text.startsWith(webhooks))
    assert.ok(text.includes(line(1000).trimEnd()))
    const secret = (await secrets())['GITHUB_ACME_DOOR_WEBHOOK_SECRET'] ?? ''
    assert.match(secret, /^[0-9a-f]{64}$/)
    assert.ok(!(stdout + stderr + text).includes(secret))
    const [hook] = server.hooks
    assert.deepEqual(
      [hook?.config, hook?.events, hook?.active],
      [{ url: address, secret }, ['pull_request'], true],
    )

    if (hook) hook.active = false
    const again = await connect()
    assert.equal(again.code, 0, again.stderr)
    assert.match(again.stdout, /acme\/door, hook 1000 updated/)
    assert.deepEqual([await file(), server.hooks.length], [text, 1])
    assert.deepEqual([hook?.active, hook?.config.secret], [true, secret])
  })

  it('connects a webhook that exists, and disconnects it, without touching another byte', async () => {
    const { code, stderr } = await connect('--path', '/webhook/two')
    assert.equal(code, 0, stderr)
    const two = '  - path: "/webhook/two" # of two\n'
    assert.equal(await file(), webhooks.replace(two, two + line(1000)))
    // Without `on`, any event can run it.
    assert.deepEqual(server.hooks[0]?.events, ['*'])
    assert.equal(server.hooks[0]?.config.secret, 'secret-of-two')

    const gone = await cli('disconnect', 'Acme/Door')
    assert.equal(gone.code, 0, gone.stderr)
    assert.match(gone.stdout, /deleted hook 1000 of acme\/door/)
    assert.deepEqual([await file(), server.hooks.length], [webhooks, 0])
    const twice = await cli('disconnect', 'acme/door')
    assert.match(twice.stderr, /no webhook is connected to "acme\/door"/)
  })

  it('lists the hooks with what the sender got as an answer, and whether it came here', async () => {
    assert.match((await cli('hooks')).stderr, /no webhook is connected/)
    await connect()
    const listed = await cli('hooks', '--json')
    const { hooks } = hooksSchema.parse(JSON.parse(listed.stdout))
    assert.deepEqual(
      hooks.map(({ state, last }) => [state, last?.event, last?.ok, last?.answer, last?.here]),
      [['active', 'ping', true, '202 OK', true]],
    )
    const [hook] = server.hooks
    if (hook) hook.active = false
    assert.match(
      (await cli('hooks')).stderr,
      /switched off; switch it on: doorward webhook connect/,
    )
    if (hook) hook.config.url = 'https://elsewhere.example/'
    if (hook) hook.active = true
    assert.match((await cli('hooks')).stderr, /delivers to another address/)
    server.hooks.splice(0)
    assert.match((await cli('hooks')).stderr, /was deleted at the sender/)
    const made = await connect()
    assert.equal(made.code, 0, made.stderr)
    assert.match(made.stdout, /created/)
  })

  it('lets doctor compare what the sender last delivered with what came here', async () => {
    await connect()
    const doctor = async () => {
      const { of } = await examined(daemon.home, {}, '--online')
      const [check] = of('tunnel', 'hook of acme/door')
      return [check?.status, check?.detail]
    }
    const [status, detail = ''] = await doctor()
    assert.equal(status, 'ok', detail)
    assert.match(detail, /^ping, \S+ ago, to \/webhook\/github\/acme\/door: answered 202 OK, and/)
    const [delivery] = server.hooks[0]?.deliveries ?? []
    assert.ok(delivery)
    delivery.guid = 'another'
    assert.match((await doctor()).join(': '), /^warning: .* got 202 OK, but nothing came here/)
    Object.assign(delivery, { status: 'failed to connect', status_code: 0 })
    assert.match((await doctor()).join(': '), /^warning: .* could not deliver .* failed to connect/)
    server.hooks.splice(0)
    assert.match((await doctor()).join(': '), /^warning: the hook was deleted at the sender/)
  })

  it('needs no public address with --poll, and runs the first event that is read', async () => {
    const home = daemon.home
    await writeFile(
      join(home.config, 'gateway.yaml'),
      `targets: { github: { token_env: GH, api_url: "${server.apiUrl}" } }\n`,
    )
    const { code, stdout, stderr } = await connect('--poll')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /none: its deliveries are read from GitHub/)
    const [hook] = server.hooks
    assert.ok(hook)
    const placeholder = hook.config.url
    assert.match(placeholder, new RegExp(`^https://[0-9a-f]{16}\\.doorward\\.invalid${path}$`))
    const own = line(1000).replace(' }', ', mode: poll }').trim()
    assert.ok((await file()).includes(own))
    // GitHub cannot deliver it, and lists it.
    const guid = server.miss(hook, { payload: { action: 'opened', number: 1 } })
    const read = await run(['events', 'missed'], { home })
    assert.match(read.stderr, /nothing was missed/)
    const listed = await run(['events', '--json', '--webhook', path], { home })
    const { events } = JSON.parse(listed.stdout) as { events: EventRecord[] }
    assert.deepEqual(
      events.map(({ deliveryId, source }) => [deliveryId, source]),
      [[guid, 'api']],
    )
    assert.match((await cli('hooks')).stdout, /acme\/door +1000 +active/)
    const again = await connect()
    assert.match(again.stdout, /hook 1000 updated/)
    assert.equal(hook.config.url, placeholder)
    assert.ok((await file()).includes(own))
    const gitlab = await cli('connect', 'gitlab', 'acme/door', '--poll')
    assert.match(gitlab.stderr, /GitLab switches a hook off that reaches no address/)
  })

  it('makes a hook for each home that reads one repository by --poll', async () => {
    // Made by an earlier version, with one address for all.
    server.addHook('acme/door', `https://doorward.invalid${path}`)
    const other = await startDaemon({
      gateway: `oauth: { callback_port: 0 }\ntargets: { github: { token_env: GH, api_url: "${server.apiUrl}" } }\n`,
      env: `GH=${token}\n`,
    })
    try {
      for (const home of [daemon.home, other.home]) {
        const made = await run(['webhook', 'connect', 'github', 'acme/door', '--poll'], { home })
        assert.equal(made.code, 0, made.stderr)
        assert.match((await run(['webhook', 'hooks'], { home })).stdout, / active/)
      }
    } finally {
      await other.stop()
    }
    const urls = server.hooks.map(({ config }) => config.url)
    assert.equal(new Set(urls).size, 3)
    assert.ok(urls.every((url) => url.endsWith(`doorward.invalid${path}`)))
  })

  it('never touches a hook that somebody else made for the same address', async () => {
    for (let hook = 0; hook < 120; hook += 1)
      server.addHook('acme/door', `https://${hook}.example/`)
    const before = structuredClone(server.addHook('acme/door', address))
    const { code, stderr } = await connect()
    assert.equal(code, 1)
    assert.match(
      stderr,
      /acme\/door has a hook for this address that doorward did not make \(1120\)/,
    )
    assert.match(stderr, /delete it at GitHub/)
    assert.deepEqual(server.hooks.at(-1), before)
    assert.deepEqual([await file(), Object.keys(await secrets())], [webhooks, ['GH', 'TWO']])
    assert.ok(server.requests.every(({ method }) => method === 'GET'))
  })

  it('writes nothing when the token lacks a scope, or the sender refuses', async () => {
    server.scopes = ['user']
    const scope = await connect()
    assert.equal(scope.code, 4)
    assert.match(scope.stderr, /may not manage hooks: it lacks admin:repo_hook/)
    assert.match(scope.stderr, /give the token in GH the scope admin:repo_hook/)
    server.scopes = ['repo']
    const organisation = await cli('connect', 'github', 'acme')
    assert.match(organisation.stderr, /it lacks admin:org_hook/)
    assert.match((await cli('connect', 'github', 'acme/other')).stderr, /no such repository/)
    const limited = json(
      403,
      { message: 'You have exceeded a secondary rate limit.' },
      { 'retry-after': '30' },
    )
    server.next(limited)
    const waits = await connect()
    assert.match(waits.stderr, /GitHub rate limit reached \(403\)\n.*try again in 30 s/)
    server.next(json(401, { message: 'Bad credentials' }))
    assert.match((await connect()).stderr, /refused the token in GH/)
    server.next(json(500, {}))
    assert.match((await connect()).stderr, /answered 500/)
    assert.equal((await cli('connect', 'gitlabb', 'a/b')).code, 2)
    const pasted = await cli('connect', 'github', 'https://github.com/acme/door.git')
    assert.equal(pasted.code, 2)
    assert.match(pasted.stderr, /hint: doorward webhook connect github acme\/door$/m)
    assert.deepEqual([await file(), Object.keys(await secrets())], [webhooks, ['GH', 'TWO']])
  })

  it('connects an organisation', async () => {
    server.scopes = ['admin:org_hook']
    const { code, stdout, stderr } = await cli('connect', 'github', 'acme', '--on', 'push')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /\/webhook\/github\/acme, new/)
    assert.deepEqual([server.hooks[0]?.owner, server.hooks[0]?.events], ['acme', ['push']])
  })

  it('says that the ping was rejected', async () => {
    await connect()
    const { env } = daemon.home
    const text = await readFile(env, 'utf8')
    await writeFile(env, text.replace(/(GITHUB_ACME_DOOR_WEBHOOK_SECRET)=.*/, '$1=another'))
    const listed = json(200, [
      { id: server.hooks[0]?.id, active: true, events: [], config: { url: address } },
    ])
    // The sender ignores the new secret.
    server.next(listed, listed, json(200, {}))
    const { code, stderr } = await connect()
    assert.equal(code, 1)
    assert.match(stderr, /the ping came to .* and was rejected/)
  })
})

describe('cli: webhook connect, where the login lacks a scope', () => {
  it('asks for a further login with all scopes, and goes on', async function () {
    if (!hasTerminal()) return this.skip()
    let hasScope = false
    const daemon = await startContractServer(({ path: called }) => {
      if (called === '/oauth/start') return [201, started]
      if (called === '/oauth/tokens')
        return [200, { tokens: [{ provider: 'github@work', default: true, scopes: ['user'] }] }]
      if (called.startsWith('/oauth/logins/')) {
        hasScope = true
        return [200, authorized]
      }
      const about = { provider: 'github', scope: 'admin:repo_hook' }
      return hasScope
        ? [409, { code: 'hook-foreign', detail: 'that is enough', status: 409 }]
        : [409, { code: 'scope-missing', detail: 'a scope is missing', status: 409, about }]
    })
    const child = startOnTerminal('webhook connect github acme/door', {
      home: daemon.home,
      env: { BROWSER: 'true' },
    })
    const ended = resultOf(child)
    await untilSaid(child, 'stdout', /log in to github again, with admin:repo_hook\? \[y\/N\] /)
    child.stdin?.write('y\r')
    const { stdout } = await ended
    await daemon.close()
    assert.match(stdout, /that is enough/)
    assert.deepEqual(daemon.calls.find(({ path: called }) => called === '/oauth/start')?.body, {
      provider: 'github@work',
      scopes: ['user', 'admin:repo_hook'],
    })
  })
})
