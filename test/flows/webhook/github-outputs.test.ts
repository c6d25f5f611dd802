import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type GithubServer,
  headOfPull,
  type ReviewBody,
  startGithubServer,
} from '../../support/servers/github-server.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { send } from '../../support/servers/http.ts'
import { json } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('a webhook whose answers become reviews, checks and comments', () => {
  let daemon: RunningDaemon
  let github: GithubServer

  before(async () => {
    github = await startGithubServer()
    const patch = '@@ -1 +1,2 @@\n one\n+two'
    github.pull.files.push({ filename: 'a.ts', status: 'modified', patch })
    const home = await temporaryHome({
      env: 'GITHUB_TOKEN_OF_TARGET=ghp_canary',
      gateway: `
oauth: { callback_port: 0 }
targets: { github: { api_url: "${github.apiUrl}", token_env: GITHUB_TOKEN_OF_TARGET } }
`,
      webhooks: `
webhooks:
  - path: /github
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    rules:
      - name: review
        deliver_to: 'github-review:acme/door#{{event.number}}'
      - name: check
        deliver_to: 'github-check:acme/door@{{event.sha}}'
      - name: comment
        deliver_to: 'github:acme/door#{{event.number}}'
        update: true
`,
    })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
  })

  const post = async (payload: object) => {
    const reply = await send(`${daemon.url}/github`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    })
    const { events = [] } = reply.json() as { events?: readonly { id: string }[] }
    return Promise.all(events.map(async ({ id }) => untilFinished(daemon, id)))
  }

  it('posts the review, sets the check, and keeps one comment up to date', async () => {
    const comments = [{ path: 'a.ts', line: 2, side: 'RIGHT', body: 'Why two?' }]
    const text = `Fine.\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``
    for (const [more, what] of [
      ['', 'review, 1 comment'],
      [' Again.', 'review'],
    ]) {
      const events = await post({ text: `${text}${more}`, number: 7, sha: headOfPull })
      assert.deepEqual(
        events.map(({ rule, state, code }) => [rule, state, code]),
        ['review', 'check', 'comment'].map((rule) => [rule, 'done', undefined]),
      )
      const [review, , comment] = events.map(({ links }) => links?.[0])
      assert.equal(review?.what, what)
      const page = `${github.origin}/acme/door/pull/7#pullrequestreview-`
      assert.ok(review?.url.startsWith(page))
      assert.deepEqual(comment, {
        target: 'github:acme/door#7',
        what: 'comment',
        url: `${github.origin}/acme/door/pull/7#issuecomment-1`,
      })
    }
    assert.equal(github.reviews[0]?.comments?.[0]?.line, 2)
    assert.deepEqual(
      github.statuses.map(({ context, state }) => [context, state]),
      [
        ['doorward/check', 'success'],
        ['doorward/check', 'success'],
      ],
    )
    assert.equal(github.comments.length, 1)
    assert.match(github.comments[0]?.body ?? '', /Again\.$/)
  })

  it('runs nothing for the events about them', async () => {
    const run = async (event: object) =>
      (
        await send(`${daemon.url}/github`, {
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(event),
        })
      ).json()['status']
    assert.equal(await run({ action: 'submitted', review: github.reviews[0] }), 'filtered')
    assert.equal(await run({ action: 'edited', comment: github.comments[0] }), 'filtered')
    assert.equal(await run({ ...github.statuses[0], sha: headOfPull }), 'filtered')
  })
})

