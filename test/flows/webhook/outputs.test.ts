import assert from 'node:assert/strict'
import type { EventDetail } from '../../../shared/api/api.ts'
import type { Explanation } from '../../../shared/api/explain.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { run } from '../../cli/support/cli.ts'
import { type GithubServer, startGithubServer } from '../../support/servers/github-server.ts'
import { type GitlabServer, startGitlabServer } from '../../support/servers/gitlab-server.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('a webhook whose answers request labels, comments and issues', () => {
  let daemon: RunningDaemon
  let github: GithubServer
  let gitlab: GitlabServer

  before(async () => {
    ;[github, gitlab] = await Promise.all([startGithubServer(), startGitlabServer()])
    const home = await temporaryHome({
      env: 'GITHUB_TOKEN_OF_TARGET=ghp_canary\nGITLAB_TOKEN_OF_TARGET=glpat\nSECRET=a-secret-of-the-hook',
      gateway: `
oauth: { callback_port: 0 }
targets:
  github: { api_url: "${github.apiUrl}", token_env: GITHUB_TOKEN_OF_TARGET }
  gitlab: { api_url: "${gitlab.apiUrl}", token_env: GITLAB_TOKEN_OF_TARGET }
`,
      webhooks: `
webhooks:
  - path: /github
    agent: echo
    event_text: plain
    signature_scheme: github
    secret_env: SECRET
    who: anyone
    prompt_template: "{{event.answer}}"
    deliver_to: 'file:answers.md'
    outputs:
      labels: { allowed: [bug, docs] }
      comment: {}
      issue: { title_prefix: '[door] ' }
      review: true
  - path: /asked
    agent: echo
    event_text: plain
    signature_scheme: github
    secret_env: SECRET
    who: anyone
    approve: true
    prompt_template: "{{event.answer}}"
    outputs: { labels: { allowed: [docs] }, comment: {}, review: true }
  - path: /open
    agent: echo
    event_text: plain
    signature_scheme: github
    who: anyone
    prompt_template: "{{event.answer}}"
    outputs: { comment: {} }
  - path: /gitlab
    agent: echo
    event_text: plain
    signature_scheme: gitlab
    secret_env: SECRET
    who: anyone
    prompt_template: "{{event.answer}}"
    outputs: { labels: {}, comment: {} }
`,
    })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
    gitlab.close()
  })

  const post = async (path: string, headers: object, body: string): Promise<EventDetail> => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
    const { id = '' } = reply.json() as { id?: string }
    return path === '/asked' ? untilWaiting(id) : untilFinished(daemon, id)
  }
  const untilWaiting = async (id: string): Promise<EventDetail> => {
    const event = await daemon.client.get<EventDetail>(`/events/${id}`)
    return event.state === 'waiting' ? event : untilWaiting(id)
  }
  const answering = async (requests: object, payload: object, path = '/github') => {
    const answer = `Read it.\n\n\`\`\`json\n${JSON.stringify(requests)}\n\`\`\``
    const repository = { full_name: 'acme/door' }
    const body = JSON.stringify({ action: 'opened', answer, repository, ...payload })
    return post(
      path,
      githubHeaders(body, 'a-secret-of-the-hook', { 'x-github-event': eventOf(payload) }),
      body,
    )
  }
  const eventOf = (payload: object) => ('issue' in payload ? 'issues' : 'pull_request')
  const pull = { pull_request: { number: 7, title: 'T' } }

  it('does what the rule allows at the place of the event, and tells the rest', async () => {
    const event = await answering(
      { labels: ['bug', 'evil'], comment: 'Hello', issue: { title: 'More', body: 'B' }, merge: 1 },
      pull,
    )
    assert.deepEqual([event.state, event.detail], ['done', undefined])
    assert.deepEqual(event.outputs, [
      { kind: 'other', state: 'dropped', why: 'no such request: merge' },
      { kind: 'labels', state: 'dropped', why: 'not in allowed: evil' },
      { kind: 'labels', state: 'done' },
      { kind: 'comment', state: 'done' },
      { kind: 'issue', state: 'done' },
    ])
    const { issues } = github.tracker
    assert.deepEqual(issues.find(({ number }) => number === 7)?.labels, ['bug'])
    assert.equal(issues.at(-1)?.title, '[door] More')
    assert.equal(github.comments.length, 1)
    assert.match(github.reviews[0]?.body ?? '', /\nRead it\.$/)
    assert.deepEqual(
      event.targets.map(({ target }) => target),
      ['file:answers.md', 'outputs:acme/door#7', 'github-review:acme/door#7'],
    )
    const shown = await run(['events', 'show', event.id], { home: daemon.home })
    assert.match(shown.stdout, /^output +labels: dropped: not in allowed: evil$/m)
    assert.match(shown.stdout, /^output +issue: done$/m)
  })

  it('is explained with what it would allow', async () => {
    const payload = JSON.stringify({ repository: { full_name: 'acme/door' }, ...pull })
    const { targets } = await daemon.client.post<Explanation>('/webhooks/explain', {
      path: '/github',
      payload,
    })
    assert.deepEqual(targets[1], {
      target: 'outputs:acme/door#7',
      parts: [
        '"labels": a list of at most 3 of bug, docs',
        '"comment": the text of a comment',
        '"issue": an object with the texts "title" and "body" of a new issue',
      ],
    })
  })

  it('takes no place from the answer, and leaves a review out where there is none', async () => {
    const event = await answering(
      { comment: 'x', repository: 'evil/repo', number: 1 },
      { issue: { number: 8 } },
    )
    assert.deepEqual(
      event.targets.map(({ target, state }) => [target, state]),
      [
        ['file:answers.md', 'done'],
        ['outputs:acme/door#8', 'done'],
      ],
    )
    assert.ok(github.requests.every(({ path }) => !path.includes('evil')))
  })

  it('waits for an approval, which shows each request as it is sent', async () => {
    const comments = [{ path: 'a.ts', line: 2, body: 'Why?' }]
    const requests = { labels: ['docs', 'bug'], comment: 'Approved', comments }
    const { id, targets, outputs } = await answering(requests, pull, '/asked')
    const sent = github.comments.length
    assert.equal(
      targets.find(({ target }) => target === 'outputs:acme/door#7')?.preview,
      '{"kind":"labels","labels":["docs"]}\n\n[next message]\n\n{"kind":"comment","body":"Approved"}',
    )
    assert.deepEqual(outputs, [{ kind: 'labels', state: 'dropped', why: 'not in allowed: bug' }])
    await daemon.client.post(`/events/${id}/approve`, { without: [0] })
    const event = await untilFinished(daemon, id)
    assert.equal(event.state, 'done', event.detail)
    assert.deepEqual(
      event.outputs?.map(({ kind, state }) => `${kind} ${state}`),
      ['labels dropped', 'labels done', 'comment done'],
    )
    assert.equal(github.comments.length, sent + 1)
    assert.doesNotMatch(github.reviews.at(-1)?.body ?? '', /Why\?|labels/)
  })

  it('does nothing for an event that nobody signed', async () => {
    const event = await answering({ comment: 'x' }, pull, '/open')
    assert.deepEqual([event.state, event.code], ['failed', 'target-invalid'])
    assert.match(event.detail ?? '', /without a signature/)
  })

  it('runs no rule for its own issue', async () => {
    await answering({ issue: { title: 'Another' } }, pull)
    const { number, title, body } = github.tracker.issues.at(-1) ?? {}
    const event = await answering({ comment: 'again' }, { issue: { number, title, body } })
    assert.equal(event.state, 'filtered')
    const edited = { number, title, body: `${body} edited` }
    assert.equal((await answering({}, { issue: edited })).state, 'done')
  })

  it('does the same at GitLab, by the project of the event', async () => {
    const answer = JSON.stringify({ labels: ['bug'], comment: 'Hello' })
    const body = JSON.stringify({
      object_kind: 'issue',
      project: { path_with_namespace: 'acme/tools/door' },
      object_attributes: { iid: 3, action: 'reopen', title: 'T' },
      answer,
    })
    const headers = { 'x-gitlab-token': 'a-secret-of-the-hook', 'x-gitlab-event': 'Issue Hook' }
    const event = await post('/gitlab', headers, body)
    assert.equal(event.state, 'done')
    assert.match(event.detail ?? '', /only requests/)
    assert.deepEqual(gitlab.tracker.issues[0]?.labels, ['bug'])
  })
})
