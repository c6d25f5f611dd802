import assert from 'node:assert/strict'
import type { EventDetail, EventRecord, WebhookSummary } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { schemeNamed } from '../../support/daemon/accepts.ts'
import { type Reply, send } from '../../support/servers/http.ts'
import {
  type Headers,
  pathOf,
  publicUrl,
  type Sender,
  senders as all,
} from '../../support/servers/senders.ts'

/** One of each way to prove a delivery; test/daemon/webhook/signatures has every sender. */
const names = [
  'hmac',
  'stripe',
  'slack',
  'standard-webhooks',
  'gitlab',
  'linear',
  'token',
  'trello',
]
const senders = all.filter(({ scheme }) => names.includes(scheme))
const named = (name: string): Sender => {
  const sender = senders.find(({ scheme }) => scheme === name)
  assert.ok(sender)
  return sender
}
const variableOf = (sender: Sender) => `SECRET_${senders.indexOf(sender)}`

const definitions = senders
  .map(
    (sender) => `
  - path: ${pathOf(sender)}
    agent: echo
    signature_scheme: ${sender.scheme}
    secret_env: ${variableOf(sender)}
    prompt_template: "{{event}}"`,
  )
  .join('')

const slack = named('slack')
const form = { 'content-type': 'application/x-www-form-urlencoded' }

