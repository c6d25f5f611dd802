import assert from 'node:assert/strict'
import type { AgentReply } from '../../../../daemon/delivery/sender.ts'
import {
  type ChangeScene,
  startChangeScene,
  toEventId,
} from '../../../support/servers/change-scene.ts'
import { reset } from '../../../support/servers/target-server.ts'

const own = 'doorward/fix-0123456789'
const to = 'push:acme/door#7'

describe('a push to the branch of a pull request', () => {
  let scene: ChangeScene
  beforeEach(async () => {
    scene = await startChangeScene()
  })
  afterEach(() => scene.close())

  /** The pull request #7 from this branch; returns its head. */
  const openFrom = async (ref: string): Promise<string> => {
    const head = await scene.server.push({ a: 'one\n' }, { to: `refs/heads/${ref}` })
    Object.assign(scene.github.pull, { head, ref })
    return head
  }
  const push = async (
    from: string,
    more: Partial<AgentReply> = {},
    files: Parameters<ChangeScene['change']>[0] = { a: 'fixed\n' },
  ) => {
    const code = await scene.change(files, from)
    const { result, ...rest } = await scene.deliver(code, { to, ...more })
    return { ...result, ...rest }
  }
  const headOf = async (ref: string) => scene.served('rev-parse', ref)

  it('adds a commit to the head that the agent saw, and knows it as its own', async () => {
    const head = await openFrom(own)
    const { state, detail, messages, granted, shown } = await push(own)
    const commit = await headOf(own)
    assert.deepEqual([state, detail], ['done', `commit ${commit.slice(0, 7)} on #7`])
    assert.equal(await headOf(`${own}^`), head)
    assert.equal(await scene.served('show', `${own}:a`), 'fixed')
    // Its preview names the files, and the tree that was pushed.
    const tree = await scene.served('rev-parse', `${own}^{tree}`)
    assert.match(shown ?? '', new RegExp(`\\ba +\\|[^]*tree ${tree}, on ${head}$`))
    const synchronize = { action: 'synchronize', pull_request: { head: { sha: commit } } }
    assert.ok(messages.isOwnCommit(synchronize))
    assert.equal(scene.github.pulls.length, 0)
    // The token of a bot can do no more.
    assert.deepEqual(granted, [{ contents: 'write', pull_requests: 'read' }])
  })

  it('goes to the branch of a person only with allow_push, and never to the default branch', async () => {
    const head = await openFrom('ada')
    const refused = await push('ada')
    assert.equal(refused.code, 'push-not-allowed')
    assert.match(refused.detail ?? '', /branch ada is not one of doorward .*allow_push: true/)
    assert.equal(await headOf('ada'), head)
    const publish = { allowsPush: true }
    assert.equal((await push('ada', { publish })).state, 'done')
    await openFrom('main')
    assert.equal((await push('main', { publish })).code, 'push-not-allowed')
  })

  it('does not go to a fork, a closed pull request, or a branch of a strange name', async () => {
    const head = await openFrom(own)
    const code = await scene.change({ a: 'fixed\n' }, own)
    const refused = async () => (await scene.deliver(code, { to })).result
    scene.github.pull.repository = 'mallory/door'
    assert.equal((await refused())?.code, 'push-fork')
    scene.github.pull.repository = 'acme/door'
    scene.github.pull.state = 'closed'
    assert.match((await refused())?.detail ?? '', /is closed/)
    delete scene.github.pull.state
    for (const ref of ['doorward/a:refs/heads/main', 'doorward/../main', 'doorward/a b', '']) {
      scene.github.pull.ref = ref
      assert.equal((await refused())?.code, 'push-not-allowed')
    }
    assert.deepEqual([await headOf(own), scene.github.pulls.length], [head, 0])
  })

  it('does not go where someone has pushed since, also while it is under way', async () => {
    await openFrom(own)
    const code = await scene.change({ a: 'fixed\n' }, own)
    const newer = await scene.server.push({ b: 'x\n' }, { to: `refs/heads/${own}` })
    // The API says so, or does not know it yet.
    for (const head of [newer, scene.github.pull.head]) {
      scene.github.pull.head = head
      const { result } = await scene.deliver(code, { to })
      assert.deepEqual([result?.state, result?.code], ['failed', 'branch-moved'])
      scene.github.pull.head = code.head
    }
    const { result } = await scene.deliver(code, { to })
    assert.equal(result?.code, 'branch-moved')
    assert.equal(await headOf(own), newer)
  })

  it('does not go twice, and says nothing of what the agent did not change', async () => {
    await openFrom(own)
    const code = await scene.change({ a: 'fixed\n' }, own)
    scene.github.next(reset)
    assert.equal((await scene.deliver(code, { to })).result?.attempts, 2)
    const none = await push(own, {}, {})
    assert.equal(none.detail, 'the agent changed nothing: nothing was pushed')
  })

  it('refuses the same files as a pull request', async () => {
    await openFrom(own)
    const { detail } = await push(own, {}, { CODEOWNERS: '* @mallory\n' })
    assert.match(detail ?? '', /does not allow: CODEOWNERS \(says whose review is needed\)/)
  })

  it('ends with max_attempts, where the rule has it, and asks a person', async () => {
    await openFrom(own)
    const publish = { maxAttempts: 1 }
    const about = { key: 'acme/door#7', title: 'x', kind: 'pull request' }
    const as = (id: number) => ({ eventId: toEventId(id), subject: about })
    assert.equal((await push(own, { publish, ...as(1) })).state, 'done')
    scene.github.pull.head = await headOf(own)
    const { detail } = await push(own, { publish, ...as(2) }, { a: 'again\n' })
    assert.match(detail ?? '', /nothing was pushed: max_attempts is 1.*at #7 asks a person$/)
    assert.equal(scene.github.comments.length, 1)
    assert.equal(await headOf(own), scene.github.pull.head)
  })
})
