import assert from 'node:assert/strict'
import { readFile, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { fixtureAgent } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'secret-canary-of-the-webhook'
const agentKey = 'secret-canary-of-the-agent'
const command = (script: string) =>
  JSON.stringify([process.execPath, '-e', script, '--', 'argument'])

describe('what goes through the daemon', () => {
  let daemon: RunningDaemon
  const sign = (body: string) => githubHeaders(body, secret, { 'x-canary': 'header-canary' })
  const post = (path: string, body: string, headers = sign(body)) =>
    send(`${daemon.url}${path}`, { headers, body })
  const finished = async (path: string, payload: object): Promise<EventDetail> => {
    const reply = await post(path, JSON.stringify(payload))
    assert.equal(reply.status, 202, reply.text)
    return untilFinished(daemon, String(reply.json()['id']))
  }

  before(async () => {
    daemon = await startDaemon({
      variables: { DOORWARD_LOG_LEVEL: 'trace' },
      env: `HOOK_SECRET=${secret}\nAGENT_KEY=${agentKey}\nNEVER_PASSED=secret-canary-too\n`,
      agents: `
agents:
  echo: { kind: echo }
  env: { kind: command, command: ${JSON.stringify(fixtureAgent('prints-env'))}, env: { KEY: "env:AGENT_KEY" } }
  fails: { kind: command, command: ${command('console.log("answer-canary"); console.error("stderr-canary"); process.exitCode = 3')} }
  slow: { kind: command, timeout: 300ms, command: ${command('console.error("stderr-canary"); setInterval(() => 0, 60000)')} }
  missing: { kind: command, command: [no-such-program, argv-canary] }
`,
      webhooks: `
webhooks:
  - { path: /echo, agent: echo, secret_env: HOOK_SECRET, title: "{{event.text}}", prompt_template: "prompt-canary {{event.text}}", deliver_to: [notify:desktop, "file:{{event.name}}"] }
  - { path: /env, agent: env, secret_env: HOOK_SECRET, prompt_template: "prompt-canary {{event}}" }
  - { path: /fails, agent: fails, secret_env: HOOK_SECRET, title: "{{event.text}}", prompt_template: "prompt-canary {{event}}" }
  - { path: /slow, agent: slow, secret_env: HOOK_SECRET, prompt_template: "prompt-canary {{event}}" }
  - { path: /missing, agent: missing, secret_env: HOOK_SECRET, prompt_template: "prompt-canary {{event}}" }
  - { path: /log, agent: echo, secret_env: HOOK_SECRET, prompt_template: "stdout-only-canary", deliver_to: log }
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('leaves no word of a payload, title, prompt, answer, secret or standard error in its log', async () => {
    const payload = { text: 'payload-canary', name: 'answers.md' }
    assert.equal((await finished('/echo', payload)).state, 'done')
    const hostile = await finished('/echo', { ...payload, name: '../payload-canary' })
    assert.deepEqual([hostile.state, hostile.code], ['failed', 'target-invalid'])
    const environment = await finished('/env', payload)
    assert.equal(environment.code, 'answer-has-secret')
    assert.match(
      environment.result ?? '',
      /"KEY": ?"\[secret: env-value\]"|KEY=\[secret: env-value\]/,
    )
    for (const canary of [agentKey, secret, 'NEVER'])
      assert.ok(!environment.result?.includes(canary))
    const failed = await finished('/fails', payload)
    assert.deepEqual([failed.code, failed.stage], ['agent-failed', 'agent'])
    assert.match(failed.detail ?? '', /stderr-canary/)
    assert.equal(failed.subject?.title, 'payload-canary')
    assert.equal((await finished('/slow', payload)).code, 'agent-timeout')
    assert.equal((await finished('/missing', payload)).code, 'agent-not-found')
    assert.equal((await finished('/log', payload)).state, 'done')
    assert.equal((await post('/echo', '{"payload-canary', sign('{"payload-canary'))).status, 400)
    assert.equal((await post('/echo', '{}', githubHeaders('{}', 'wrong-canary'))).status, 401)
    const query = { headers: { authorization: 'Bearer token-canary' }, method: 'GET' }
    assert.equal((await send(`${daemon.url}/status?query-canary=1`, query)).status, 401)
    assert.equal((await send(`${daemon.url}/path-canary`, query)).status, 404)
    await daemon.stop()

    const logs = await readdir(daemon.home.logs)
    assert.ok(logs.includes('daemon.log'))
    for (const name of logs) {
      const path = join(daemon.home.logs, name)
      assert.equal((await stat(path)).mode & 0o777, 0o600)
      const text = await readFile(path, 'utf8')
      assert.doesNotMatch(text, /canary/)
      assert.ok(!text.includes(daemon.apiToken))
      for (const state of ['done', 'failed', 'rejected'])
        assert.match(text, new RegExp(`"state":"${state}"`))
      assert.match(
        text,
        /"detail":"the signature does not match the body and the secret; none of the usual causes applies/,
      )
    }
    assert.doesNotMatch(daemon.stderr(), /canary/)
    assert.deepEqual(daemon.stdout().match(/\S*canary\S*/g), ['stdout-only-canary'])
  })

  it('is on no disk but where its target put it', async () => {
    const found: string[] = []
    const entries = await readdir(daemon.home.root, { recursive: true, withFileTypes: true })
    for (const entry of entries)
      if (entry.isFile()) {
        const path = join(entry.parentPath, entry.name)
        if (/payload-canary|prompt-canary hello/.test(await readFile(path, 'utf8')))
          found.push(entry.name)
      }
    assert.deepEqual(found, ['answers.md'])
  })
})