describe('senders, as their own packages sign, through a running daemon', () => {
  let daemon: RunningDaemon
  const post = (sender: Sender, body: string, headers: Headers): Promise<Reply> =>
    // As bytes: Node writes headers as UTF-8, not Latin-1, together with a body that is text.
    send(`${daemon.url}${pathOf(sender)}`, { headers, body: Buffer.from(body) })
  const lastRejected = async (): Promise<EventRecord> => {
    const { events } = await daemon.client.get<{ events: EventRecord[] }>(
      '/events?state=rejected&limit=1',
    )
    assert.ok(events[0])
    return events[0]
  }
  const eventOf = (reply: Reply): string =>
    /^(\S+) \S+$/.exec(String(reply.headers['doorward-event'] ?? ''))?.[1] ??
    String(reply.json()['id'])

  before(async () => {
    daemon = await startDaemon({
      gateway: `server: { public_url: ${publicUrl} }\n`,
      webhooks: `webhooks:${definitions}\n  - path: /webhook/alias\n    agent: echo\n    signature_scheme: svix\n    secret_env: ${variableOf(slack)}\n    prompt_template: x\n`,
      variables: Object.fromEntries(
        senders.map((sender) => [variableOf(sender), sender.secret] as const),
      ),
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  it('shows the scheme of each webhook, an alias by its proper name', async () => {
    const { webhooks } = await daemon.client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
    for (const sender of senders)
      assert.equal(webhooks.find(({ path }) => path === pathOf(sender))?.scheme, sender.scheme)
    assert.equal(
      webhooks.find(({ path }) => path === '/webhook/alias')?.scheme,
      'standard-webhooks',
    )
  })

  for (const sender of senders)
    it(`${sender.name}: is accepted and run`, async () => {
      const body = sender.bodyAt(Date.now())
      const headers = await sender.sign(body, Date.now())
      const reply = await post(sender, body, headers)
      // Some senders take an empty 200 only.
      assert.ok(reply.status === 202 || (reply.status === 200 && reply.text === ''), reply.text)
      const event = await untilFinished(daemon, eventOf(reply))
      assert.equal(event.state, 'done')
      assert.deepEqual(JSON.parse(event.result ?? ''), JSON.parse(body))
    })

  it('does not read signed JSON as a form when somebody sends it again as one', async () => {
    const old = Date.now()
    for (const sender of senders) {
      const forged = encodeURIComponent(JSON.stringify({ event: 'forged' }))
      const body = JSON.stringify({
        ...(JSON.parse(sender.bodyAt(old)) as object),
        title: `x&payload=${forged}&y`,
      })
      const headers = await sender.sign(body, old)
      const reply = await post(sender, body, { ...headers, ...form })
      assert.equal(reply.status, 415, reply.text)
      assert.ok([200, 202].includes((await post(sender, body, headers)).status), sender.name)
    }
  })

  it('answers one 401, byte for byte, to all that is wrong with any of them', async () => {
    const answers = new Map<string, string[]>()
    const note = async (what: string, reply: Reply) => {
      const { date: _, ...headers } = reply.headers
      assert.equal(reply.status, 401, what)
      const key = JSON.stringify([headers, reply.text])
      answers.set(key, [...(answers.get(key) ?? []), what])
      const { code, stage, detail } = await lastRejected()
      assert.deepEqual([code, stage], ['signature-invalid', 'verify'])
      assert.ok((detail?.length ?? 0) > 20, detail)
      for (const { secret } of senders) assert.ok(!detail?.includes(secret))
    }
    for (const sender of senders) {
      const at = Date.now()
      const body = sender.bodyAt(at)
      const headers = await sender.sign(body, at)
      const isToken = schemeNamed(sender.scheme).forms.some(
        ({ check, header }) => check === 'token' && headers[header] !== undefined,
      )
      await note('nothing', await post(sender, body, { 'content-type': 'application/json' }))
      await note(
        'secret',
        await post(sender, body, await sender.sign(body, at, sender.otherSecret)),
      )
      if (!isToken) await note('body', await post(sender, `${body} `, headers))
      const old = at - 3600_000
      // Linear sends again, with the old time.
      if (['stripe', 'slack', 'standard-webhooks'].includes(sender.scheme)) {
        const oldBody = sender.bodyAt(old)
        await note('age', await post(sender, oldBody, await sender.sign(oldBody, old)))
      }
    }
    assert.equal(answers.size, 1, JSON.stringify([...answers.keys()]))
  })

  it('answers the challenge of Slack with it and nothing else, once it is verified', async () => {
    const body = JSON.stringify({
      token: 'x',
      challenge: '3eZbrw1aBm2rZ <b>',
      type: 'url_verification',
    })
    const reply = await post(slack, body, await slack.sign(body, Date.now()))
    assert.deepEqual([reply.status, reply.text], [200, '3eZbrw1aBm2rZ <b>'])
    assert.match(reply.headers['content-type'] ?? '', /^text\/plain/)
    assert.equal(reply.headers['x-content-type-options'], 'nosniff')
    const event = await daemon.client.get<EventDetail>(`/events/${eventOf(reply)}`)
    assert.deepEqual([event.state, event.prompt], ['filtered', undefined])
    const forged = await post(slack, body, await slack.sign(body, Date.now(), slack.otherSecret))
    assert.equal(forged.status, 401)
    assert.doesNotMatch(forged.text, /3eZbrw/)
  })

  it('answers a slash command of Slack with an empty 200, and runs it', async () => {
    const body =
      'command=%2Fdo&text=it+now&user_id=U1&response_url=https%3A%2F%2Fhooks.slack.com%2Fx'
    const headers = { ...(await slack.sign(body, Date.now())), ...form }
    const reply = await post(slack, body, headers)
    assert.deepEqual([reply.status, reply.text], [200, ''])
    const event = await untilFinished(daemon, eventOf(reply))
    assert.deepEqual(JSON.parse(event.result ?? ''), {
      command: '/do',
      text: 'it now',
      user_id: 'U1',
      response_url: 'https://hooks.slack.com/x',
    })
    // The body of the form is signed like any other.
    assert.equal((await post(slack, body.replace('now', 'not'), headers)).status, 401)
  })

  it('reads what is in the payload of a button of Slack, and answers an empty 200', async () => {
    const payload = { type: 'block_actions', actions: [{ value: 'click_me' }] }
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const reply = await post(slack, body, { ...(await slack.sign(body, Date.now())), ...form })
    assert.deepEqual([reply.status, reply.text], [200, ''])
    const event = await untilFinished(daemon, eventOf(reply))
    assert.deepEqual(JSON.parse(event.result ?? ''), payload)
  })
})

describe('a webhook whose secret is none of its scheme', () => {
  it('is 503, as the fault is ours, and config check and status say which', async () => {
    const daemon = await startDaemon({
      webhooks:
        'webhooks:\n  - path: /a\n    agent: echo\n    signature_scheme: standard-webhooks\n    secret_env: A_SECRET\n    prompt_template: x\n',
      env: "A_SECRET='whsec_not-base64!'\n",
    })
    try {
      const reply = await send(`${daemon.url}/a`, { body: '{}' })
      assert.deepEqual([reply.status, reply.json()['code']], [503, 'unavailable'])
      assert.ok(Number(reply.headers['retry-after']) > 0)
      const { problems } = await daemon.client.get<{
        problems: { code: string; detail: string }[]
      }>('/status')
      const problem = problems.find(({ code }) => code === 'secret-unusable')
      assert.match(problem?.detail ?? '', /A_SECRET is not base64/)
      assert.doesNotMatch(problem?.detail ?? '', /not-base64!/)
    } finally {
      await daemon.stop()
    }
  })
})
