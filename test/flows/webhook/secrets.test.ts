import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { makeJwt } from '../../support/made-secrets.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'

const hookSecret = 'the-secret-of-the-webhook'
const stagingKey = 'the-key-of-the-staging-site'
const refreshToken = 'the-refresh-token-of-the-login'

describe('an answer with a secret', () => {
  let daemon: RunningDaemon
  let target: TargetServer
  let agent: string
  const finished = async (path: string, text: string): Promise<EventDetail> => {
    const body = JSON.stringify({ text })
    const reply = await send(`${daemon.url}${path}`, {
      body,
      headers: githubHeaders(body, hookSecret),
    })
    assert.equal(reply.status, 202, reply.text)
    return untilFinished(daemon, String(reply.json()['id']))
  }

  before(async () => {
    target = await startTargetServer()
    agent = join(await temporaryFolder(), 'agent.mjs')
    await writeFile(agent, 'console.log("key:", process.env.KEY)\n')
    const command = JSON.stringify([process.execPath, agent])
    const targets = '["file:answers.md", "http:other", log, "notify:desktop"]'
    const rule = `secret_env: HOOK_SECRET, prompt_template: "{{event.text}}", deliver_to: ${targets}`
    const home = await temporaryHome({
      env: `HOOK_SECRET=${hookSecret}\nSTAGING_KEY=${stagingKey}\nUNUSED=a-variable-that-nothing-uses\n`,
      gateway: `targets: { http: { other: { url: ${target.origin}, sign: false } } }\n`,
      agents: `
agents:
  echo: { kind: echo }
  leaks: { kind: command, command: ${command}, env: { KEY: "env:STAGING_KEY" } }
`,
      webhooks: `
webhooks:
  - { path: /echo, agent: echo, ${rule} }
  - { path: /leaks, agent: leaks, ${rule} }
  - { path: /allows, agent: echo, allow_secrets: [jwt], ${rule} }
`,
    })
    await storeLogin(home, 'google', refreshToken, 0)
    daemon = await startDaemon({ home, variables: { DOORWARD_LOG_LEVEL: 'trace' } })
  })
  after(async () => {
    target.close()
    await daemon.stop()
  })
  const written = async (name: string) =>
    readFile(join(daemon.home.root, name), 'utf8').catch(() => '')

  it('goes to no target, and its value is in no event, page, log or file', async () => {
    const event = await finished('/leaks', 'hello')
    assert.deepEqual(
      [event.state, event.stage, event.code],
      ['failed', 'deliver', 'answer-has-secret'],
    )
    assert.match(
      event.detail ?? '',
      /the value of STAGING_KEY \(env-value\) in line 1 of the answer/,
    )
    assert.equal(event.result?.trim(), 'key: [secret: env-value]')
    assert.equal(event.resultPreview?.trim(), 'key: [secret: env-value]')
    assert.ok(event.targets?.every(({ state }) => state === 'waiting'))
    assert.equal(target.requests.length, 0)
    assert.equal(await written('answers.md'), '')
    const said = [
      JSON.stringify(await daemon.client.get('/events')),
      JSON.stringify(event),
      daemon.stdout(),
      daemon.stderr(),
    ]
    for (const name of await readdir(daemon.home.logs))
      said.push(await readFile(join(daemon.home.logs, name), 'utf8'))
    for (const text of said) assert.ok(!text.includes(stagingKey), text)
    assert.match(said.at(-1) ?? '', /answer-has-secret/)
  })

  it('runs its agent again where its owner retries it: the answer without the secret is no answer', async () => {
    const { id } = await finished('/leaks', 'hello')
    await writeFile(agent, 'console.log("all is well")\n')
    await daemon.client.post(`/events/${id}/retry`, {})
    const event = await untilFinished(daemon, id)
    assert.deepEqual([event.state, event.result?.trim()], ['done', 'all is well'])
    assert.match(await written('answers.md'), /all is well/)
    assert.equal(target.requests.length, 1)
  })

  it('is refused for each secret that doorward holds, in any usual encoding', async () => {
    const before = target.requests.length
    const { apiToken } = daemon
    for (const [secret, kind] of [
      [hookSecret, 'env-value'],
      [refreshToken, 'login-token'],
      ['of-before', 'login-token'],
      [apiToken, 'api-token'],
    ] as const)
      for (const text of [
        secret,
        Buffer.from(`x${secret}`).toString('base64'),
        Buffer.from(secret).toString('hex'),
      ]) {
        const event = await finished('/echo', `see ${text}`)
        assert.equal(event.code, 'answer-has-secret', kind)
        assert.match(event.result ?? '', new RegExp(`^see \\S*\\[secret: ${kind}\\]`))
      }
    assert.equal(target.requests.length, before)
  })

  it('is delivered where the rule allows its kind', async () => {
    const jwt = makeJwt({ sub: 'ada' })
    assert.equal((await finished('/echo', jwt)).code, 'answer-has-secret')
    assert.equal((await finished('/allows', jwt)).state, 'done')
    const held = await finished('/allows', refreshToken)
    assert.equal(held.code, 'answer-has-secret')
  })

  it('is another than one with what the configuration does not use', async () => {
    assert.equal((await finished('/echo', 'a-variable-that-nothing-uses')).state, 'done')
  })
})
