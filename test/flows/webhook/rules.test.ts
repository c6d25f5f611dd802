import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventDetail, EventRecord, WebhookSummary } from '../../../shared/api/api.ts'
import { type Explanation, explanationSchema } from '../../../shared/api/explain.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubBody, githubHeaders } from '../../support/servers/sign.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const secret = 'a secret of the flow test'

type Posted = {
  readonly id: string
  readonly status: string
  readonly events?: readonly {
    readonly id: string
    readonly status: string
    readonly rule: string
  }[]
}

describe('a webhook with rules', () => {
  let daemon: RunningDaemon
  let folder: string
  const post = async (
    path: string,
    event: string,
    payload: object,
    delivery: string,
  ): Promise<Posted> => {
    const body = githubBody(event, payload)
    const headers = githubHeaders(body, secret, {
      'x-github-event': event,
      'x-github-delivery': delivery,
    })
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    return reply.json() as Posted
  }
  const finished = async ({ id, events = [] }: Posted): Promise<EventRecord[]> =>
    Promise.all(
      [...new Set([id, ...events.map((one) => one.id)])].map(async (one) =>
        untilFinished(daemon, one),
      ),
    )
  const cli = (...args: string[]) => run(args, { home: daemon.home })

  before(async () => {
    folder = await temporaryFolder()
    const mark = JSON.stringify(join(folder, 'mark'))
    const code = `const fs = require('fs'); if (fs.existsSync(${mark})) console.log('ok'); else { fs.writeFileSync(${mark}, ''); process.exit(3) }`
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\n`,
      agents: `
agents:
  echo: { kind: echo }
  once: { kind: command, command: ["${process.execPath}", -e, ${JSON.stringify(code)}] }
  rule: { kind: command, command: ["${process.execPath}", -e, "console.log(process.env.DOORWARD_RULE)"] }
`,
      webhooks: `
webhooks:
  - path: /webhook/github
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    deliver_to: log
    rules:
      - name: review
        on: [pull_request.opened, pull_request.synchronize]
        filter: { draft: false }
        prompt_template: 'review {{event.number}}'
      - name: greet
        on: pull_request.opened
        prompt_template: 'greet {{event.number}}'
        deliver_to: none
      - name: triage
        on: issues.*
        agent: rule
        prompt_template: 'triage {{event.number}}'
  - path: /webhook/again
    signature_scheme: github
    secret_env: HOOK_SECRET
    prompt_template: x
    rules:
      - { name: fails, agent: once }
      - { name: works, agent: echo }
  - path: /webhook/one
    signature_scheme: github
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: x
    on: push
`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
  })

  it('makes an event of its own for each rule that matches', async () => {
    const posted = await post(
      '/webhook/github',
      'pull_request',
      { action: 'opened', number: 7, draft: false },
      'a-1',
    )
    const [first, second] = posted.events ?? []
    assert.deepEqual(posted, {
      id: first?.id,
      status: 'accepted',
      events: [
        { id: first?.id, status: 'accepted', rule: 'review' },
        { id: second?.id, status: 'accepted', rule: 'greet' },
      ],
    })
    const events = await finished(posted)
    assert.deepEqual(
      events.map(({ webhook, rule, agent, state, resultPreview }) => [
        webhook,
        rule,
        agent,
        state,
        resultPreview,
      ]),
      [
        ['/webhook/github', 'review', 'echo', 'done', 'review 7'],
        ['/webhook/github', 'greet', 'echo', 'done', 'greet 7'],
      ],
    )
    assert.deepEqual(
      events.map(({ targets }) => targets.length),
      [1, 0],
    )
  })

  it('answers with the one event where one rule matches, which the agent can name', async () => {
    const posted = await post('/webhook/github', 'issues', { action: 'closed', number: 8 }, 'a-2')
    assert.equal(posted.events, undefined)
    const [event] = await finished(posted)
    assert.deepEqual([event?.rule, event?.resultPreview], ['triage', 'triage\n'])
  })

  it('says in one event why no rule matches, without a value of the sender', async () => {
    const payload = { action: 'synchronize', number: 7, draft: 'canary' }
    const { id, status } = await post('/webhook/github', 'pull_request', payload, 'a-3')
    assert.equal(status, 'filtered')
    const event = await daemon.client.get<EventDetail>(`/events/${id}`)
    assert.deepEqual(
      [event.rule, event.agent, event.detail],
      [
        undefined,
        null,
        'no rule matches (review: the filter on draft does not match; greet: its event is not one of on; triage: its event is not one of on)',
      ],
    )
    const one = await post('/webhook/one', 'issues', {}, 'a-4')
    const { detail } = await daemon.client.get<EventDetail>(`/events/${one.id}`)
    assert.equal(detail, 'its event is not one of on')
    assert.equal((await post('/webhook/one', 'push', {}, 'a-5')).status, 'accepted')
  })

  it('runs only the rule again that failed when the sender repeats a delivery', async () => {
    const posted = await post('/webhook/again', 'push', {}, 'b-1')
    const states = (await finished(posted)).map(({ rule, state }) => [rule, state])
    assert.deepEqual(states, [
      ['fails', 'failed'],
      ['works', 'done'],
    ])
    const repeated = await post('/webhook/again', 'push', {}, 'b-1')
    assert.equal(repeated.events, undefined)
    const [event] = await finished(repeated)
    assert.deepEqual([event?.rule, event?.state], ['fails', 'done'])
    const third = await post('/webhook/again', 'push', {}, 'b-1')
    assert.equal(third.status, 'duplicate')
    const { detail = '' } = await daemon.client.get<EventDetail>(`/events/${third.id}`)
    assert.equal(detail, `the same delivery as ${repeated.id}, ${posted.events?.[1]?.id}`)
  })

  it('is explained rule by rule', async () => {
    const headers = { 'x-github-event': 'pull_request' }
    const payload = { action: 'opened', number: 9, draft: true }
    const explanation = explanationSchema.parse(
      await daemon.client.post<Explanation>('/webhooks/explain', {
        path: '/webhook/github',
        headers,
        payload,
      }),
    )
    assert.deepEqual(
      explanation.rules?.map(({ rule, matches }) => [rule, matches]),
      [
        ['review', false],
        ['greet', true],
        ['triage', false],
      ],
    )
    assert.deepEqual([explanation.rule, explanation.prompt], ['greet', 'greet 9'])
    assert.deepEqual(explanation.on, {
      expected: ['pull_request.opened'],
      actual: 'pull_request.opened',
      matches: true,
    })
    const file = join(folder, 'payload.json')
    await writeFile(file, JSON.stringify(payload))
    const { stdout, stderr } = await cli(
      'webhook',
      'explain',
      '/webhook/github',
      file,
      '--header',
      'X-GitHub-Event: pull_request',
    )
    assert.equal(stderr, '')
    assert.match(stdout, /outcome +once it is signed, the rule greet would run\n/)
    assert.match(stdout, /- rule review\non +✓ the event is pull_request\.opened, expected /)
    assert.match(stdout, /filter +✗ draft is true, expected "false"/)
    assert.match(stdout, /✓ rule greet\n(.*\n)+prompt\n +greet \[9\]/)
    assert.match(
      stdout,
      /- rule triage\non +✗ the event is pull_request\.opened, expected issues\.\*/,
    )
  })

  it('is listed, sent to and counted with its rules', async () => {
    const listed = await cli('webhook', 'list')
    assert.match(listed.stdout, /\/webhook\/github +3 rules +github +set/)
    assert.match(listed.stdout, /^- triage +rule +log/m)
    const file = join(folder, 'issue.json')
    await writeFile(
      file,
      githubBody('pull_request', { action: 'opened', number: 10, draft: false }),
    )
    const args = ['webhook', 'send', '/webhook/github', file, '--event', 'pull_request']
    const sent = await cli(...args, '--wait')
    assert.equal(sent.stdout, 'review 10\ngreet 10\n')
    const events = await cli('events', '--limit', '2')
    assert.match(events.stdout, /: review 10 +\/webhook\/github review /)
    const { webhooks } = await daemon.client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
    const [github] = webhooks
    assert.deepEqual(
      github?.rules?.map(({ name, counts }) => [name, counts.accepted, counts.done]),
      [
        ['review', 2, 2],
        ['greet', 2, 2],
        ['triage', 1, 1],
      ],
    )
    assert.equal(github?.counts.accepted, 5)
    const headers = { authorization: `Bearer ${daemon.apiToken}` }
    const { text } = await send(`${daemon.url}/metrics`, { method: 'GET', headers })
    const counted = (labels: string) =>
      text
        .split(`doorward_deliveries_total{webhook="/webhook/github",${labels}} `)[1]
        ?.split('\n')[0]
    assert.deepEqual(
      [counted('rule="review",result="accepted"'), counted('result="filtered"')],
      ['2', '1'],
    )
    const checked = await cli('config', 'check')
    assert.match(checked.stdout, /^ok: 3 webhooks with 5 rules, 3 agents/m)
    const status = await cli('status')
    assert.match(status.stdout, /\/webhook\/github +3 rules, last event/)
  })
})
