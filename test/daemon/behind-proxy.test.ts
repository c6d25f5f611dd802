import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'mocha'
import { askHttp } from '../../daemon/agents/http-agent.ts'
import { askOpenAi } from '../../daemon/agents/openai-agent.ts'
import { connectTarget, requestTarget } from '../../daemon/delivery/request.ts'
import { sendBySmtp } from '../../daemon/delivery/targets/smtp.ts'
import { askProvider } from '../../daemon/oauth/providers/request.ts'
import { Pings } from '../../daemon/tunnel/pings.ts'
import { configureNetwork } from '../../shared/network/outgoing.ts'
import { deliverWith, makeReply, resolveTargets } from '../support/servers/deliver.ts'
import { startMailServer } from '../support/servers/mail-server.ts'
import {
  type Certificates,
  makeCertificates,
  startBadProxy,
  startProxy,
  startTlsFront,
} from '../support/servers/private-network.ts'
import { json, startTargetServer, type TargetServer } from '../support/servers/target-server.ts'

describe('behind a proxy that demands a password, with a private CA', () => {
  let certificates: Certificates
  let server: TargetServer
  let front: Awaited<ReturnType<typeof startTlsFront>>
  let proxy: Awaited<ReturnType<typeof startProxy>>

  before(async () => {
    certificates = await makeCertificates()
    proxy = await startProxy()
  })
  after(async () => proxy.close())
  const start = async (document: object) => {
    server = await startTargetServer(json(200, document))
    front = await startTlsFront(certificates, Number(new URL(server.origin).port))
    use({})
    return `https://api.corp.example:${front.port}`
  }
  const use = (more: NodeJS.ProcessEnv) =>
    configureNetwork({
      HTTPS_PROXY: proxy.url,
      NODE_EXTRA_CA_CERTS: certificates.caFile,
      ...more,
    })
  afterEach(() => {
    configureNetwork(process.env)
    proxy.connections.length = 0
    front.close()
    server.close()
  })
  const { signal } = new AbortController()
  const secret = `whsec_${Buffer.from('a secret of 24 bytes, ok').toString('base64')}`
  const tokens = { slack: ['xoxb-1'], github: ['gho_1'], google: ['ya29.1'] }

  const targets: readonly (readonly [
    string,
    string,
    (origin: string) => Parameters<typeof deliverWith>[0],
  ])[] = [
    ['Slack', 'slack:#general', (origin) => ({ slack: { api_url: origin } })],
    ['GitHub', 'github:a/b#1', (origin) => ({ github: { api_url: origin } })],
    ['Telegram', 'telegram:42', (origin) => ({ telegram: { api_url: origin, token_env: 'BOT' } })],
    ['Discord', 'discord:ops', () => ({ discord: { ops: { url_env: 'OPS' } } })],
    [
      'an HTTP target',
      'http:log',
      (origin) => ({ http: { log: { url: `${origin}/log`, secret_env: 'HOOK' } } }),
    ],
    ['Gmail', 'email:jane@example.com', (origin) => ({ email: { api_url: origin } })],
  ]
  for (const [what, target, settings] of targets)
    it(`an answer reaches ${what}, and a refusal of the proxy is named`, async () => {
      const origin = await start({ ok: true, id: '1', result: { message_id: 1 } })
      const { deliver } = deliverWith(settings(origin), {
        env: { BOT: '123:canary', OPS: `${origin}/api/webhooks/1/canary`, HOOK: secret },
        tokens,
      })
      const [result] = await deliver(resolveTargets([target]), makeReply())
      assert.deepEqual([result?.state, result?.detail], ['done', undefined])
      assert.equal(server.requests.length, 1)
      assert.deepEqual(proxy.connections, [`api.corp.example:${front.port}`])

      use({ HTTPS_PROXY: `http://${proxy.place}` })
      const [failed] = await deliver(resolveTargets([target]), makeReply())
      assert.deepEqual([failed?.state, failed?.attempts], ['failed', 1])
      assert.match(failed?.detail ?? '', /the proxy \S+ asks for a password \(407\) \(write it/)
      use({ NODE_EXTRA_CA_CERTS: undefined })
      const [untrusted] = await deliver(resolveTargets([target]), makeReply())
      assert.match(untrusted?.detail ?? '', /is not trusted .*NODE_EXTRA_CA_CERTS/)
      assert.equal(server.requests.length, 1)
    })

  it('models and servers of agents are asked', async () => {
    const origin = await start({ choices: [{ message: { content: 'hello' } }], text: 'hi' })
    const common = { timeout: 5000, concurrency: 1, output_limit: 1024 }
    const openai = { kind: 'openai', base_url: `${origin}/v1`, model: 'm', ...common } as const
    const http = { kind: 'http', url: `${origin}/ask`, answer_path: 'text', ...common } as const
    const question = { prompt: 'p', webhook: '/a', eventId: 'evt_1' }
    assert.equal((await askOpenAi(openai, { prompt: 'p' }, {}, signal)).text, 'hello')
    assert.equal((await askHttp(http, question, {}, signal)).text, 'hi')
    assert.equal(proxy.connections.length, 2)

    use({ HTTPS_PROXY: 'http://127.0.0.1:1' })
    await assert.rejects(askOpenAi(openai, { prompt: 'p' }, {}, signal), {
      code: 'agent-failed',
      message: /: the proxy 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)$/,
      localDetail: /doorward help networks\)$/,
    })
    use({ NODE_EXTRA_CA_CERTS: undefined })
    await assert.rejects(askHttp(http, question, {}, signal), { hint: /NODE_EXTRA_CA_CERTS/ })
  })

  const attempt = { signal, timeoutMs: 5000, mailTimeoutMs: 5000 }

  it('a check connects and sends nothing, and says what the proxy refuses', async () => {
    const url = new URL(await start({}))
    await connectTarget(url, 'http:ops', attempt)
    assert.deepEqual([proxy.connections.length, server.requests.length], [1, 0])
    use({ HTTPS_PROXY: `http://${proxy.place}` })
    await assert.rejects(connectTarget(url, 'http:ops', attempt), /asks for a password \(407\)/)
  })

  it('a proxy that takes connections and says nothing is blamed, and not who was asked', async () => {
    const origin = await start({})
    const silent = await startBadProxy(() => undefined)
    use({ HTTPS_PROXY: silent.url })
    const words = `the proxy ${silent.place} did not answer in time`
    const limited = { signal, timeoutMs: 200 }
    const common = { timeout: 200, concurrency: 1, output_limit: 1024 }
    const http = { kind: 'http', url: `${origin}/ask`, ...common } as const
    const question = { prompt: 'p', webhook: '/a', eventId: 'evt_1' }
    const isBlamed = ({ message }: Error) => message.endsWith(words)
    try {
      await assert.rejects(askProvider(`${origin}/token`, { limitMs: 200 }, signal), isBlamed)
      await assert.rejects(connectTarget(new URL(origin), 'http:ops', limited), isBlamed)
      await assert.rejects(
        requestTarget(new URL(origin), { target: 'http:ops', attempt: limited }),
        isBlamed,
      )
      await assert.rejects(askHttp(http, question, {}, signal), isBlamed)
      assert.equal(await new Pings(200).send(origin, signal), words)
    } finally {
      silent.close()
    }
  })

  for (const isTls of [true, false])
    it(`mail is sent ${isTls ? 'by TLS' : 'by STARTTLS'}`, async () => {
      await start({})
      const { key, cert } = certificates
      const mail = await startMailServer({ secure: isTls, key, cert, disabledCommands: [] })
      const url = `smtp${isTls ? 's' : ''}://me:a%20pass%40word@mail.corp.example:${mail.port}`
      const { deliver } = deliverWith(
        { email: { smtp_url_env: 'SMTP', from: 'me@example.com' } },
        { env: { SMTP: url } },
      )
      const send = async () =>
        (await deliver(resolveTargets(['email:jane@example.com']), makeReply()))[0]
      const place = { host: 'mail.corp.example', port: mail.port, isTls, isLoopback: false }
      try {
        assert.deepEqual((await send())?.state, 'done')
        assert.equal(mail.mails[0]?.isEncrypted, true)
        await sendBySmtp(undefined, place, attempt)
        assert.equal(proxy.connections.length, 2)

        use({ HTTPS_PROXY: `http://${proxy.place}` })
        const failed = await send()
        assert.match(
          failed?.detail ?? '',
          /^the mail server cannot be reached: the proxy .* \(407\)/,
        )
        assert.equal(failed?.attempts, 1)
        use({ NODE_EXTRA_CA_CERTS: undefined })
        assert.match((await send())?.detail ?? '', /is not trusted .*NODE_EXTRA_CA_CERTS/)
        assert.equal(mail.mails.length, 1)
      } finally {
        mail.close()
      }
    })
})
