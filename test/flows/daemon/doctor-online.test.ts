import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { type IncomingMessage, type ServerResponse, createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type RunningDaemon, startDaemon } from '../../support/daemon/daemon.ts'
import { type Examined, examined } from '../../support/daemon/doctor.ts'
import { startMailServer } from '../../support/servers/mail-server.ts'
import { type TargetServer, json, startTargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const hookSecret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`

const tokenRecord = (provider: string) => ({
  version: 1,
  provider,
  account: { id: 'U1', name: 'jane.doe@example.com' },
  scopes: [],
  tokenType: 'Bearer',
  accessToken: `canary-${provider}-token`,
  expiresAt: null,
  obtainedAt: new Date().toISOString(),
  clientId: 'id',
})

describe('doctor --online', () => {
  let api: TargetServer
  let mail: Awaited<ReturnType<typeof startMailServer>>
  let daemon: RunningDaemon
  let isGood = true

  before(async () => {
    api = await startTargetServer((response, recorded, asked) => {
      const isSlack = recorded.path.startsWith('/slack')
      const document = isGood ? { ok: true } : { ok: false, error: 'invalid_auth' }
      return json(isGood || isSlack ? 200 : 401, document)(response, recorded, asked)
    })
    mail = await startMailServer()
    const home = await temporaryHome({
      env: [
        'HOOK_SECRET=4f6f1c0d9b7a4e52a9f1c0d9b7a4e52a',
        'TELEGRAM_BOT=123:canary-bot-token',
        `OPS_URL=${api.origin}/discord/webhooks/1/canary-url-token`,
        `SMTP_URL=smtp://me:a%20pass%40word@127.0.0.1:${mail.port}`,
        `ARCHIVE_SECRET=${hookSecret}`,
        'MODEL_KEY=canary-model-key',
        'GITLAB_TOKEN=canary-gitlab-token',
      ].join('\n'),
      agents: `agents: { model: { kind: openai, base_url: "${api.origin}/v1", model: m, api_key_env: MODEL_KEY } }\n`,
      gateway: `
oauth: { callback_port: 0 }
providers: { slack: { token_endpoint: "${api.origin}/token" }, github: { issuer: "${api.origin}" } }
targets:
  slack: { api_url: "${api.origin}/slack" }
  telegram: { api_url: "${api.origin}/telegram", token_env: TELEGRAM_BOT, me: 42 }
  discord: { ops: { url_env: OPS_URL } }
  email: { smtp_url_env: SMTP_URL, from: me@example.com }
  github: { api_url: "${api.origin}/github" }
  gitlab: { api_url: "${api.origin}/gitlab", token_env: GITLAB_TOKEN }
  http: { archive: { url: "${api.origin}/archive", secret_env: ARCHIVE_SECRET } }
`,
      webhooks: `
webhooks:
  - path: /github
    agent: model
    secret_env: HOOK_SECRET
    prompt_template: "{{event.text}}"
    deliver_to: [telegram:@me, discord:ops, "slack:#general", email:jane@example.com, "github:a/b#1", "gitlab:a/b!1", http:archive]
`,
    })
    await mkdir(home.tokens, { mode: 0o700 })
    for (const provider of ['slack', 'github'])
      await writeFile(
        join(home.tokens, `${provider}.json`),
        JSON.stringify(tokenRecord(provider)),
        { mode: 0o600 },
      )
    daemon = await startDaemon({ home })
  })
  after(async () => {
    await daemon.stop()
    api.close()
    mail.close()
  })

  const kinds = ['discord:ops', 'email', 'github', 'gitlab', 'http:archive', 'slack', 'telegram']
  const statuses = ({ of }: Examined) =>
    of('targets')
      .map(({ name, status }) => `${name} ${status}`)
      .sort()

  it('asks every target whether it accepts our token, and leaves nothing behind', async () => {
    const found = await examined(daemon.home, {}, '--online')
    assert.equal(found.code, 0, JSON.stringify(found.document.checks, null, 2))
    assert.deepEqual(
      statuses(found),
      kinds.map((kind) => `${kind} ok`),
    )
    assert.deepEqual(
      api.requests
        .filter(({ method }) => method !== 'HEAD')
        .map(({ method, path }) => `${method} ${path}`)
        .sort(),
      [
        'GET /discord/webhooks/1/canary-url-token',
        'GET /github/user',
        'GET /gitlab/user',
        'GET /telegram/bot123:canary-bot-token/getMe',
        'GET /v1/models',
        'POST /slack/auth.test',
      ],
    )
    assert.deepEqual(mail.mails, [])
    assert.equal(found.of('agents', 'model').at(-1)?.status, 'ok')
    assert.equal(found.of('logins', 'slack endpoint')[0]?.status, 'ok')
    assert.doesNotMatch(found.stdout, /canary|jane/)
  })

  it('says which of them refuses it, and never shows it', async () => {
    isGood = false
    const found = await examined(daemon.home, {}, '--online')
    isGood = true
    assert.equal(found.code, 1)
    const refused = ['discord:ops', 'github', 'gitlab', 'slack', 'telegram']
    assert.deepEqual(
      statuses(found),
      kinds.map((kind) => `${kind} ${refused.includes(kind) ? 'error' : 'ok'}`),
    )
    assert.equal(found.of('targets', 'slack')[0]?.hint, 'doorward oauth login slack')
    assert.match(found.of('agents', 'model').at(-1)?.detail ?? '', /refuses the key/)
    assert.doesNotMatch(found.stdout, /canary|jane/)
  })

  it('warns of a server that lists no models, and names what is asked of it', async () => {
    const nobody = await startTargetServer(json(404, {}))
    const other = await startDaemon({
      agents: `agents: { model: { kind: openai, base_url: "${nobody.origin}", model: m } }\n`,
      webhooks: 'webhooks: [{ path: /a, agent: model, prompt_template: x }]\n',
    })
    const { code, of } = await examined(other.home, {}, '--online')
    await other.stop()
    nobody.close()
    const model = of('agents', 'model').at(-1)
    assert.equal(code, 0)
    assert.equal(model?.status, 'warning')
    assert.match(model?.detail ?? '', /answers 404 .*\(\/models\)/)
    assert.match(model?.hint ?? '', /base_url.*\/v1/)
  })
})

