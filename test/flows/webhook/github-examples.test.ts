import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { sign } from '@octokit/webhooks-methods'
import type { EventDetail } from '../../../shared/api/api.ts'
import { packageFolder } from '../../../shared/version.ts'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { type Followed, followEvents } from '../../support/daemon/events.ts'
import { send } from '../../support/servers/http.ts'

const secret = 'a secret of the examples'
const actions = ['opened', 'created', 'completed', 'published', 'synchronize', 'closed']

const webhooks = `webhooks:
  - path: /webhook/github
    agent: echo
    who: anyone
    signature_scheme: github
    secret_env: EXAMPLES_SECRET
    filter:
      action: [${actions.join(', ')}]
      sender.type: User
    prompt_template: |
      {{event.action}} in {{event.repository.full_name}} by {{event.sender.login}} (site admin: {{event.sender.site_admin}})
      {{event.pull_request.title}}{{event.issue.title}}{{event.release.name}}{{event.discussion.title}}
      {{event.pull_request.body}}{{event.issue.body}}{{event.comment.body}}
      labels {{event.issue.labels}} first {{event.issue.labels.0.name}}
      number {{event.number}}, draft {{event.pull_request.draft}}, missing {{event.no.such.thing}}.
  - path: /webhook/all
    agent: echo
    who: anyone
    signature_scheme: github
    secret_env: EXAMPLES_SECRET
    prompt_template: "{{event}}"
`

type Example = { readonly name: string; readonly payload: Readonly<Record<string, unknown>> }

/** Every example payload of github.com. */
const examples = async (): Promise<Example[]> => {
  const path = 'node_modules/@octokit/webhooks-examples/api.github.com/index.json'
  const events = JSON.parse(await readFile(new URL(path, packageFolder), 'utf8')) as {
    readonly name: string
    readonly examples: readonly Example['payload'][]
  }[]
  return events.flatMap(({ name, examples: all }) => all.map((payload) => ({ name, payload })))
}

const at = (payload: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (value, name) => (value as Record<string, unknown> | null | undefined)?.[name],
      payload,
    )

const text = (value: unknown): string => {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value)
}

describe('all example payloads of GitHub, through a realistic definition', () => {
  let daemon: RunningDaemon
  let followed: Followed

  before(async () => {
    daemon = await startDaemon({ webhooks, env: `EXAMPLES_SECRET=${secret}\n` })
    followed = await followEvents(daemon)
  })
  after(async () => {
    followed.close()
    assert.equal(await daemon.stop(), 0)
  })

  const deliver = async (path: string, { name, payload }: Example) => {
    const body = JSON.stringify(payload)
    const reply = await send(`${daemon.url}${path}`, {
      headers: {
        'content-type': 'application/json',
        'x-github-event': name,
        'x-github-delivery': randomUUID(),
        'x-hub-signature-256': await sign(secret, body),
      },
      body,
    })
    assert.equal(reply.status, 202, `${name}: ${reply.text}`)
    return reply.json() as { id: string; status: string }
  }
  const finished = async (id: string): Promise<EventDetail> => {
    await followed.next((record) => record.id === id && ['done', 'failed'].includes(record.state))
    return daemon.client.get<EventDetail>(`/events/${id}`)
  }

  it('are accepted, filtered as the definition says, and expanded without a gap', async function () {
    this.timeout(120_000)
    const template = /prompt_template: \|\n((?: {6}.*\n)+)/
      .exec(webhooks)?.[1]
      ?.replace(/^ {6}/gm, '')
    assert.ok(template)
    const seen = { accepted: 0, filtered: 0, ping: 0 }
    for (const example of await examples()) {
      const { name, payload } = example
      const matches =
        actions.includes(String(payload['action'])) && at(payload, 'sender.type') === 'User'
      const expected = name === 'ping' ? 'ping' : matches ? 'accepted' : 'filtered'
      const { id, status } = await deliver('/webhook/github', example)
      assert.equal(status, expected, `${name} ${String(payload['action'])}`)
      seen[expected] += 1
      if (expected !== 'accepted') continue
      const event = await finished(id)
      assert.equal(event.state, 'done', event.detail)
      const prompt: string = template.replaceAll(/\{\{event\.([\w.]+)\}\}/g, (_, path: string) =>
        text(at(payload, path)),
      )
      assert.equal(event.prompt, prompt)
    }
    assert.ok(seen.accepted > 20 && seen.filtered > 50 && seen.ping > 0, JSON.stringify(seen))
  })

  it('are given whole to the agent as {{event}}', async function () {
    this.timeout(120_000)
    for (const example of await examples()) {
      const { id, status } = await deliver('/webhook/all', example)
      if (example.name === 'ping') continue
      assert.equal(status, 'accepted')
      const event = await finished(id)
      assert.equal(event.prompt, JSON.stringify(example.payload))
    }
  })
})
