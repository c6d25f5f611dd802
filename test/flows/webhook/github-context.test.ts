import assert from 'node:assert/strict'
import type { components } from '@octokit/openapi-types'
import { untilFinished } from '../../support/daemon/daemon.ts'
import { deliver, restartedDaemons } from '../../support/daemon/restarted-daemons.ts'
import { storeLogin } from '../../support/providers/stored-login.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

type Schemas = components['schemas']
type Comment = Pick<Schemas['issue-comment'], 'body' | 'created_at'> & { user: { login: string } }
type Job = Pick<Schemas['job'], 'id' | 'name' | 'conclusion' | 'steps'>

/** What `storeLogin` stores. */
const token = 'of-before'

const comment = (login: string, time: string, body: string): Comment => ({
  user: { login },
  created_at: time,
  body,
})

describe('the context that GitHub has of an event', () => {
  const { start, heldAgent } = restartedDaemons()
  let git: GitServer
  let api: TargetServer
  /** Answers by their path. */
  let documents: Map<string, unknown>
  beforeEach(async () => {
    git = await startGitServer(token, 'acme/app')
    documents = new Map()
    api = await startTargetServer((response, recorded, request) => {
      const { pathname } = new URL(recorded.path, 'http://loopback')
      const document = documents.get(pathname.replace('/repos/acme/app', ''))
      if (document instanceof URL) {
        response.writeHead(302, { location: document.href }).end()
        return undefined
      }
      if (typeof document === 'string') {
        response.end(document)
        return undefined
      }
      const status = document === undefined ? 404 : 200
      return json(status, document ?? { message: 'Not Found' })(response, recorded, request)
    })
  })
  afterEach(() => {
    git.close()
    api.close()
  })

  /** What the agent is asked for an event, and the daemon. */
  const run = async (name: string, event: object, more = '') => {
    const agent = await heldAgent()
    const home = await temporaryHome({
      gateway: `
oauth: { callback_port: 0 }
providers: { github: { token_endpoint: "${git.origin}/token" } }
targets: { github: { api_url: "${api.origin}" } }
`,
      agents: `agents:\n  held: { kind: http, url: "${agent.url}" }\n`,
      webhooks: `
webhooks:
  - path: /a
    agent: held
    workspace: { repo: acme/app, ref: main }
    context: [${name}]
    prompt_template: '{{context.${name}}}'
    ${more}
`,
    })
    await storeLogin(home, 'github', 'a refresh token')
    const daemon = await start({ home })
    const { id } = await deliver(daemon.url, event)
    return { agent, daemon, id }
  }
  const promptOf = async (...args: Parameters<typeof run>): Promise<string> => {
    const { agent } = await run(...args)
    const { prompt, answer } = await agent.next()
    answer('fine')
    return prompt
  }

  it('is what people said of a pull request, in its order, by the token of the login', async () => {
    documents.set('/issues/7/comments', [
      comment('ada', '2026-11-01T10:00:00Z', 'first'),
      comment('bob', '2026-11-03T10:00:00Z', 'third\r\n\u001b[31mred'),
    ])
    const review: Partial<Schemas['pull-request-review']> = {
      state: 'CHANGES_REQUESTED',
      submitted_at: '2026-11-04T10:00:00Z',
      body: 'fourth',
    }
    documents.set('/pulls/7/reviews', [review, { ...review, body: '' }])
    documents.set('/pulls/7/comments', [
      { ...comment('eve', '2026-11-02T10:00:00Z', 'second'), path: 'src/a.ts', line: 12 },
    ])
    assert.equal(
      await promptOf('comments', { pull_request: { number: 7 } }, 'event_text: fenced').then(
        (prompt) => prompt.replace(/^Text .*\n\n/, '').replaceAll(/<<<.*?>>>/g, ''),
      ),
      [
        '2026-11-01 10:00 ada\n    first\n',
        '2026-11-02 10:00 eve on src/a.ts:12\n    second\n',
        '2026-11-03 10:00 bob\n    third\n    \\u{1b}[31mred\n',
        '2026-11-04 10:00 someone (changes requested)\n    fourth\n',
      ].join(''),
    )
    for (const { headers } of api.requests) assert.equal(headers.authorization, `Bearer ${token}`)
  })

  it('leaves out the oldest comments where there are too many', async () => {
    documents.set(
      '/issues/7/comments',
      ['1', '2', '3'].map((day) => comment('ada', `2026-11-0${day}T10:00:00Z`, day.repeat(450))),
    )
    const prompt = await promptOf('comments', { issue: { number: 7 } }, 'context_limit: 1kb')
    assert.match(prompt, /^\[left out, as more than 1 KB: the oldest 1 of 3 comments\]\n/)
    assert.match(prompt, /ada\n {4}2{450}\n[^]*ada\n {4}3{450}\n$/)
  })

  it('is the end of the log of each job that failed, which is read without the token', async () => {
    const job = (id: number, conclusion: Job['conclusion']): Job => ({
      id,
      name: `job ${id}`,
      conclusion,
      steps: [
        { name: 'npm ci', number: 1, status: 'completed', conclusion: 'success' },
        { name: 'npm test', number: 2, status: 'completed', conclusion },
      ],
    })
    const jobs = [job(1, 'success'), job(2, 'failure'), job(3, 'timed_out')]
    documents.set('/actions/runs/5/jobs', { total_count: 3, jobs })
    const line = (text: string) => `2026-11-26T10:00:00.1234567Z ${text}\n`
    const before = Array.from({ length: 2000 }, (_, n) => line(`step ${n}`)).join('')
    documents.set(
      '/signed/log',
      `\ufeff${before}${line('\u001b[31mexpected 1\u001b[0m')}${line('##[error]exit code 1')}${line('clean up').repeat(100)}`,
    )
    documents.set('/actions/jobs/2/logs', new URL(`${api.origin}/signed/log?sig=x`))
    const prompt = await promptOf('failed-logs', { workflow_run: { id: 5 } }, 'context_limit: 2kb')
    assert.match(
      prompt,
      /^job job 2 failed at step npm test\n\[cut: the first \d+ lines\]\nstep \d+\n[^]*\nexpected 1\n##\[error\]exit code 1\n(clean up\n){5}\njob job 3 failed\n\(there is no log\)\n$/,
    )
    assert.ok(prompt.length < 2500)
    const signed = api.requests.find(({ path }) => path.startsWith('/signed'))
    assert.equal(signed?.headers.authorization, undefined)
  })

  it('is what a check of another service says', async () => {
    documents.set('/check-runs/9', {
      name: 'lint',
      app: { slug: 'linter' },
      output: { title: '2 faults', summary: 'a.ts:1', text: null },
    })
    const prompt = await promptOf('failed-logs', { check_run: { id: 9 } })
    assert.equal(prompt, 'check lint\n2 faults\na.ts:1\n')
  })

  it('is what the rule said of a pull request before, and what was answered', async () => {
    const sha = await git.git('rev-parse', 'HEAD')
    documents.set('/pulls/7', { number: 7, head: { sha } })
    documents.set('/pulls/7/files', [{ filename: 'a.ts', patch: '@@ -1 +1,2 @@\n one\n+two' }])
    documents.set('/pulls/7/reviews', [])
    documents.set('/pulls/7/comments', [])
    const event = (n: number) => ({ n, pull_request: { number: 7 } })
    const target = "deliver_to: 'github-review:acme/app#7'"
    const { agent, daemon, id } = await run('reviews', event(1), target)
    const first = await agent.next()
    assert.equal(first.prompt, '(you have not reviewed it yet)\n')
    const comments = [{ path: 'a.ts', line: 2, body: 'Why two?' }]
    first.answer(`Fine.\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``)
    assert.equal((await untilFinished(daemon, id)).state, 'done')
    const { fields } = api.requests.find(({ method }) => method === 'POST') ?? {}
    const posted = fields as { body: string; comments: readonly { body: string }[] }
    const own = { id: 5, user: { login: 'door' }, body: posted.comments[0]?.body, path: 'a.ts' }
    documents.set('/pulls/7/reviews', [
      { id: 1, body: posted.body, submitted_at: '2026-11-01T10:00:00Z' },
      { id: 2, body: `${posted.body} Or not.`, submitted_at: '2026-11-01T10:00:01Z' },
    ])
    documents.set('/pulls/7/comments', [
      { ...own, line: 2, created_at: '2026-11-01T10:00:02Z' },
      { ...own, line: null, original_line: 3, id: 6, created_at: '2026-11-01T10:00:03Z' },
      { ...comment('ada', '2026-11-02T09:00:00Z', 'Because.'), in_reply_to_id: 5 },
      comment('eve', '2026-11-02T09:00:00Z', 'No answer.'),
    ])
    await deliver(daemon.url, event(2))
    const second = await agent.next()
    second.answer('fine')
    assert.equal(
      second.prompt,
      [
        '2026-11-01 10:00 you\n    Fine.\n',
        '2026-11-01 10:00 you on a.ts:2\n    Why two?\n',
        '2026-11-02 09:00 ada answered\n    Because.\n',
        '2026-11-01 10:00 you on a.ts:3, which has changed since\n    Why two?\n',
      ].join(''),
    )
  })

  it('leaves out earlier reviews that GitHub does not give, and runs', async () => {
    const event = { pull_request: { number: 7 } }
    assert.equal(await promptOf('reviews', event), '[left out: GitHub did not give them]\n')
    assert.match(await promptOf('reviews', {}), /^\(the event is about no pull request/)
  })

  it('says where the event is about nothing of the kind', async () => {
    assert.match(await promptOf('comments', {}), /^\(the event is about no pull request/)
  })

  it('fails the event where GitHub refuses, before the agent runs', async () => {
    const { daemon, id } = await run('comments', { issue: { number: 8 } })
    const { state, code, detail = '' } = await untilFinished(daemon, id)
    assert.deepEqual([state, code], ['failed', 'workspace-failed'])
    assert.match(detail, /the context of acme\/app: github answered 404/)
  })
})
