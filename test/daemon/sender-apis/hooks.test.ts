import assert from 'node:assert/strict'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { Hooks } from '../../../daemon/sender-apis/hooks.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import { check } from '../../support/daemon/config-files.ts'
import { type HookServer, startHookServer } from '../../support/servers/hook-api.ts'
import { json } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const path = '/webhook/github'
const entry = (more: string) => `webhooks:
  - path: ${path}
    agent: echo
    prompt_template: x
    signature_scheme: github
    secret_env: SECRET
    ${more}
`
const source = 'source: { provider: github, repository: acme/door, hook_id: 1000 }'
const { signal } = new AbortController()

describe('hooks at senders', () => {
  let server: HookServer
  let home: Home
  beforeEach(async () => {
    server = await startHookServer()
    home = await temporaryHome()
  })
  afterEach(() => server.close())

  const hooksOf = (webhooks: string, events = new EventStore(10)) => {
    const gateway = `server: { public_url: https://gateway.example }
targets: { github: { api_url: "${server.apiUrl}" } }
`
    const config = check({ webhooks, gateway })
    const access = async () => ({
      provider: 'github',
      accessToken: 'gho_1',
      tokenType: 'bearer',
      expiresAt: null,
      scopes: [],
    })
    return new Hooks({
      home,
      current: () => ({ config, env: { SECRET: 'a secret' } }),
      access,
      events,
      pingMs: 50,
    })
  }
  const request = { path, provider: 'github', repository: 'acme/door' } as const

  it('asks for the events that the rules name, and for all where one names none', async () => {
    const eventsFor = async (more: string) => {
      const made = await hooksOf(entry(more)).connect(request, signal)
      server.hooks.splice(0)
      return made.events
    }
    assert.deepEqual(await eventsFor('on: [push, pull_request.opened, pull_request.closed]'), [
      'push',
      'pull_request',
    ])
    assert.deepEqual(await eventsFor('filter: { action: opened }'), ['*'])
    assert.deepEqual(await eventsFor('rules: [{ name: a, on: push }, { name: b }]'), ['*'])
  })

  it('says that a ping did not come, and what the sender got for it', async () => {
    const hooks = hooksOf(entry(source))
    server.addHook('acme/door', `https://gateway.example${path}`)
    assert.deepEqual(await hooks.ping(path, signal), {
      arrived: false,
      answer: 'failed to connect',
    })
  })

  it('makes the hook again when it was deleted, and refuses another repository', async () => {
    const hooks = hooksOf(entry(source))
    server.addHook('acme/door', 'https://other.example/').active = false
    server.hooks.splice(0)
    assert.equal((await hooks.connect(request, signal)).state, 'created')
    await assert.rejects(
      hooks.connect({ ...request, repository: 'acme/window' }, signal),
      (error) => error instanceof DoorwardError && error.code === 'hook-foreign',
    )
  })

  it('knows the hook that it made when the command was ended before it noted that', async () => {
    const hooks = hooksOf(entry(''))
    await hooks.connect(request, signal)
    server.addHook('acme/door', 'https://other.example/')
    assert.equal((await hooks.connect({ ...request, check: true }, signal)).state, 'exists')
    const again = await hooks.connect(request, signal)
    assert.deepEqual([again.state, again.hookId, server.hooks.length], ['updated', 1000, 2])
    const [listed] = server.hooks.splice(0)
    // Of another daemon, or of a person.
    server.addHook('acme/door', listed?.config.url ?? '')
    await assert.rejects(hooksOf(entry('')).connect(request, signal), /did not make \(1000\)/)
  })

  it('names the page that authorizes a token for single sign-on', async () => {
    const page = `${new URL(server.apiUrl).origin}/orgs/acme/sso?authorization_request=A`
    server.next(json(403, { message: 'SAML' }, { 'x-github-sso': `required; url=${page}` }))
    const error = await hooksOf(entry(''))
      .connect(request, signal)
      .catch((failure: unknown) => failure)
    assert.ok(error instanceof DoorwardError && error.code === 'source-failed')
    assert.equal(error.message, 'GitHub answered 403: SAML')
    assert.equal(error.hint, `authorize the token within an hour at ${page}`)
  })

  it('shows the words of a refusal, and no secret', async () => {
    server.addHook('acme/door', 'https://gateway.example/webhook/github')
    const hooks = hooksOf(entry(source.replace('1000', '7')))
    await assert.rejects(hooks.connect(request, signal), /did not make \(1000\)/)
    server.hooks.splice(0)
    const [listed] = await hooks.list(signal)
    assert.equal(listed?.state, 'missing')
    assert.deepEqual(await hooks.disconnect(path, signal), {
      removed: false,
      provider: 'github',
      repository: 'acme/door',
      hookId: 7,
    })
  })
})
