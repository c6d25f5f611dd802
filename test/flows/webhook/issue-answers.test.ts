import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the webhook of jira'

describe('a webhook of Jira whose answer belongs on the issue', () => {
  let daemon: RunningDaemon
  let jira: TargetServer

  before(async () => {
    jira = await startTargetServer(
      json(201, { id: '10000', self: 'https://acme.invalid/rest/api/3/issue/7/comment/10000' }),
    )
    const home = await temporaryHome({
      env: `JIRA_SECRET=${secret}\nJIRA_API_TOKEN=canary`,
      gateway: `
oauth: { callback_port: 0 }
targets:
  jira: { api_url: "${jira.origin}", email: me@example.com, token_env: JIRA_API_TOKEN }
  http:
    issue:
      url: "${jira.origin}/rest/api/2/issue/{{event.issue.key}}/comment"
      sign: false
      body_template: '{"body": {{ result | json }}, "of": {{ event.issue.fields.summary | json }}}'
`,
      webhooks: `
webhooks:
  - path: /jira
    signature_scheme: jira
    secret_env: JIRA_SECRET
    agent: echo
    event_text: plain
    prompt_template: "{{event.issue.fields.summary}}"
    rules:
      - { name: cloud, deliver_to: 'jira:reply' }
      - { name: server, deliver_to: 'http:issue' }
`,
    })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    jira.close()
  })

  const post = async (payload: object) => {
    const body = JSON.stringify(payload)
    const mac = createHmac('sha256', secret).update(body).digest('hex')
    const reply = await send(`${daemon.url}/jira`, {
      headers: { 'content-type': 'application/json', 'x-hub-signature': `sha256=${mac}` },
      body,
    })
    return reply.json() as { status: string; events?: readonly { id: string }[] }
  }
  const run = async (payload: object) => {
    const { events = [] } = await post(payload)
    return Promise.all(events.map(async ({ id }) => untilFinished(daemon, id)))
  }
  const issue = { key: 'PROJ-7', fields: { summary: 'It "breaks"' } }

  it('comments there, by its own API and by a request of one', async () => {
    const events = await run({ webhookEvent: 'jira:issue_created', issue })
    assert.deepEqual(
      events.map(({ rule, state, targets }) => [rule, state, targets[0]?.target]),
      [
        ['cloud', 'done', 'jira:reply'],
        ['server', 'done', 'http:issue'],
      ],
    )
    const sent = new Map(jira.requests.map(({ path, fields }) => [path, fields]))
    assert.match(JSON.stringify(sent.get('/rest/api/3/issue/PROJ-7/comment')), /It \\"breaks\\"/)
    assert.deepEqual(sent.get('/rest/api/2/issue/PROJ-7/comment'), {
      body: 'It "breaks"',
      of: 'It "breaks"',
    })
  })

  it('runs nothing for that comment', async () => {
    const self = 'https://acme.invalid/rest/api/2/issue/7/comment/10000'
    const { status } = await post({ webhookEvent: 'comment_created', comment: { self }, issue })
    assert.equal(status, 'filtered')
  })

  it('runs no agent where the issue is none', async () => {
    jira.requests.length = 0
    const events = await run({ webhookEvent: 'x', issue: { ...issue, key: '../PROJ-7' } })
    for (const { state, code, stage } of events)
      assert.deepEqual([state, code, stage], ['failed', 'target-invalid', 'deliver'])
    assert.equal(jira.requests.length, 0)
  })
})
