import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'mocha'
import type { EventDetail } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { packageFolder } from '../../../shared/version.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type ModelServer, startModelServer } from '../../support/servers/model-server.ts'
import { type PullRequestScene, startPullRequest } from '../../support/servers/pull-request.ts'
import { json } from '../../support/servers/target-server.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'

/** What `storeLogin` stores. */
const token = 'of-before'
const repository = { full_name: 'acme/door' }
const sender = { login: 'ada', type: 'User' }

/** An agent that changes a file, whatever it is asked. */
const fixer = `
  fixer:
    kind: command
    command: ['${process.execPath}', '-e', 'fs.writeFileSync("hello.txt", "fixed"); console.log("Greet again")']
`

describe('the whole rules of webhook add', () => {
  let scene: PullRequestScene
  let model: ModelServer
  let daemon: RunningDaemon
  let home: Home
  let folder: string

  before(async () => {
    scene = await startPullRequest(token)
    scene.github.roles.set('ada', 'write')
    model = await startModelServer()
    folder = await temporaryFolder()
    home = await temporaryHome({
      gateway: scene.gateway,
      env: 'SENTRY_WEBHOOK_SECRET=a-secret-of-sentry\n',
      agents: `agents:\n  claude: { kind: openai, base_url: "${model.origin}/v1", model: m }\n${fixer}`,
    })
    await storeLogin(home, 'github', 'a refresh token')
  })
  after(async () => {
    await daemon.stop()
    scene.close()
    model.close()
  })

  const doorward = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args, { home })
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout + stderr
  }
  /** Sends a delivery as its sender signs it. */
  const deliver = async (name: string, payload: object, path = '/webhook/github-mention') => {
    const file = join(folder, 'payload.json')
    await writeFile(file, JSON.stringify({ repository, sender, ...payload }))
    const sent = await doorward('webhook', 'send', path, file, '--event', name, '--json')
    const { id, events = [{ id }] } = JSON.parse(sent) as { id: string; events?: { id: string }[] }
    const ended = await Promise.all(events.map(async (event) => untilFinished(daemon, event.id)))
    return ended[0] as EventDetail
  }
  const answer = (text: string) => model.behave({ kind: 'answers', text })

  it('are added one beside the other, and pass config check', async () => {
    for (const recipe of ['github-mention', 'ci-failure'])
      assert.match(
        await doorward('webhook', 'add', recipe),
        /webhook +http.*\/webhook\/github-mention$/m,
      )
    await doorward('webhook', 'add', 'github-fix', '--agent', 'fixer', '--repo', 'acme/door')
    await doorward('webhook', 'add', 'sentry-fix', '--agent', 'fixer', '--repo', 'acme/door')
    assert.match(await doorward('config', 'check'), /ok: 2 webhooks with 4 rules/)
    const text = await readFile(join(home.config, 'webhooks.yaml'), 'utf8')
    const indented = async (name: string) => {
      const recipe = await readFile(new URL(`assets/recipes/${name}.yaml`, packageFolder), 'utf8')
      return recipe.replaceAll(/^(?=.)/gm, '      ')
    }
    for (const name of ['github-mention', 'ci-failure'])
      assert.ok(text.includes(await indented(name)), name)
    daemon = await startDaemon({ home })
  })

  it('answer a comment that names doorward with what the change is', async () => {
    await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened')
    answer('It greets you.')
    const event = await deliver('issue_comment', {
      action: 'created',
      issue: { number: 7, title: 'Greet', pull_request: {} },
      comment: { id: 1, body: '@doorward whom does this greet?' },
    })
    assert.equal(event.state, 'done', event.detail)
    const asked = model.requests.at(-1)?.body ?? ''
    assert.match(asked, /whom does this greet\?[^]*\+you/)
    assert.match(scene.github.comments.at(-1)?.body ?? '', /It greets you\./)
  })

  it('say why a build failed', async () => {
    const head_sha = scene.github.pull.head
    scene.github.next(
      json(200, { total_count: 1, jobs: [{ id: 1, name: 'unit', conclusion: 'failure' }] }),
      (response) =>
        void response.writeHead(302, { location: `${scene.github.origin}/signed` }).end(),
      (response) => void response.end('expected hello\n##[error]exit code 1\n'),
    )
    answer('The greeting is wrong.')
    const workflow_run = {
      id: 5,
      name: 'test',
      conclusion: 'failure',
      head_branch: 'change',
      head_sha,
      head_commit: { message: 'Greet' },
      pull_requests: [{ number: 7 }],
    }
    const event = await deliver('workflow_run', { action: 'completed', workflow_run })
    assert.equal(event.state, 'done', event.detail)
    assert.match(model.requests.at(-1)?.body ?? '', /job unit failed[^]*expected hello/)
    assert.match(scene.github.comments.at(-1)?.body ?? '', /The greeting is wrong\./)
  })

  it('open a pull request for an issue with a label, and answer there', async () => {
    const label = (name: string) =>
      deliver('issues', {
        action: 'labeled',
        issue: { number: 7, title: 'It greets nobody', body: 'Please greet.' },
        label: { name },
      })
    assert.equal((await label('bug')).state, 'filtered')
    const event = await label('doorward')
    assert.equal(event.state, 'done', event.detail)
    const [pull] = scene.github.pulls
    assert.equal(pull?.title, 'Greet again')
    assert.match(scene.github.comments.at(-1)?.body ?? '', /Greet again/)
  })

  it('open a pull request for an error', async () => {
    const error = { issue_id: '1', title: 'TypeError', culprit: 'greet', exception: { values: [] } }
    const alert = { action: 'triggered', data: { event: error } }
    const event = await deliver('event_alert', alert, '/webhook/sentry')
    assert.equal(event.state, 'done', event.detail)
    assert.equal(scene.github.pulls.length, 2)
  })
})