/** A tunnel: passes each request on to an address of this machine, under a name that it chooses. */
const startTunnel = async () => {
  let to = { port: 0, host: undefined as string | undefined }
  const seen: IncomingMessage['headers'][] = []
  const server = createServer((asked: IncomingMessage, answer: ServerResponse) => {
    seen.push(asked.headers)
    const { method, url: path } = asked
    const host = to.host ?? 'doorward.example.net'
    const options = { host: '127.0.0.1', port: to.port, method, path, headers: { host } }
    const passed = request(options, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    passed.once('error', () => answer.writeHead(502).end())
    asked.pipe(passed)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    lead: (port: number, host?: string) => {
      to = { port, host }
    },
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

describe('doctor --online with a tunnel', () => {
  let tunnel: Awaited<ReturnType<typeof startTunnel>>
  let daemon: RunningDaemon
  let mainPort: number
  let publicPort: number

  before(async () => {
    tunnel = await startTunnel()
    const free = createServer().listen(0, '127.0.0.1')
    await once(free, 'listening')
    publicPort = (free.address() as AddressInfo).port
    free.close()
    daemon = await startDaemon({
      env: 'HOOK_SECRET=4f6f1c0d9b7a4e52a9f1c0d9b7a4e52a\n',
      webhooks:
        'webhooks: [{ path: /a, agent: echo, prompt_template: x, secret_env: HOOK_SECRET }]\n',
      gateway: `server: { public_url: "${tunnel.url}", public_port: ${publicPort} }\noauth: { callback_port: 0 }\n`,
    })
    mainPort = Number(new URL(daemon.url).port)
  })
  after(async () => {
    await daemon.stop()
    tunnel.close()
  })

  const ask = async () => {
    const found = await examined(daemon.home, {}, '--online')
    const tunnels = found.of('tunnel').map(({ name, status }) => `${name} ${status}`)
    return { ...found, tunnels }
  }

  it('is content where it ends at the port for webhooks alone', async () => {
    tunnel.lead(publicPort)
    const { code, tunnels } = await ask()
    assert.deepEqual(tunnels, [
      '/status ok',
      '/events ok',
      '/oauth/tokens ok',
      '/health ok',
      '/a ok',
    ])
    assert.equal(code, 0)
    assert.ok(tunnel.seen.length >= 5)
    for (const headers of tunnel.seen) assert.equal(headers.authorization, undefined)
  })

  it('is red where it ends at the main port', async () => {
    tunnel.lead(mainPort)
    const { code, tunnels, of } = await ask()
    assert.deepEqual(tunnels, [
      '/status ok',
      '/events ok',
      '/oauth/tokens ok',
      '/health error',
      '/a ok',
    ])
    assert.match(of('tunnel', '/health')[0]?.hint ?? '', /server\.public_port/)
    assert.equal(code, 1)
  })

  it('is red where it makes requests look like those of this machine', async () => {
    tunnel.lead(mainPort, `127.0.0.1:${mainPort}`)
    const { tunnels, of } = await ask()
    assert.deepEqual(
      tunnels.filter((line) => line.endsWith('error')),
      ['/status error', '/events error', '/oauth/tokens error', '/health error'],
    )
    assert.match(of('tunnel', '/events')[0]?.detail ?? '', /only the token protects it/)
  })

  it('is red where it leads to another program, or nowhere', async () => {
    const other = await startTargetServer()
    tunnel.lead(Number(new URL(other.origin).port))
    const found = await ask()
    assert.match(found.of('tunnel', '/a')[0]?.detail ?? '', /is not doorward \(200\)/)
    other.close()
    tunnel.close()
    const gone = await ask()
    assert.match(gone.of('tunnel', 'tunnel')[0]?.detail ?? '', /cannot be reached \(ECONNREFUSED\)/)
    assert.equal(gone.code, 1)
  })
})
