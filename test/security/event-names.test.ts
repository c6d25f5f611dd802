import assert from 'node:assert/strict'
import { createHmac, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { isEventHeader, requireBodyOfEvent } from '../../daemon/webhook/event-name.ts'
import type { EventDetail, EventRecord } from '../../shared/api/api.ts'
import { packageFolder } from '../../shared/version.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../support/daemon/daemon.ts'
import { type Reply, send } from '../support/servers/http.ts'
import { githubBody, githubHeaders } from '../support/servers/sign.ts'

const secret = 'a secret of the test'
const mac = (body: string, encoding: 'hex' | 'base64' = 'hex') =>
  createHmac('sha256', secret).update(body).digest(encoding)

/** The header with the signature of each sender, and the one with the name of the event. */
const senders = {
  github: (body: string, name: string) => githubHeaders(body, secret, { 'x-github-event': name }),
  gitea: (body: string, name: string) => ({
    'x-gitea-signature': mac(body),
    'x-gogs-event': name,
    'x-gitea-event': name,
    'x-gitea-delivery': randomUUID(),
  }),
  sentry: (body: string, name: string) => ({
    'sentry-hook-signature': mac(body),
    'sentry-hook-resource': name,
    'request-id': randomUUID(),
  }),
  bitbucket: (body: string, name: string) => ({
    'x-hub-signature': `sha256=${mac(body)}`,
    'x-event-key': name,
    'x-request-uuid': randomUUID(),
  }),
  shopify: (body: string, name: string) => ({
    'x-shopify-hmac-sha256': mac(body, 'base64'),
    'x-shopify-topic': name,
    'x-shopify-webhook-id': randomUUID(),
  }),
} as const
type Sender = keyof typeof senders

describe('a captured delivery under another event name', () => {
  let daemon: RunningDaemon

  const entry = (path: string, scheme: string, rules: Readonly<Record<string, string>>) =>
    `  - path: ${path}\n    signature_scheme: ${scheme}\n    secret_env: HOOK\n    agent: echo\n    prompt_template: x\n    rules:\n${Object.entries(
      rules,
    )
      .map(([name, text]) => `      - { name: ${name}, ${text} }\n`)
      .join('')}`

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK=${secret}\n`,
      agents: `agents:
  echo: { kind: echo }
  fails: { kind: command, command: ["${process.execPath}", -e, "process.exit(3)"] }
`,
      webhooks: `webhooks:\n${[
        entry('/github', 'github', {
          review: 'on: pull_request',
          triage: 'on: issues',
          ship: 'on: workflow_run',
          build: 'on: push, agent: fails',
        }),
        entry('/hmac', 'hmac', {
          review: 'filter: { headers.x-github-event: pull_request }',
          triage: 'filter: { headers.x-github-event: issues }',
        }),
        entry('/gitea', 'gitea', {
          review: 'on: pull_request',
          triage: 'filter: { headers.x-gitea-event: issues }',
        }),
        entry('/sentry', 'sentry', { alert: 'on: event_alert', issue: 'on: issue' }),
        entry('/bitbucket', 'bitbucket', {
          review: 'on: ["pullrequest:updated", "pullrequest:push"]',
          build: 'on: "repo:push"',
        }),
        entry('/shopify', 'shopify', { order: 'on: orders/create', paid: 'on: orders/paid' }),
      ].join('')}`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const post = async (
    path: string,
    body: string,
    headers: Readonly<Record<string, string | string[]>>,
  ): Promise<Reply> =>
    send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json', ...headers },
      body,
    })
  const deliver = async (sender: Sender, body: string, name: string) =>
    post(`/${sender}`, body, senders[sender](body, name))
  const is = (reply: Reply, status: string): string => {
    assert.deepEqual([reply.status, reply.json()['status']], [202, status], reply.text)
    return String(reply.json()['id'])
  }
  const refused = async (reply: Reply): Promise<string> => {
    assert.deepEqual([reply.status, reply.json()['code']], [400, 'event-mismatch'], reply.text)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      '/events?state=rejected&limit=1',
    )
    assert.deepEqual([events[0]?.stage, events[0]?.code], ['verify', 'event-mismatch'])
    return events[0]?.detail ?? ''
  }

  it('runs no other rule, with its own delivery id or another', async () => {
    const body = githubBody('issue_comment', { action: 'created' })
    const headers = senders.github(body, 'issue_comment')
    is(await post('/github', body, headers), 'filtered')
    for (const name of ['pull_request', 'issues', 'workflow_run', 'push'])
      for (const id of [headers['x-github-delivery'] ?? '', randomUUID()])
        await refused(
          await post('/github', body, {
            ...headers,
            'x-github-delivery': id,
            'x-github-event': name,
          }),
        )
    const { 'x-github-event': _, ...nameless } = headers
    assert.match(await refused(await post('/github', body, nameless)), /without a name/)
    await refused(await post('/github', body, { ...headers, 'x-github-event': ['issues', 'push'] }))
  })

  it('runs none either where the delivery itself never arrived', async () => {
    const comment = githubBody('issue_comment', { action: 'edited', comment: { id: 1 } })
    assert.equal(
      await refused(await deliver('github', comment, 'issues')),
      'the body is none of the event issues: it has comment',
    )
    const review = githubBody('pull_request', { action: 'submitted', review: {} })
    await refused(await deliver('github', review, 'pull_request'))
    const issue = githubBody('issues', { action: 'opened' })
    for (const name of ['pull_request', 'push', 'workflow_run', 'issue_comment'])
      await refused(await deliver('github', issue, name))
    const push = githubBody('push', {})
    for (const name of ['issues.opened', 'pull_request.opened', 'Issues', 'x, issues'])
      await refused(await deliver('github', push, name))
    for (const body of ['[]', '"text"', '{"ref":"refs/heads/main"}'])
      await refused(await deliver('github', body, 'push'))
    is(await deliver('github', issue, 'issues'), 'accepted')
  })

  it('is known by its bytes, where the body of one event has the members of another', async () => {
    const body = JSON.stringify({ action: 'created', deployment_status: {}, workflow_run: {} })
    is(await deliver('github', body, 'deployment_status'), 'filtered')
    assert.match(
      await refused(await deliver('github', body, 'workflow_run')),
      /^these signed bytes came before as deployment_status, and now as workflow_run: /,
    )
  })

  it('is known to a filter on the header, and at other senders', async () => {
    const body = '{"a":"one"}'
    const asHmac = async (name: string) => post('/hmac', body, senders.github(body, name))
    is(await asHmac('issue_comment'), 'filtered')
    await refused(await asHmac('pull_request'))
    for (const [sender, name, other] of [
      ['gitea', 'issue_comment', 'pull_request'],
      ['sentry', 'comment', 'event_alert'],
      ['bitbucket', 'issue:created', 'repo:push'],
      ['shopify', 'products/update', 'orders/create'],
    ] as const) {
      is(await deliver(sender, body, name), 'filtered')
      await refused(await deliver(sender, body, other))
    }
    // A filter of Gitea may read another of its headers.
    const headers = { ...senders.gitea(body, 'issue_comment'), 'x-gitea-event': 'issues' }
    await refused(await post('/gitea', body, headers))
  })

  it('has no effect on a sender that delivers again, by hand and after a failure', async () => {
    const body = githubBody('push', { after: 'a' })
    const headers = senders.github(body, 'push')
    for (let times = 0; times < 2; times += 1) {
      const id = is(await post('/github', body, headers), 'accepted')
      assert.equal((await untilFinished(daemon, id)).state, 'failed')
    }
    const opened = githubBody('pull_request', { action: 'opened' })
    const sent = senders.github(opened, 'pull_request')
    const id = is(await post('/github', opened, sent), 'accepted')
    await untilFinished(daemon, id)
    is(await post('/github', opened, sent), 'duplicate')
    await daemon.client.post(`/events/${id}/retry?again=true`)
    const { state, attempts } = await untilFinished(daemon, id)
    assert.deepEqual([state, attempts], ['done', 2])
    // The hooks of a repository and of its organization send the same bytes.
    is(await deliver('github', opened, 'pull_request'), 'accepted')
  })

  it('has none on senders that give one body several names', async () => {
    const body = '{"id":820982911946154508,"financial_status":"paid"}'
    for (const [name, rule] of [
      ['orders/create', 'order'],
      ['orders/paid', 'paid'],
    ] as const) {
      const id = is(await deliver('shopify', body, name), 'accepted')
      const { rule: ran } = await daemon.client.get<EventDetail>(`/events/${id}`)
      assert.equal(ran, rule)
    }
    is(await deliver('bitbucket', body, 'pullrequest:updated'), 'accepted')
    is(await deliver('bitbucket', body, 'pullrequest:push'), 'accepted')
  })
})

describe('the bodies of GitHub', () => {
  type Listed = readonly { readonly name: string; readonly examples: readonly object[] }[]
  const listed = ['api.github.com', 'ghes-31', 'ghes-35'].flatMap((version) => {
    const path = `node_modules/@octokit/webhooks-examples/${version}/index.json`
    return JSON.parse(readFileSync(new URL(path, packageFolder), 'utf8')) as Listed
  })
  const fits = (name: string, payload: unknown): boolean => {
    try {
      const webhook = { path: '/a', scheme: { name: 'github' }, eventHeaders: [] }
      requireBodyOfEvent({ webhook, headers: { 'x-github-event': [name] }, payload })
      return true
    } catch {
      return false
    }
  }

  it('fit their own event, and none of those that rules are written for', () => {
    const common = [
      'issue_comment',
      'issues',
      'pull_request',
      'pull_request_review',
      'push',
      'release',
    ]
    for (const { name, examples } of listed)
      for (const payload of examples) {
        assert.ok(fits(name, payload), name)
        for (const other of common)
          if (other !== name) assert.ok(!fits(other, payload), `${name} is taken for ${other}`)
      }
    assert.ok(fits('an_event_of_tomorrow', {}))
  })

  it('come with headers of which only some name the event', () => {
    for (const name of ['x-github-event', 'x-gitlab-event', 'x-forgejo-event-type', 'x-event-key'])
      assert.ok(isEventHeader(name), name)
    for (const name of ['x-github-delivery', 'x-gitlab-event-uuid', 'x-discourse-event', 'ce-type'])
      assert.ok(!isEventHeader(name), name)
  })
})
