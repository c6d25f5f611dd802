import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail } from '../../../shared/api/api.ts'
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

const page = async (name: string): Promise<string[]> => {
  const text = await readFile(new URL(`docs/${name}.md`, packageFolder), 'utf8')
  return [...text.matchAll(/^```yaml\n([^]*?)^```/gm)].map(([, block = '']) => block)
}

/** An agent that changes a file, whatever it is asked. */
const fixer = `
  fixer:
    kind: command
    command: ['${process.execPath}', '-e', 'fs.writeFileSync("hello.txt", "fixed"); console.log("Greet again")']
`

describe('the rules of the pages about failed builds and fixes', () => {
  let scene: PullRequestScene
  let model: ModelServer
  let daemon: RunningDaemon
  let folder: string

  before(async () => {
    scene = await startPullRequest(token)
    model = await startModelServer()
    folder = await temporaryFolder()
    const [ci = ''] = await page('ci-failures')
    const [, fixes = ''] = await page('fixes')
    const home = await temporaryHome({
      gateway: scene.gateway,
      env: 'GITHUB_REVIEW_WEBHOOK_SECRET=a-secret\nSENTRY_WEBHOOK_SECRET=another\n',
      agents: `agents:\n  claude: { kind: openai, base_url: "${model.origin}/v1", model: m }\n${fixer}`,
      webhooks: `${fixes.replaceAll('acme/shop', 'acme/door').replace(', notify:desktop', '')}
  - path: /webhook/github-review
    signature_scheme: github
    secret_env: GITHUB_REVIEW_WEBHOOK_SECRET
    rules:
${ci.replace(/^/gm, '      ')}`,
    })
    await storeLogin(home, 'github', 'a refresh token')
    daemon = await startDaemon({ home })
  })
  after(async () => {
    await daemon.stop()
    scene.close()
    model.close()
  })

  /** Sends a delivery as its sender signs it. */
  const deliver = async (path: string, name: string, payload: unknown): Promise<EventDetail> => {
    const file = join(folder, 'payload.json')
    await writeFile(file, JSON.stringify(payload))
    const args = ['webhook', 'send', path, file, '--event', name, '--json']
    const { code, stdout, stderr } = await run(args, { home: daemon.home })
    assert.equal(code, 0, stderr)
    return untilFinished(daemon, (JSON.parse(stdout) as { id: string }).id)
  }

  it('keep one comment with the cause of a failed build', async () => {
    const head_sha = await scene.git.git('rev-parse', 'HEAD')
    const workflow_run = {
      id: 5,
      name: 'test',
      conclusion: 'failure',
      head_branch: 'change',
      head_sha,
      head_commit: { message: 'Greet' },
      pull_requests: [{ number: 7 }],
    }
    const repository = { full_name: 'acme/door' }
    const failed = { action: 'completed', workflow_run, repository }
    for (const words of ['The greeting is wrong.', 'It is wrong again.']) {
      scene.github.next(
        json(200, { total_count: 1, jobs: [{ id: 1, name: 'unit', conclusion: 'failure' }] }),
        (response) =>
          void response.writeHead(302, { location: `${scene.github.origin}/signed` }).end(),
        (response) => void response.end('expected hello\n##[error]exit code 1\n'),
      )
      model.behave({ kind: 'answers', text: words })
      const event = await deliver('/webhook/github-review', 'workflow_run', failed)
      assert.equal(event.state, 'done', event.detail)
      assert.match(model.requests.at(-1)?.body ?? '', /job unit failed[^]*expected hello/)
    }
    assert.equal(scene.github.comments.length, 1)
    assert.match(scene.github.comments[0]?.body ?? '', /It is wrong again\./)
    const green = { ...failed, workflow_run: { ...workflow_run, conclusion: 'success' } }
    assert.equal((await deliver('/webhook/github-review', 'workflow_run', green)).state, 'filtered')
  })

  it('open a pull request that fixes an error', async () => {
    const error = { issue_id: '1', title: 'TypeError', culprit: 'greet', exception: { values: [] } }
    const alert = { action: 'triggered', data: { event: error } }
    const event = await deliver('/webhook/sentry', 'event_alert', alert)
    assert.equal(event.state, 'done', event.detail)
    const [pull] = scene.github.pulls
    assert.deepEqual([pull?.title, pull?.base], ['Greet again', 'main'])
    const branch = `doorward/${event.id}`
    assert.equal(
      await scene.git.git(`--git-dir=${scene.git.folder}`, 'show', `${branch}:hello.txt`),
      'fixed',
    )
  })
})
