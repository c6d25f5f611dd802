import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, describe, it } from 'mocha'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the tests'
const repository = { full_name: 'acme/shop' }
const sender = { login: 'ada', type: 'User' }

const rule = (path: string, scheme: string, more: string) => `
  - path: ${path}
    signature_scheme: ${scheme}
    secret_env: HOOK_SECRET
    agent: echo
    prompt_template: ran
    who: anyone
${more}`

describe('an event that is acknowledged', () => {
  let api: TargetServer
  let daemon: RunningDaemon

  before(async () => {
    api = await startTargetServer((response, recorded, request) => {
      const { method, path } = recorded
      const isNew = path.endsWith('/reactions')
      const document = isNew ? { id: 41, content: 'eyes' } : { ok: true, result: true }
      const status = method === 'DELETE' ? 204 : isNew ? 201 : 200
      if (status !== 204) return json(status, document)(response, recorded, request)
      response.writeHead(204).end()
    })
    const home = await temporaryHome({
      env: `HOOK_SECRET=${secret}\nTOKEN=123:a-token\n`,
      gateway: `
targets:
  github: { api_url: "${api.origin}", token_env: TOKEN }
  slack: { api_url: "${api.origin}/slack", token_env: TOKEN }
  telegram: { api_url: "${api.origin}", token_env: TOKEN }
`,
      webhooks: `webhooks:${rule('/usual', 'github', '')}${rule('/always', 'github', '    acknowledge: true\n')}${rule('/never', 'github', '    acknowledge: false\n')}${rule('/asked', 'github', '').replace('anyone', 'write')}${rule('/slack', 'slack', '    acknowledge: true\n')}${rule('/telegram', 'telegram', '    acknowledge: true\n')}`,
    })
    daemon = await startDaemon({ home })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    api.close()
  })

  const post = async (path: string, body: string, headers: Record<string, string>) => {
    const before = api.requests.length
    const reply = await send(`${daemon.url}${path}`, { headers, body })
    assert.equal(reply.status, 202, reply.text)
    const event = await untilFinished(daemon, String(reply.json()['id']))
    return { event, asked: async (count: number) => untilAsked(before, count) }
  }
  /** Waits for so many requests, by asking the daemon something between two looks. */
  const untilAsked = async (before: number, count: number) => {
    while (api.requests.length < before + count) await daemon.client.get('/status')
    return api.requests
      .slice(before)
      .map(({ method, path, fields }) => [method, path, fields] as const)
  }
  const github = async (path: string, event: string, payload: object) => {
    const body = JSON.stringify({ repository, sender, ...payload })
    return post(path, body, githubHeaders(body, secret, { 'x-github-event': event }))
  }
  const comment = { action: 'created', issue: { number: 7 }, comment: { id: 99 } }

  it('has eyes on the comment that started it until it has ended', async () => {
    const { event, asked } = await github('/usual', 'issue_comment', comment)
    assert.deepEqual([event.state, event.detail], ['done', undefined])
    const path = '/repos/acme/shop/issues/comments/99/reactions'
    assert.deepEqual(await asked(2), [
      ['POST', path, { content: 'eyes' }],
      ['DELETE', `${path}/41`, {}],
    ])
    const review = { action: 'created', pull_request: { number: 8 }, comment: { id: 98 } }
    const onLine = await github('/usual', 'pull_request_review_comment', review)
    const [first] = await onLine.asked(2)
    assert.equal(first?.[1], '/repos/acme/shop/pulls/comments/98/reactions')
  })

  it('has them on a pull request or issue where the rule says so, and nowhere where it says that', async () => {
    const opened = { action: 'opened', number: 8, pull_request: { number: 8 } }
    const { asked } = await github('/always', 'pull_request', opened)
    assert.equal((await asked(2))[0]?.[1], '/repos/acme/shop/issues/8/reactions')
    const before = api.requests.length
    await github('/usual', 'pull_request', opened)
    await github('/never', 'issue_comment', comment)
    assert.equal(api.requests.length, before)
  })

  it('has them in Slack and in Telegram', async () => {
    const event = { type: 'app_mention', channel: 'C0123ABCD', ts: '1355517523.000005', user: 'U1' }
    const body = JSON.stringify({ type: 'event_callback', event_id: 'Ev1', event })
    const time = String(Math.floor(Date.now() / 1000))
    const mac = createHmac('sha256', secret).update(`v0:${time}:${body}`).digest('hex')
    const inSlack = await post('/slack', body, {
      'content-type': 'application/json',
      'x-slack-request-timestamp': time,
      'x-slack-signature': `v0=${mac}`,
    })
    const place = { channel: 'C0123ABCD', timestamp: '1355517523.000005', name: 'eyes' }
    assert.deepEqual(await inSlack.asked(2), [
      ['POST', '/slack/reactions.add', place],
      ['POST', '/slack/reactions.remove', place],
    ])
    const message = {
      message_id: 5,
      chat: { id: -1001 },
      from: { id: 1, is_bot: false },
      text: 'x',
    }
    const inTelegram = await post('/telegram', JSON.stringify({ update_id: 1, message }), {
      'content-type': 'application/json',
      'x-telegram-bot-api-secret-token': secret,
    })
    const set = (reaction: object[]) => [
      'POST',
      '/bot123:a-token/setMessageReaction',
      { chat_id: '-1001', message_id: 5, reaction },
    ]
    assert.deepEqual(await inTelegram.asked(2), [set([{ type: 'emoji', emoji: '👀' }]), set([])])
  })

  it('is done with a note where the sender takes no eyes', async () => {
    api.next(json(403, { message: 'Resource not accessible by integration' }))
    const { event } = await github('/usual', 'issue_comment', comment)
    assert.equal(event.state, 'done')
    assert.match(event.detail ?? '', /^not acknowledged: github answered 403/)
  })

  it('has none where its sender may not start it', async () => {
    const { event, asked } = await github('/asked', 'issue_comment', comment)
    assert.equal(event.code, 'not-allowed')
    const requests = await asked(1)
    assert.ok(requests.every(([method, path]) => method === 'GET' && path.endsWith('/permission')))
  })
})