describe('a webhook whose agent sees or changes code', () => {
  const comment = { path: 'big.ts', start_line: 1200, line: 1201, body: 'Why?' }
  const review = JSON.stringify({ comments: [comment, { ...comment, line: 9000 }] })
  const token = 'gho_canary-of-the-login'
  let daemon: RunningDaemon
  let github: GithubServer
  let server: GitServer

  before(async () => {
    github = await startGithubServer()
    server = await startGitServer(token, 'acme/door', () => github.origin)
    const home = await temporaryHome({
      agents: `
agents:
  fixer:
    kind: command
    command: ['${process.execPath}', '-e', 'fs.writeFileSync("hello.txt", "fixed"); console.log("Fix it")']
  silent:
    kind: command
    command: ['${process.execPath}', '-e', 'fs.writeFileSync("hello.txt", "silently")']
  reviewer:
    kind: command
    command: ['${process.execPath}', '-e', 'console.log(process.argv[1])', '${review}']
`,
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { git_hosts: ["${new URL(server.origin).host}"] } }
targets: { github: { api_url: "${server.origin}/api/v3" } }
`,
      webhooks: `
webhooks:
  - path: /fix
    agent: fixer
    prompt_template: fix it
    workspace: { repo: '${server.url}', ref: '{{event.ref}}', access: write }
    deliver_to: 'pull-request:acme/door'
  - path: /silent
    agent: silent
    prompt_template: fix it
    workspace: { repo: '${server.url}', ref: main, access: write }
    deliver_to: [log, 'pull-request:acme/door']
  - path: /review
    agent: reviewer
    prompt_template: '{{context.diff}}'
    workspace: { repo: '${server.url}', ref: '{{event.head}}', base: '{{event.base}}' }
    context: [diff]
    context_limit: 1kb
    deliver_to: 'github-review:acme/door#7'
`,
    })
    await mkdir(home.tokens, { mode: 0o700 })
    const record = {
      version: 1,
      provider: 'github',
      account: null,
      scopes: [],
      tokenType: 'Bearer',
      accessToken: token,
      expiresAt: null,
      obtainedAt: new Date().toISOString(),
      clientId: 'id',
    }
    await writeFile(join(home.tokens, 'github.json'), JSON.stringify(record), { mode: 0o600 })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    server.close()
    github.close()
  })

  it('opens a pull request, also by a retry, when the worktree is gone', async () => {
    github.next(json(403, { message: 'Resource not accessible' }))
    const reply = await send(`${daemon.url}/fix`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ref: 'main' }),
    })
    const id = String(reply.json()['id'])
    const failed = await untilFinished(daemon, id)
    assert.deepEqual([failed.state, failed.stage], ['failed', 'deliver'])
    await daemon.client.post(`/events/${id}/retry`)
    const event = await untilFinished(daemon, id)
    assert.deepEqual(
      [event.state, event.targets[0]?.detail, github.pulls[0]?.title],
      ['done', 'pull request #8', 'Fix it'],
    )
    assert.deepEqual(event.links, [
      {
        target: 'pull-request:acme/door',
        what: 'pull request #8',
        url: `${server.origin}/acme/door/pull/8`,
      },
    ])
    const branch = `doorward/${id}`
    assert.equal(
      await server.git(`--git-dir=${server.folder}`, 'show', `${branch}:hello.txt`),
      'fixed',
    )
    const sha = await server.git(`--git-dir=${server.folder}`, 'rev-parse', branch)
    const push = await send(`${daemon.url}/fix`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ref: `refs/heads/${branch}`, after: sha }),
    })
    assert.equal(push.json()['status'], 'filtered')
  })

  const post = async (path: string, payload: object) => {
    const reply = await send(daemon.url + path, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(payload),
    })
    return untilFinished(daemon, String(reply.json()['id']))
  }

  it('opens a pull request for an agent that says nothing', async () => {
    const event = await post('/silent', {})
    assert.deepEqual(
      [event.state, event.detail, event.targets.map(({ state }) => state)],
      ['done', 'the answer is empty: only the change was delivered', ['waiting', 'done']],
    )
    assert.equal(github.pulls.at(-1)?.title, 'Change by an agent')
    const file = `doorward/${event.id}:hello.txt`
    assert.equal(await server.git(`--git-dir=${server.folder}`, 'show', file), 'silently')
  })

  it('says in a review what the agent did not see, and finds lines of large files', async () => {
    const lines = (word: string) =>
      Array.from({ length: 3000 }, (_, index) => `${word} ${index}`).join('\n')
    const base = await server.push({ 'big.ts': lines('one') })
    github.pull.head = await server.push({ 'big.ts': lines('two'), 'small.ts': 'x' })
    // GitHub has this file, and leaves out its diff.
    github.pull.files.push({ filename: 'big.ts', status: 'modified' })
    github.next(
      json(200, { number: 7, head: { sha: github.pull.head } }),
      json(200, github.pull.files),
      json(200, []),
      json(200, { id: 1 }),
    )
    const event = await post('/review', { base, head: github.pull.head })
    assert.equal(event.state, 'done', event.detail)
    const { fields } = github.requests.at(-1) ?? {}
    const { body, comments = [] } = fields as ReviewBody
    assert.match(
      body ?? '',
      /_The agent did not see everything: the diff leaves out 1 of 2 files\. Not read, or not to the end: `big\.ts`\._\n\n`big.ts`, lines 1200 to 9000:/,
    )
    assert.deepEqual(
      comments.map((one) => ({ ...one, body: one.body.split('\n')[2] })),
      [{ ...comment, side: 'RIGHT', start_side: 'RIGHT' }],
    )
  })
})
