import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { eventDetailSchema } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { startMailServer } from '../../support/servers/mail-server.ts'
import { githubHeaders } from '../../support/servers/sign.ts'
import { type TargetServer, json, startTargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const secret = 'a secret of the flow test'
const hookSecret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`

const tokenRecord = (provider: string, accessToken: string) => ({
  version: 1,
  provider,
  account: null,
  scopes: [],
  tokenType: 'Bearer',
  accessToken,
  expiresAt: null,
  obtainedAt: new Date().toISOString(),
  clientId: 'id',
})

describe('the delivery of an answer to the targets of a webhook', () => {
  let daemon: RunningDaemon
  let api: TargetServer
  let mail: Awaited<ReturnType<typeof startMailServer>>

  before(async () => {
    api = await startTargetServer((response, { path }, request) => {
      const document = path.startsWith('/slack')
        ? { ok: false, error: 'not_in_channel' }
        : { ok: true, id: '1' }
      return json(path.includes('/issues/') ? 201 : 200, document)(response, {} as never, request)
    })
    mail = await startMailServer()
    const home = await temporaryHome({
      env: [
        `HOOK_SECRET=${secret}`,
        'TELEGRAM_BOT=123:canary-bot-token',
        `OPS_URL=${api.origin}/discord/webhooks/1/canary-url-token`,
        `SMTP_URL=smtp://me:a%20pass%40word@127.0.0.1:${mail.port}`,
        `ARCHIVE_SECRET=${hookSecret}`,
      ].join('\n'),
      gateway: `
oauth: { callback_port: 0 }
targets:
  slack: { api_url: "${api.origin}/slack" }
  telegram: { api_url: "${api.origin}/telegram", token_env: TELEGRAM_BOT, me: 42 }
  discord: { ops: { url_env: OPS_URL } }
  email: { smtp_url_env: SMTP_URL, from: me@example.com }
  github: { api_url: "${api.origin}/github" }
  http: { archive: { url: "${api.origin}/archive", secret_env: ARCHIVE_SECRET } }
`,
      webhooks: `
webhooks:
  - path: /github
    agent: echo
    secret_env: HOOK_SECRET
    prompt_template: "answer-canary {{event.text}}"
    deliver_to:
      - telegram:@me
      - discord:ops
      - slack:#general
      - email:jane@example.com
      - "github:{{event.repository.full_name}}#{{event.issue.number}}"
      - http:archive
      - file:answers.md
  - path: /quiet
    agent: echo
    prompt_template: "{{event.text}}"
    deliver_to: [discord:ops, http:archive, "file:quiet.md", notify:desktop]
`,
    })
    await mkdir(home.tokens, { mode: 0o700 })
    for (const provider of ['slack', 'github'])
      await writeFile(
        join(home.tokens, `${provider}.json`),
        JSON.stringify(tokenRecord(provider, `canary-${provider}-token`)),
        { mode: 0o600 },
      )
    // The proxy of the environment must not be used: nothing listens there.
    const proxy = 'http://127.0.0.1:9'
    const variables = { HTTP_PROXY: proxy, http_proxy: proxy, NODE_USE_ENV_PROXY: '1' }
    daemon = await startDaemon({ home, variables })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    api.close()
    mail.close()
  })

  const post = async (payload: object) => {
    const body = JSON.stringify(payload)
    const headers = githubHeaders(body, secret, { 'x-github-delivery': String(Math.random()) })
    const reply = await send(`${daemon.url}/github`, { headers, body })
    return untilFinished(daemon, String(reply.json()['id']))
  }
  const payload = { text: 'hello', repository: { full_name: 'acme/door' }, issue: { number: 7 } }
  const sentTo = (path: string) => api.requests.filter((request) => request.path.startsWith(path))

  it('reaches all targets but the one that refuses it, which is named', async () => {
    const event = await post(payload)
    assert.deepEqual(eventDetailSchema.parse(event), event)
    assert.deepEqual(
      event.targets.map(({ target, state }) => [target, state]),
      [
        ['telegram:@me', 'done'],
        ['discord:ops', 'done'],
        ['slack:#general', 'failed'],
        ['email:jane@example.com', 'done'],
        ['github:acme/door#7', 'done'],
        ['http:archive', 'done'],
        ['file:answers.md', 'done'],
      ],
    )
    assert.deepEqual(
      [event.state, event.stage, event.code, event.result],
      ['failed', 'deliver', 'delivery-failed', 'answer-canary hello'],
    )
    assert.match(event.detail ?? '', /^slack:#general: slack answered not_in_channel \(invite/)

    assert.equal(sentTo('/telegram/bot123:canary-bot-token/')[0]?.fields['chat_id'], '42')
    assert.equal(sentTo('/discord')[0]?.fields['content'], 'answer-canary hello')
    assert.equal(sentTo('/slack')[0]?.headers.authorization, 'Bearer canary-slack-token')
    assert.match(mail.mails[0]?.text ?? '', /answer-canary hello/)
    assert.equal(sentTo('/github/repos/acme/door/issues/7/comments').length, 1)
    const [signed] = sentTo('/archive')
    new Webhook(hookSecret).verify(signed?.text ?? '', signed?.headers as Record<string, string>)
    assert.match(await readFile(join(daemon.home.root, 'answers.md'), 'utf8'), /answer-canary/)
  })

  it('runs no agent for the event of its own comment', async () => {
    const body = String(sentTo('/github')[0]?.fields['body'])
    const echo = await post({ ...payload, action: 'created', comment: { body } })
    assert.deepEqual([echo.state, echo.detail], ['filtered', 'it is about our own comment'])
    const copied = `${body.split('\n', 1)[0]}\nrun this instead`
    const stranger = await post({ ...payload, action: 'created', comment: { body: copied } })
    assert.equal(stranger.prompt, 'answer-canary hello')
  })

  it('fails for a target whose name an event would change, and sends nothing', async () => {
    const before = sentTo('/github').length
    const event = await post({ ...payload, repository: { full_name: '../../user' } })
    const result = event.targets.find(({ target }) => target.startsWith('github'))
    assert.deepEqual([result?.state, result?.code], ['failed', 'target-invalid'])
    assert.match(result?.target ?? '', /\{\{event\.repository\.full_name\}\}/)
    assert.equal(sentTo('/github').length, before)
  })

  it('sends an empty answer nowhere, and says so', async () => {
    const before = api.requests.length
    const run = async (path: string, text: string) => {
      const reply = await send(`${daemon.url}${path}`, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text }),
      })
      return untilFinished(daemon, String(reply.json()['id']))
    }
    for (const text of ['', ' \n', '\u001b[0m']) {
      const quiet = await run('/quiet', text)
      assert.deepEqual(
        [quiet.state, quiet.detail, new Set(quiet.targets.map(({ state }) => state))],
        ['done', 'the answer is empty: nothing was delivered', new Set(['waiting'])],
      )
    }
    assert.equal(api.requests.length, before)
    await assert.rejects(readFile(join(daemon.home.root, 'quiet.md')), { code: 'ENOENT' })
  })

  it('leaves no token, URL, address or answer in the log', async () => {
    const log = await readFile(daemon.home.log, 'utf8')
    assert.doesNotMatch(log, /canary|jane|127\.0\.0\.1:\d+\/(slack|discord)|acme|#general/)
    assert.doesNotMatch(
      JSON.stringify(await daemon.client.get('/status')),
      /canary-(bot|url|slack)/,
    )
  })
})
