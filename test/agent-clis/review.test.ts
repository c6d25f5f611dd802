import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../shared/config/load.ts'
import { readEnvironment } from '../../shared/config/environment.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { run } from '../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { storeLogin } from '../support/providers/stored-login.ts'
import { send } from '../support/servers/http.ts'
import { type ModelServer, startModelServer } from '../support/servers/model-server.ts'
import {
  type PullRequestScene,
  reviewOf,
  startPullRequest,
} from '../support/servers/pull-request.ts'
import { githubHeaders } from '../support/servers/sign.ts'
import { temporaryFolder, temporaryHome } from '../support/temporary.ts'

/*
 * One signed delivery of GitHub, the agent program itself, and a review: the model asks for a file of the
 * checkout, which the program reads by its own tool in the sandbox.
 */

const programs = fileURLToPath(
  new URL('../../../test/agent-clis/node_modules/.bin', import.meta.url),
)

/** In a file that the change leaves as it is. */
const canary = `canary-${Math.random().toString(36).slice(2)}`

/** What `storeLogin` stores. */
const token = 'of-before'

const codexConfig = (origin: string): string => `model = "fake-model"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "${origin}/v1"
env_key = "FAKE_KEY"
wire_api = "responses"
`

const reads = {
  claude: (path: string) => ({ name: 'Read', input: { file_path: path } }),
  codex: (path: string) => ({ name: 'exec_command', input: { cmd: `cat ${path}` } }),
} as const
const kinds = ['claude', 'codex'] as const

describe('the review of a pull request by the agent programs themselves', function () {
  this.timeout(120_000)
  let model: ModelServer
  let scene: PullRequestScene
  let daemon: RunningDaemon
  let user: string
  let variables: Record<string, string>

  before(async function () {
    if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
    model = await startModelServer()
    scene = await startPullRequest(token, { 'lib/greeting.txt': `${canary}\n` })
    user = await temporaryFolder()
    await mkdir(join(user, '.codex'))
    await writeFile(join(user, '.codex', 'config.toml'), codexConfig(model.origin))
    variables = { HOME: user, PATH: [programs, process.env['PATH']].join(delimiter) }
    const home = await temporaryHome({
      gateway: scene.gateway,
      env: 'FAKE_KEY=key-canary\n',
      agents: `agents:
  claude:
    kind: claude
    env: { ANTHROPIC_BASE_URL: "${model.origin}", ANTHROPIC_API_KEY: "env:FAKE_KEY" }
  codex:
    kind: codex
    env: { FAKE_KEY: "env:FAKE_KEY" }
`,
    })
    await storeLogin(home, 'github', 'a refresh token')
    for (const kind of kinds) {
      const args = ['webhook', 'add', 'github-review', '--agent', kind, '--path', `/${kind}`]
      const { code, stdout, stderr } = await run(args, { home, env: variables })
      assert.equal(code, 0, stderr)
      assert.match(stdout, /may now read the checkout, in a sandbox/)
    }
    daemon = await startDaemon({ home, variables })
  })
  after(async () => {
    await daemon?.stop()
    scene?.close()
    model?.close()
  })

  for (const kind of kinds)
    it(`is written by ${kind}, which reads a file that is not in the diff`, async () => {
      const seen = model.requests.length
      const payload = await scene.push({ 'hello.txt': `hello\n${kind}\n` }, 'opened')
      const comment = { path: 'hello.txt', line: 2, body: 'Why twice?' }
      model.behave({
        kind: 'asks-for-tool',
        ...reads[kind]('lib/greeting.txt'),
        answer: (results) => reviewOf(`The file says: ${results}`, comment),
      })
      const secret = String(
        (await readEnvironment(daemon.home))[`${kind.toUpperCase()}_WEBHOOK_SECRET`],
      )
      const reply = await send(`${daemon.url}/${kind}`, {
        headers: githubHeaders(payload, secret),
        body: payload,
      })
      assert.equal(reply.status, 202, reply.text)
      const event = await untilFinished(daemon, String(reply.json()['id']))
      assert.equal(event.state, 'done', event.detail)
      assert.equal(event.targets[0]?.detail, undefined)

      const requests = model.requests.slice(seen).filter(({ body }) => body.includes(`+${kind}`))
      assert.ok(!requests[0]?.body.includes(canary))
      const review = scene.github.reviews.at(-1)
      assert.match(review?.body ?? '', new RegExp(`The file says: .*${canary}`))
      assert.equal(review?.commit_id, scene.github.pull.head)
      const [line] = review?.comments ?? []
      assert.deepEqual([line?.path, line?.line, line?.side], ['hello.txt', 2, 'RIGHT'])
      assert.match(line?.body ?? '', /Why twice\?/)

      // The token of the login fetched and posted; the program and its model saw nothing of it.
      assert.deepEqual([...new Set(scene.git.logins)], [`x-access-token:${token}`])
      for (const { body } of model.requests) assert.ok(!body.includes(token))
      const mirrors = await readdir(daemon.home.workspaces)
      for (const mirror of mirrors)
        assert.deepEqual(await readdir(join(daemon.home.workspaces, mirror, 'runs')), [])
    })

  it('comes from rules of which config check warns of Codex alone, as it can read its login', async () => {
    const checked = await run(['config', 'check'], { home: daemon.home, env: variables })
    assert.equal(checked.code, 0, checked.stderr)
    const warnings = checked.stderr.replaceAll(/\s+/g, ' ').split('warning: ').slice(1)
    assert.equal(warnings.length, 1, checked.stderr)
    assert.match(warnings[0] ?? '', /read its own login in the sandbox \(codex, /)
    const { webhooks } = await loadConfig(daemon.home, {})
    assert.equal(webhooks.length, 2)
  })
})
