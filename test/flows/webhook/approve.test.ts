import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type EventDetail, eventDetailSchema, type EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import {
  type GithubServer,
  headOfPull,
  startGithubServer,
} from '../../support/servers/github-server.ts'
import { send } from '../../support/servers/http.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'

const comments = [
  { path: 'a.ts', line: 2, side: 'RIGHT', body: 'Why two?' },
  { path: 'a.ts', line: 1, side: 'RIGHT', body: 'A nit.' },
]
const review = `Fine.\n\n\`\`\`json\n${JSON.stringify({ comments })}\n\`\`\``

describe('an answer that waits for an approval', () => {
  let daemon: RunningDaemon
  let github: GithubServer
  let slack: TargetServer

  before(async () => {
    github = await startGithubServer()
    const patch = '@@ -1 +1,2 @@\n one\n+two'
    github.pull.files.push({ filename: 'a.ts', status: 'modified', patch })
    slack = await startTargetServer(json(200, { ok: true }))
    daemon = await startDaemon({
      env: 'GITHUB_TOKEN_OF_TARGET=ghp_canary\nSLACK_TOKEN=xoxb-token\n',
      gateway: `
oauth: { callback_port: 0 }
targets:
  github: { api_url: "${github.apiUrl}", token_env: GITHUB_TOKEN_OF_TARGET }
  slack: { api_url: "${slack.origin}", token_env: SLACK_TOKEN }
`,
      webhooks: webhooks(),
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    github.close()
    slack.close()
  })

  const post = async (path: string, text: string): Promise<string> => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text, number: 7, sha: headOfPull }),
    })
    return String(reply.json()['id'])
  }
  const detail = async (id: string) =>
    eventDetailSchema.parse(await daemon.client.get<EventDetail>(`/events/${id}`))
  const untilWaiting = async (id: string): Promise<EventDetail> => {
    const event = await detail(id)
    return event.state === 'waiting' ? event : untilWaiting(id)
  }
  const ask = async (path: string, text: string) => untilWaiting(await post(path, text))
  const answer = async (id: string, how: string, body: object = {}) =>
    daemon.client.post<EventRecord>(`/events/${id}/${how}`, body)

  it('sends nothing, shows the exact text, and frees its agent', async () => {
    const event = await ask('/review', review)
    assert.equal(github.reviews.length, 0)
    assert.equal(event.approval?.state, 'waiting')
    assert.match(event.approval?.digest ?? '', /^[0-9a-f]{64}$/)
    const [target] = event.targets
    assert.match(target?.preview ?? '', /Fine\.[^]*`a\.ts` 2[^]*Why two\?[^]*A nit\./)
    const { queue, approvals } = await daemon.client.get<{
      queue: object
      approvals: EventRecord[]
    }>('/status')
    assert.deepEqual(queue, { waiting: 0, running: 0, bytes: 0 })
    assert.deepEqual(
      approvals.map(({ id }) => id),
      [event.id],
    )
    const shown = await run(['events', 'show', event.id.slice(4, 12)], { home: daemon.home })
    assert.match(shown.stdout, /would be sent to github-review:acme\/door#7[^]*Why two\?/)
    const status = await run(['status'], { home: daemon.home })
    assert.match(status.stdout, /approvals 1 waiting for you/)
    await answer(event.id, 'reject')
  })

  it('is sent by the command line, without the comments that were taken out', async () => {
    const { id } = await ask('/review', review)
    const short = id.slice(4, 12)
    const sent = await run(['events', 'approve', short, '--without', '2', '--wait'], {
      home: daemon.home,
    })
    assert.equal(sent.code, 0, sent.stderr)
    const event = await detail(id)
    assert.deepEqual([event.state, event.approval?.state], ['done', 'approved'])
    assert.deepEqual([event.approval?.by, event.approval?.where], ['owner', 'cli'])
    assert.deepEqual(
      github.reviews.at(-1)?.comments?.map(({ body }) => /Why two\?|A nit\./.exec(body)?.[0]),
      ['Why two?'],
    )
  })

  it('is not sent when it is declined, and never again by the same event', async () => {
    const before = github.reviews.length
    const { id } = await ask('/review', review)
    const declined = await run(['events', 'reject', id], { home: daemon.home })
    assert.match(declined.stdout, /declined/)
    await assert.rejects(answer(id, 'approve'), { code: 'event-not-waiting' })
    await assert.rejects(daemon.client.post(`/events/${id}/retry`), { code: 'event-not-retryable' })
    assert.equal(github.reviews.length, before)
  })

  it('takes the first of many answers in one moment', async () => {
    const before = slack.requests.length
    const { id } = await ask('/slack', 'once')
    const answers = await Promise.allSettled(
      ['approve', 'reject', 'approve', 'approve'].map(async (how) => answer(id, how)),
    )
    assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 1)
    const event = await untilFinished(daemon, id)
    const isSent = event.approval?.state === 'approved'
    assert.equal(event.state, isSent ? 'done' : 'declined')
    assert.equal(slack.requests.length, before + (isSent ? 1 : 0))
  })

  it('expires, also where the timer is late: an answer then is no answer', async () => {
    const before = slack.requests.length
    const { id } = await ask('/short', 'too late')
    const event = await untilFinished(daemon, id)
    assert.deepEqual([event.state, event.approval?.state], ['expired', 'expired'])
    await assert.rejects(answer(id, 'approve'), { code: 'event-not-waiting' })
    assert.equal(slack.requests.length, before)
    await daemon.client.post(`/events/${id}/retry`)
    assert.equal((await untilWaiting(id)).approval?.state, 'waiting')
    await daemon.client.post(`/events/${id}/cancel`)
    const cancelled = await untilFinished(daemon, id)
    assert.deepEqual([cancelled.state, cancelled.code], ['dropped', 'event-cancelled'])
  })

  it('is sent by no program that has seen an older answer', async () => {
    const before = slack.requests.length
    const { id, approval } = await ask('/slack', 'an older one')
    await answer(id, 'again', { remark: 'Say it shorter.' })
    const newer = await untilWaiting(id)
    assert.notEqual(newer.approval?.digest, approval?.digest)
    for (const how of ['approve', 'reject'])
      await assert.rejects(answer(id, how, { digest: approval?.digest }), {
        code: 'event-not-waiting',
      })
    assert.equal((await detail(id)).state, 'waiting')
    assert.equal(slack.requests.length, before)
    await answer(id, 'reject', { digest: newer.approval?.digest.slice(0, 12) })
    assert.equal((await detail(id)).state, 'declined')
  })

  it('needs no second approval after a target has failed', async () => {
    const { id } = await ask('/slack', 'again')
    slack.next(json(200, { ok: false, error: 'channel_not_found' }))
    await answer(id, 'approve')
    const failed = await untilFinished(daemon, id)
    assert.deepEqual([failed.state, failed.stage], ['failed', 'deliver'])
    await daemon.client.post(`/events/${id}/retry`)
    const done = await untilFinished(daemon, id)
    assert.deepEqual([done.state, done.approval?.state], ['done', 'approved'])
  })

  it('is not sent once its rule was changed or removed', async () => {
    const before = slack.requests.length
    const changed = await ask('/slack', 'changed')
    await reload(webhooks('slack:#other'))
    await assert.rejects(answer(changed.id, 'approve'), { code: 'approval-mismatch' })
    const event = await detail(changed.id)
    assert.deepEqual([event.state, event.code], ['failed', 'approval-mismatch'])
    const removed = await ask('/slack', 'removed')
    await reload(webhooks().replace(/ {2}- path: \/slack[^]*?(?= {2}- path)/, ''))
    await assert.rejects(answer(removed.id, 'approve'), { code: 'approval-mismatch' })
    await reload(webhooks())
    assert.equal(slack.requests.length, before)
  })

  it('runs again with the words of its owner, outside the fence, and asks again', async () => {
    const { id, approval } = await ask('/slack', 'first')
    await assert.rejects(answer(id, 'again', { remark: 'x'.repeat(100_000) }), {
      code: 'body-too-large',
    })
    await assert.rejects(answer(id, 'again', { remark: 'x'.repeat(5000) }), {
      code: 'request-invalid',
    })
    const ran = await run(['events', 'again', id, '--remark', 'Say it shorter.'], {
      home: daemon.home,
    })
    assert.equal(ran.code, 0, ran.stderr)
    const event = await untilWaiting(id)
    assert.notEqual(event.approval?.digest, approval?.digest)
    assert.equal(event.approval?.remark, 'Say it shorter.')
    assert.match(
      event.prompt ?? '',
      /^first\n\nYou have[^]*<<<EVENT_TEXT (\w+)>>>first<<<END_EVENT_TEXT \1>>>[^]*Say it shorter\./,
    )
    await answer(id, 'reject')
  })

  it('is asked about for the kinds of approve.when alone, and not by a rule that says no', async () => {
    const before = slack.requests.length
    for (const path of ['/local', '/unasked'])
      assert.equal((await untilFinished(daemon, await post(path, 'x'))).state, 'done')
    assert.equal(slack.requests.length, before + 1)
  })

  it('is previewed by a dry run, and delivered after all by its owner', async () => {
    const before = slack.requests.length
    const id = await post('/dry', 'look first')
    const event = await untilFinished(daemon, id)
    assert.deepEqual(
      [event.state, event.targets.map(({ state }) => state)],
      ['done', ['previewed', 'previewed']],
    )
    assert.equal(slack.requests.length, before)
    assert.match(event.targets[0]?.preview ?? '', /look first/)
    const delivered = await run(['events', 'deliver', id, '--wait'], { home: daemon.home })
    assert.equal(delivered.code, 0, delivered.stderr)
    const after = await detail(id)
    assert.deepEqual(
      after.targets.map(({ state, preview }) => [state, preview]),
      [
        ['done', undefined],
        ['done', undefined],
      ],
    )
    assert.equal(slack.requests.length, before + 1)
    assert.match(slack.requests.at(-1)?.text ?? '', /look first/)
    await assert.rejects(answer(id, 'deliver'), { code: 'event-not-retryable' })
  })

  const reload = async (text: string) => {
    await writeFile(join(daemon.home.config, 'webhooks.yaml'), text)
    await daemon.client.post('/daemon/reload')
  }

  it('leaves no text of an answer in the log', async () => {
    const log = await readFile(join(daemon.home.logs, 'daemon.log'), 'utf8')
    assert.doesNotMatch(log, /Why two|look first|Say it shorter/)
  })
})

const webhooks = (target = 'slack:#ops') => `
webhooks:
  - path: /review
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    deliver_to: 'github-review:acme/door#{{event.number}}'
    approve: true
  - path: /slack
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    deliver_to: "${target}"
    approve: true
  - path: /short
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    deliver_to: "slack:#ops"
    approve: { timeout: 300ms }
  - path: /local
    agent: echo
    prompt_template: "x"
    deliver_to: [log, "slack:#ops"]
    approve: { when: [pull-request] }
  - path: /unasked
    agent: echo
    prompt_template: "x"
    deliver_to: log
    approve: true
  - path: /dry
    agent: echo
    event_text: plain
    prompt_template: "{{event.text}}"
    deliver_to: ["slack:#ops", "file:answers.md"]
    dry_run: true
`
