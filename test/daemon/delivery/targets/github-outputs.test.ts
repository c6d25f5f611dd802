import assert from 'node:assert/strict'
import type { OutputAction } from '../../../../shared/targets/outputs.ts'
import { createCommentMarks, OwnMessages } from '../../../../daemon/delivery/loop-guard.ts'
import type { AgentReply, ResolvedTarget } from '../../../../daemon/delivery/sender.ts'
import type { OutputResult } from '../../../../shared/api/api.ts'
import { deliverWith, makeReply } from '../../../support/servers/deliver.ts'
import { type GithubServer, startGithubServer } from '../../../support/servers/github-server.ts'
import { json, reset } from '../../../support/servers/target-server.ts'

const target: ResolvedTarget = {
  kind: 'github-outputs',
  text: 'outputs:acme/door#7',
  address: 'acme/door#7',
}

describe('the requests of an answer at GitHub', () => {
  let server: GithubServer
  afterEach(() => server.close())

  const run = async (actions: readonly OutputAction[], more: Partial<AgentReply> = {}) => {
    const messages = new OwnMessages()
    const login = more.bot === undefined ? { token_env: 'TOKEN' } : {}
    const test = deliverWith(
      { github: { api_url: server.apiUrl, ...login } },
      { env: { TOKEN: 'ghp_x' }, tokens: { 'github@acme': ['ghs_bot'] }, messages },
    )
    const outputs: OutputResult[] = []
    const links: unknown[] = []
    const deliver = async () =>
      test.deliver([target], makeReply('', { actions, ...more }), {
        requested: (happened) => outputs.push(...happened),
        made: (link) => links.push(link),
      })
    const [result] = await deliver()
    return { result, outputs, links, messages, granted: test.granted, again: deliver }
  }
  const posts = () =>
    server.requests
      .filter(({ method }) => method !== 'GET')
      .map(({ method, path }) => `${method} ${path.replace('/api/v3/repos/acme/door', '')}`)
  const issueOf = (number: number) => server.tracker.issues.find((one) => one.number === number)

  it('sets labels that the repository has, and makes none', async () => {
    server = await startGithubServer()
    const labels = ['BUG', 'no such', 'good first issue', 'a/b?c#d']
    const { result, outputs } = await run([{ kind: 'labels', labels }])
    assert.deepEqual([result?.state, result?.detail], ['done', 'labels bug, good first issue'])
    assert.deepEqual(outputs, [
      { kind: 'labels', state: 'done' },
      { kind: 'labels', state: 'dropped', why: 'the repository has no label no such, a/b?c#d' },
    ])
    assert.deepEqual(issueOf(7)?.labels, ['bug', 'good first issue'])
    assert.equal(server.tracker.labels.length, 4)
  })

  it('assigns whom GitHub lets be assigned, and says whom not', async () => {
    server = await startGithubServer()
    const { result, outputs } = await run([{ kind: 'assign', assign: ['ada', 'mallory'] }])
    assert.equal(result?.detail, 'assigned ada')
    assert.deepEqual(outputs, [
      { kind: 'assign', state: 'done' },
      {
        kind: 'assign',
        state: 'dropped',
        why: 'GitHub does not let mallory be assigned there',
      },
    ])
    assert.deepEqual(issueOf(7)?.assignees, ['ada'])
    const nobody = await run([{ kind: 'assign', assign: ['mallory'] }])
    assert.deepEqual(
      nobody.outputs.map(({ state }) => state),
      ['dropped'],
    )
  })

  it('comments beside another comment with the same words, and opens an issue, with links', async () => {
    server = await startGithubServer()
    const { result, links } = await run([
      { kind: 'comment', body: 'Hello' },
      { kind: 'issue', title: '[door] T', body: 'B', labels: ['triage'] },
    ])
    assert.equal(result?.state, 'done')
    const marks = createCommentMarks('an api token')
    assert.equal(marks.isOwn(server.comments[0]?.body ?? ''), true)
    const issue = issueOf(12)
    assert.deepEqual([issue?.title, issue?.labels], ['[door] T', ['triage']])
    assert.equal(marks.isOwn(issue?.body ?? ''), true)
    assert.deepEqual(links, [
      {
        target: 'outputs:acme/door#7',
        what: 'comment',
        url: `${server.origin}/acme/door/pull/7#issuecomment-1`,
      },
      {
        target: 'outputs:acme/door#7',
        what: 'issue #12',
        url: `${server.origin}/acme/door/issues/12`,
      },
    ])
  })

  it('keeps links of its own server and of the owner, and no others', async () => {
    server = await startGithubServer()
    const { origin } = server
    const body = `See ${origin}/acme/door and https://docs.example.com/a, not https://evil.example`
    const publish = { allowedLinks: ['docs.example.com'] }
    await run([{ kind: 'comment', body: `${body} @ada` }], { publish })
    const sent = body.replace('https://evil', 'https:\u200b//evil')
    const posted = server.comments[0]?.body ?? ''
    assert.ok(posted.includes(`${sent} @\u200bada`), posted)
  })

  it('repeats nothing that arrived, and goes on where it failed', async () => {
    server = await startGithubServer()
    const taken = (kept: (fields: Readonly<Record<string, unknown>>) => void) =>
      server.next((...asked) => {
        kept(asked[1].fields)
        return reset(...asked)
      })
    taken(({ body }) => server.comments.push({ id: 1, body: String(body) }))
    const actions: readonly OutputAction[] = [
      { kind: 'comment', body: 'Hello' },
      { kind: 'issue', title: 'T', body: 'B', labels: [] },
    ]
    const { result, outputs } = await run(actions)
    assert.deepEqual([result?.state, result?.attempts], ['done', 2])
    assert.deepEqual([server.comments.length, server.tracker.issues.length], [1, 3])
    assert.deepEqual(
      outputs.map(({ state }) => state),
      ['done', 'done'],
    )
    const user = { login: 'octocat', id: 583_231, type: 'User' } as const
    taken(({ title, body }) =>
      server.tracker.issues.push({
        number: 20,
        title: String(title),
        body: String(body),
        state: 'open',
        user,
        labels: [],
        assignees: [],
      }),
    )
    const second = await run([{ kind: 'issue', title: 'U', body: 'C', labels: [] }])
    assert.equal(second.result?.detail, 'an earlier attempt had arrived')
    assert.equal(server.tracker.issues.filter(({ title }) => title === 'U').length, 1)
  })

  it('tells what happened before a step that fails, and a retry begins with that', async () => {
    server = await startGithubServer()
    server.next(
      (...asked) => json(201, { html_url: `${server.origin}/c` })(...asked),
      json(403, { message: 'no' }),
    )
    const actions: readonly OutputAction[] = [
      { kind: 'comment', body: 'Hello' },
      { kind: 'issue', title: 'T', body: 'B', labels: [] },
    ]
    const { result, outputs, again } = await run(actions)
    assert.equal(result?.state, 'failed')
    assert.match(result?.detail ?? '', /part 2 of 2.*write access to issues/)
    assert.deepEqual(outputs, [{ kind: 'comment', state: 'done' }])
    const [retried] = await again()
    assert.equal(retried?.state, 'done')
    assert.deepEqual(posts(), ['POST /issues/7/comments', 'POST /issues', 'POST /issues'])
  })

  it('closes an issue that doorward opened, and no other', async () => {
    server = await startGithubServer()
    await run([{ kind: 'issue', title: 'T', body: 'B', labels: [] }])
    const ours = issueOf(12)
    const stranger = { login: 'mallory', id: 666, type: 'User' } as const
    const copy = { number: 13, title: 'T', state: 'open', labels: [], assignees: [] } as const
    server.tracker.issues.push({
      ...copy,
      body: ours?.body ?? '',
      user: stranger,
      labels: [],
      assignees: [],
    })
    const why = async (number: number) => {
      const { outputs } = await run([{ kind: 'close', number, own: true }])
      return outputs.map((output) => output.why ?? output.state).join()
    }
    assert.equal(await why(13), 'doorward did not open #13, or its text was edited')
    assert.equal(await why(3), 'doorward did not open #3, or its text was edited')
    assert.equal(await why(7), '#7 is a pull request')
    assert.equal(await why(999), 'there is no issue #999')
    assert.equal(issueOf(13)?.state, 'open')
    assert.equal(await why(12), 'done')
    assert.equal(ours?.state, 'closed')
    const before = posts().length
    const { result } = await run([{ kind: 'close', number: 12, own: true }])
    assert.deepEqual([result?.detail, posts().length], ['#12 was closed already', before])
    await run([{ kind: 'close', number: 3, own: false }])
    assert.equal(issueOf(3)?.state, 'closed')
  })

  it('asks of a bot only what a step needs', async () => {
    server = await startGithubServer({ isApp: true })
    const { granted, result } = await run(
      [
        { kind: 'labels', labels: ['bug'] },
        { kind: 'issue', title: 'T', body: 'B', labels: [] },
        { kind: 'close', number: 12, own: true },
      ],
      { bot: 'github@acme' },
    )
    assert.equal(result?.state, 'done')
    assert.deepEqual(granted, [
      { issues: 'write', pull_requests: 'write' },
      { issues: 'write' },
      { issues: 'write' },
    ])
    assert.equal(issueOf(12)?.state, 'closed')
  })

  it('starts no rule by what it does, and a person does later', async () => {
    server = await startGithubServer()
    const { messages } = await run([
      { kind: 'labels', labels: ['bug'] },
      { kind: 'assign', assign: ['ada'] },
      { kind: 'close', number: 3, own: false },
    ])
    const repository = { full_name: 'acme/door' }
    const now = new Date().toISOString()
    const later = new Date(Date.now() + 600_000).toISOString()
    const labeled = (name: string, updated_at: string, number = 7) => ({
      action: 'labeled',
      label: { name },
      repository,
      pull_request: { number, updated_at },
    })
    assert.equal(messages.isOwnAct(labeled('bug', now)), true)
    for (const other of [
      labeled('bug', later),
      labeled('docs', now),
      labeled('bug', now, 8),
      { ...labeled('bug', now), action: 'unlabeled' },
      { ...labeled('bug', now), repository: { full_name: 'acme/window' } },
      {},
      null,
    ])
      assert.equal(messages.isOwnAct(other), false)
    const issue = { number: 3, updated_at: now }
    assert.equal(messages.isOwnAct({ action: 'closed', issue, repository }), true)
    const assignee = { login: 'ada' }
    const pull_request = { number: 7, updated_at: now }
    assert.equal(
      messages.isOwnAct({ action: 'assigned', assignee, pull_request, repository }),
      true,
    )
  })
})
