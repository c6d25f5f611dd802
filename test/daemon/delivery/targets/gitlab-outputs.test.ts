import assert from 'node:assert/strict'
import type { OutputAction } from '../../../../shared/targets/outputs.ts'
import { createCommentMarks, OwnMessages } from '../../../../daemon/delivery/loop-guard.ts'
import type { OutputResult } from '../../../../shared/api/api.ts'
import { deliverWith, makeReply } from '../../../support/servers/deliver.ts'
import { type GitlabServer, startGitlabServer } from '../../../support/servers/gitlab-server.ts'
import { reset } from '../../../support/servers/target-server.ts'

describe('the requests of an answer at GitLab', () => {
  let server: GitlabServer
  afterEach(() => server.close())

  const run = async (actions: readonly OutputAction[], address = 'acme/tools/door!7') => {
    const messages = new OwnMessages()
    const test = deliverWith(
      { gitlab: { api_url: server.apiUrl, token_env: 'TOKEN' } },
      { env: { TOKEN: 'glpat-x' }, messages },
    )
    const outputs: OutputResult[] = []
    const links: { what: string; url: string }[] = []
    const [result] = await test.deliver(
      [{ kind: 'gitlab-outputs', text: `outputs:${address}`, address }],
      makeReply('', { actions }),
      {
        requested: (happened) => outputs.push(...happened),
        made: ({ what, url }) => links.push({ what, url }),
      },
    )
    return { result, outputs, links, messages }
  }

  it('sets labels that the project has, on a merge request and on an issue', async () => {
    server = await startGitlabServer()
    const labels = ['bug', 'docs', 'a,b']
    for (const address of ['acme/tools/door!7', 'acme/tools/door#3']) {
      const { result, outputs } = await run([{ kind: 'labels', labels }], address)
      assert.deepEqual([result?.state, result?.detail], ['done', 'labels bug'])
      assert.deepEqual(outputs, [
        { kind: 'labels', state: 'done' },
        { kind: 'labels', state: 'dropped', why: 'the project has no label docs, a,b' },
      ])
    }
    const { merge, issues, labels: known } = server.tracker
    assert.deepEqual([merge.labels, issues[0]?.labels, known.length], [['bug'], ['bug'], 3])
  })

  it('assigns by number, takes nobody away, and says whom GitLab did not assign', async () => {
    server = await startGitlabServer()
    const { outputs } = await run([{ kind: 'assign', assign: ['ADA', 'mallory'] }])
    assert.deepEqual(outputs, [
      { kind: 'assign', state: 'done' },
      { kind: 'assign', state: 'dropped', why: 'GitLab knows no mallory' },
    ])
    const second = await run([{ kind: 'assign', assign: ['Grace'] }])
    assert.deepEqual(second.outputs, [
      { kind: 'assign', state: 'dropped', why: 'GitLab did not assign Grace' },
    ])
    assert.deepEqual(server.tracker.merge.assignees, [{ id: 5 }])
  })

  it('writes a note, and opens an issue once', async () => {
    server = await startGitlabServer()
    const issue = { kind: 'issue', title: 'T', body: 'B', labels: ['triage'] } as const
    const { links } = await run([{ kind: 'comment', body: 'Hello' }, issue])
    assert.deepEqual(
      links.map(({ what }) => what),
      ['comment', 'issue #8'],
    )
    assert.equal(server.notes.length, 1)
    const made = server.tracker.issues.at(-1)
    assert.deepEqual([made?.title, made?.labels], ['T', ['triage']])
    assert.ok(createCommentMarks('an api token').isOwn(made?.description ?? ''))
    const other = { ...issue, title: 'U' }
    await run([other])
    server.next(reset)
    const { result } = await run([other])
    assert.deepEqual([result?.attempts, result?.detail], [2, 'an earlier attempt had arrived'])
    assert.equal(server.tracker.issues.length, 3)
  })

  it('closes an issue that doorward opened, and no other', async () => {
    server = await startGitlabServer()
    await run([{ kind: 'issue', title: 'T', body: 'B', labels: [] }])
    const { issues } = server.tracker
    const [, ours] = issues
    assert.ok(ours)
    issues.push({ ...ours, iid: 9, author: { id: 666 } })
    for (const [number, why] of [
      [9, 'doorward did not open #9, or its text was edited'],
      [3, 'doorward did not open #3, or its text was edited'],
      [999, 'there is no issue #999'],
      [8, undefined],
    ] as const) {
      const { outputs } = await run([{ kind: 'close', number, own: true }])
      assert.equal(outputs[0]?.why, why)
    }
    assert.deepEqual(
      issues.map(({ state }) => state),
      ['opened', 'closed', 'opened'],
    )
  })

  it('starts no rule by what it does', async () => {
    server = await startGitlabServer()
    const { messages } = await run([
      { kind: 'labels', labels: ['bug'] },
      { kind: 'assign', assign: ['ada'] },
    ])
    const updated_at = `${new Date().toISOString().slice(0, 19).replace('T', ' ')} UTC`
    const event = (changes: object, action = 'update') => ({
      object_kind: 'merge_request',
      project: { path_with_namespace: 'acme/tools/door' },
      object_attributes: { iid: 7, action, updated_at },
      changes,
    })
    const labels = (...titles: string[]) => ({
      previous: [{ title: 'old' }],
      current: [{ title: 'old' }, ...titles.map((title) => ({ title }))],
    })
    const assignees = { previous: [], current: [{ username: 'ada' }] }
    assert.equal(messages.isOwnAct(event({ labels: labels('bug'), updated_at: {} })), true)
    assert.equal(messages.isOwnAct(event({ assignees })), true)
    for (const other of [
      event({ labels: labels('bug', 'docs') }),
      event({ labels: { previous: [{ title: 'bug' }], current: [] } }),
      event({ labels: labels('bug'), title: {} }),
      event({}),
      event({}, 'close'),
    ])
      assert.equal(messages.isOwnAct(other), false)
  })
})
