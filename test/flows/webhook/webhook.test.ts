import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { eventDetailSchema } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'

const secret = 'a secret of the flow test'
const payload = JSON.stringify({
  action: 'opened',
  number: 2,
  pull_request: { title: 'Mend the door', user: { login: 'octocat' }, labels: [{ name: 'bug' }] },
})

describe('a webhook from its sender to its target', () => {
  let daemon: RunningDaemon
  const post = (
    path: string,
    body = payload,
    headers = githubHeaders(body, secret),
  ): Promise<Reply> => send(`${daemon.url}${path}`, { headers, body })

  before(async () => {
    daemon = await startDaemon({
      env: `HOOK_SECRET=${secret}\nNEW_SECRET=another one\n`,
      webhooks: `
webhooks:
  - path: /github
    agent: echo
    secret_env: HOOK_SECRET
    prompt_template: "#{{event.number}} {{event.pull_request.title}} by {{event.pull_request.user.login}} {{event.pull_request.labels.0.name}}{{event.nothing}}"
    filter: { action: [opened, reopened], pull_request.labels.0.name: bug }
    deliver_to: [log, "file:answers/{{event.number}}.md", notify:desktop]
  - path: /webhook/off
    agent: echo
    secret_env: HOOK_SECRET
    prompt_template: off
    enabled: false
  - path: /webhook/rotated
    agent: echo
    secret_env: [UNSET_SECRET, HOOK_SECRET, NEW_SECRET]
    prompt_template: rotated
  - path: /webhook/unset
    agent: echo
    secret_env: UNSET_SECRET
    prompt_template: unset
  - path: /webhook/open
    agent: echo
    prompt_template: "{{event}}"
`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('is answered 202 at once, run, and delivered to every target', async () => {
    const named = { 'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958' }
    const reply = await post('/webhook/github', payload, githubHeaders(payload, secret, named))
    assert.equal(reply.status, 202)
    const { id, status } = reply.json()
    assert.equal(status, 'accepted')
    const event = await untilFinished(daemon, String(id))
    assert.deepEqual(eventDetailSchema.parse(event), event)
    assert.equal(event.state, 'done')
    assert.equal(event.prompt, '#2 Mend the door by octocat bug')
    assert.equal(event.result, '#2 Mend the door by octocat bug')
    assert.equal(event.deliveryId, '72d3162e-cc78-11e3-81ab-4c9367dc0958')
    assert.equal(event.signed, true)
    assert.deepEqual(
      event.targets.map(({ target, state }) => [target, state]),
      [
        ['log', 'done'],
        ['file:answers/2.md', 'done'],
        ['notify:desktop', 'done'],
      ],
    )
    assert.equal(event.targets[2]?.detail, 'no tray is connected to show it')
    assert.match(daemon.stdout(), /#2 Mend the door by octocat bug/)
    const file = await readFile(join(daemon.home.root, 'answers/2.md'), 'utf8')
    assert.match(file, /^## \S+ \/github\n\n<!-- evt_\w+ -->\n#2 Mend the door by octocat bug\n\n$/)
  })

  it('is not shown on the desktop by a terminal that follows the events', async () => {
    const ended = new AbortController()
    const stream = await daemon.client.open('/events/stream', { signal: ended.signal })
    stream.on('error', () => undefined).resume()
    const reply = await post('/webhook/github')
    const event = await untilFinished(daemon, String(reply.json()['id']))
    ended.abort()
    assert.equal(event.targets[2]?.detail, 'no tray is connected to show it')
  })

  it('takes any of several secrets while one of them is unset', async () => {
    for (const known of [secret, 'another one'])
      assert.equal(
        (await post('/webhook/rotated', payload, githubHeaders(payload, known))).status,
        202,
      )
    const wrong = await post('/webhook/rotated', payload, githubHeaders(payload, 'a third'))
    assert.equal(wrong.json()['code'], 'signature-invalid')
  })

  it('is answered 503 with Retry-After while its secret is unset', async () => {
    const reply = await post('/webhook/unset')
    assert.equal(reply.status, 503)
    assert.equal(reply.json()['code'], 'unavailable')
    assert.ok(Number(reply.headers['retry-after']) > 0)
    assert.doesNotMatch(reply.text, /UNSET_SECRET/)
  })

  it('is 404 when it is switched off, unknown, or differs in case or by a slash', async () => {
    for (const path of ['/webhook/off', '/nothing', '/GitHub', '/github/', '/webhook/github/']) {
      const reply = await post(path)
      assert.deepEqual([path, reply.status, reply.json()['code']], [path, 404, 'webhook-not-found'])
    }
  })
})
