import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../shared/api/api.ts'
import type { Home } from '../../../shared/home/home.ts'
import { run, stopStarted } from '../../cli/support/cli.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type ModelServer, startModelServer } from '../../support/servers/model-server.ts'
import {
  type PullRequestScene,
  reviewOf,
  startPullRequest,
} from '../../support/servers/pull-request.ts'
import { temporaryFolder, temporaryHome } from '../../support/temporary.ts'

/** What `storeLogin` stores. */
const token = 'of-before'

describe('a newcomer with a repository and a model', () => {
  let home: Home
  let scene: PullRequestScene
  let model: ModelServer
  let folder: string

  before(async () => {
    scene = await startPullRequest(token)
    model = await startModelServer()
    folder = await temporaryFolder()
    home = await temporaryHome({ gateway: scene.gateway })
    await storeLogin(home, 'github', 'a refresh token')
  })
  after(async () => {
    await stopStarted(home)
    scene.close()
    model.close()
  })

  const doorward = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await run(args, { home })
    assert.equal(code, 0, `${args.join(' ')}\n${stdout}${stderr}`)
    return stdout + stderr
  }
  const deliver = async (payload: string, ...more: string[]): Promise<string> => {
    const file = join(folder, 'payload.json')
    await writeFile(file, payload)
    const event = ['--event', 'pull_request']
    return doorward('webhook', 'send', '/webhook/github-review', file, ...event, ...more)
  }

  it('adds one rule by one command, and one push brings a review', async () => {
    await doorward(
      'agent',
      'add',
      'openai',
      'model',
      '--base-url',
      `${model.origin}/v1`,
      '--model',
      'm',
    )
    const added = await doorward('webhook', 'add', 'github-review')
    assert.match(added, /agent +model\n +sees the diff alone: an agent of kind openai has no tools/)
    assert.match(added, /doorward oauth import gh/)
    await doorward('daemon', 'start')
    assert.match(await doorward('config', 'check'), /ok: 1 webhook with 1 rule, 2 agents/)

    const body = 'Whom does this greet?'
    model.behave({
      kind: 'answers',
      text: reviewOf('It greets someone else.', { path: 'hello.txt', line: 2, body }),
    })
    const payload = await scene.push({ 'hello.txt': 'hello\nyou\n' }, 'opened')
    assert.match(await deliver(payload, '--wait'), /It greets someone else\./)

    const [request] = model.requests
    assert.match(request?.body ?? '', /\+you/)
    const [review] = scene.github.reviews
    assert.match(review?.body ?? '', /It greets someone else\./)
    assert.equal(review?.event, 'COMMENT')
    assert.equal(review?.commit_id, scene.github.pull.head)
    const [comment] = review?.comments ?? []
    assert.deepEqual([comment?.path, comment?.line, comment?.side], ['hello.txt', 2, 'RIGHT'])
    assert.match(comment?.body ?? '', /Whom does this greet\?/)
    assert.deepEqual([...new Set(scene.git.logins)], [`x-access-token:${token}`])
    const headers = scene.github.requests.map(({ headers: { authorization } }) => authorization)
    assert.deepEqual([...new Set(headers)], [`Bearer ${token}`])
    for (const file of ['webhooks', 'agents'])
      assert.ok(!(await readFile(join(home.config, `${file}.yaml`), 'utf8')).includes(token))
  })

  it('gets a review of the newest push only', async () => {
    model.behave({ kind: 'hangs' })
    const asked = model.untilAsked()
    await deliver(await scene.push({ 'hello.txt': 'hello\nme\n' }, 'synchronize'))
    await asked
    model.behave({ kind: 'answers', text: 'It greets all.' })
    const reviews = scene.github.reviews.length
    const newest = await scene.push({ 'hello.txt': 'hello\nall\n' }, 'synchronize')
    assert.match(await deliver(newest, '--wait'), /It greets all\./)
    assert.equal(scene.github.reviews.length, reviews + 1)
    assert.equal(scene.github.reviews.at(-1)?.commit_id, scene.github.pull.head)
    const { stdout } = await run(['events', '--json', '--webhook', '/webhook/github-review'], {
      home,
    })
    const { events } = JSON.parse(stdout) as { events: EventRecord[] }
    assert.deepEqual(
      events.map(({ state, code }) => [state, code]),
      [
        ['done', undefined],
        ['filtered', 'superseded'],
        ['done', undefined],
      ],
    )
  })
})
