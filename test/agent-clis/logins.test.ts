import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runCli } from '../../daemon/agents/cli-agent.ts'
import { runProcess } from '../../daemon/agents/process.ts'
import type { CliAgent } from '../../shared/agents/schema.ts'
import { findSandbox } from '../../shared/sandbox/probe.ts'
import { type ModelServer, startModelServer } from '../support/servers/model-server.ts'
import { makeCertificates, startTlsFront } from '../support/servers/private-network.ts'
import { temporaryFolder } from '../support/temporary.ts'

/*
 * The agent programs themselves renew their logins, at the addresses of their services: a proxy leads all of them
 * to a server of the test. test/security/agent-logins.test.ts has what an agent may try with a login.
 */

const programs = fileURLToPath(
  new URL('../../../test/agent-clis/node_modules/.bin', import.meta.url),
)

const hourMs = 60 * 60_000

const jwt = (endsAt: number, name: string): string =>
  [
    { alg: 'none' },
    {
      exp: Math.floor(endsAt / 1000),
      name,
      'https://api.openai.com/auth': { chatgpt_account_id: 'me', chatgpt_plan_type: 'plus' },
    },
  ]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .concat('signature')
    .join('.')

type Internet = {
  readonly proxy: string
  readonly origin: string
  readonly caFile: string
  /** The bodies of requests for a token. */
  readonly asked: string[]
  readonly close: () => void
}

/** All addresses: a token endpoint whose refresh tokens work once, and the model. */
const startInternet = async (model: ModelServer): Promise<Internet> => {
  const asked: string[] = []
  const plain = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body = Buffer.concat(chunks)
      if (request.url?.endsWith('/oauth/token')) {
        asked.push(body.toString())
        response.writeHead(asked.length === 1 ? 200 : 400, { 'content-type': 'application/json' })
        const token = jwt(Date.now() + 8 * hourMs, 'access-2')
        response.end(
          JSON.stringify(
            asked.length === 1
              ? {
                  access_token: token,
                  id_token: token,
                  refresh_token: 'refresh-2',
                  expires_in: 28_800,
                  scope: 'user:inference user:profile',
                }
              : { error: 'invalid_grant' },
          ),
        )
        return
      }
      const { authorization = '', 'content-type': type = '' } = request.headers
      const reply = await fetch(`${model.origin}${request.url}`, {
        method: request.method ?? 'GET',
        headers: { authorization, 'content-type': type },
        ...(body.length > 0 && { body }),
      })
      response.writeHead(reply.status, {
        'content-type': reply.headers.get('content-type') ?? 'text/plain',
      })
      response.end(Buffer.from(await reply.arrayBuffer()))
    })()
  }).listen(0, '127.0.0.1')
  await once(plain, 'listening')
  const plainPort = (plain.address() as AddressInfo).port
  const names = ['platform.claude.com', 'api.anthropic.com', 'auth.openai.com', 'chatgpt.com']
  const certificates = await makeCertificates(names)
  const front = await startTlsFront(certificates, plainPort)
  const proxy = createServer()
    .on('connect', (_, socket) => {
      const to = connect(front.port, '127.0.0.1', () => socket.write('HTTP/1.1 200 OK\r\n\r\n'))
      socket.pipe(to).pipe(socket)
      socket.on('error', () => to.destroy())
      to.on('error', () => socket.destroy())
    })
    .listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    origin: `http://127.0.0.1:${plainPort}`,
    caFile: certificates.caFile,
    asked,
    close: () => {
      front.close()
      for (const server of [plain, proxy]) {
        server.close()
        server.closeAllConnections()
      }
    },
  }
}

type Login = {
  readonly agent: Partial<CliAgent> & Pick<CliAgent, 'kind'>
  readonly path: string
  readonly login: (refresh: string, endsAt: number) => object
  readonly config?: (origin: string) => readonly [path: string, text: string]
}

const logins: readonly Login[] = [
  {
    agent: { kind: 'claude' },
    path: '.claude/.credentials.json',
    login: (refreshToken, expiresAt) => ({
      claudeAiOauth: {
        accessToken: 'access-1',
        refreshToken,
        expiresAt,
        scopes: ['user:inference', 'user:profile'],
        subscriptionType: 'max',
      },
    }),
  },
  {
    // It trusts no certificates but its own: it asks the server directly.
    agent: {
      kind: 'codex',
    },
    path: '.codex/auth.json',
    login: (refresh_token, endsAt) => ({
      OPENAI_API_KEY: null,
      tokens: {
        id_token: jwt(endsAt, 'me'),
        access_token: jwt(endsAt, 'access-1'),
        refresh_token,
        account_id: 'me',
      },
      last_refresh: new Date().toISOString(),
    }),
    config: (origin) => [
      '.codex/config.toml',
      `model = "fake-model"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "${origin}/v1"
wire_api = "responses"
requires_openai_auth = true
`,
    ],
  },
  {
    agent: { kind: 'opencode', args: ['-m', 'openai/gpt-5.4'] },
    path: '.local/share/opencode/auth.json',
    login: (refresh, expires) => ({
      openai: { type: 'oauth', access: 'access-1', refresh, expires, accountId: 'me' },
    }),
  },
]

describe('the login of an agent program itself', function () {
  this.timeout(120_000)
  let model: ModelServer

  before(async () => (model = await startModelServer()))
  after(() => model?.close())

  for (const { agent, path, login, config } of logins)
    it(`is renewed once for two runs of ${agent.kind}, and saved`, async function () {
      if (!process.env['CI'] && 'missing' in (await findSandbox(process.env))) this.skip()
      const internet = await startInternet(model)
      try {
        const home = await temporaryFolder()
        const write = async (name: string, text: string) => {
          await mkdir(dirname(join(home, name)), { recursive: true })
          await writeFile(join(home, name), text, { mode: 0o600 })
        }
        await write(path, JSON.stringify(login('refresh-1', Date.now() - hourMs)))
        if (config) await write(...config(internet.origin))
        const before = model.requests.length
        const run = async () =>
          runCli(
            {
              timeout: 60_000,
              concurrency: 1,
              output_limit: 10_000,
              ...(agent.kind !== 'codex' && { sandbox: 'required' }),
              ...agent,
              env: {
                CODEX_REFRESH_TOKEN_URL_OVERRIDE: `${internet.origin}/oauth/token`,
                OPENCODE_DISABLE_MODELS_FETCH: '1',
              },
            },
            'say it',
            {
              env: {
                PATH: [programs, process.env['PATH']].join(delimiter),
                HOME: home,
                HTTPS_PROXY: internet.proxy,
                NO_PROXY: '127.0.0.1',
                NODE_EXTRA_CA_CERTS: internet.caFile,
              },
              homeFolder: join(home, '.doorward'),
              run: runProcess,
              getToken: async () => 'none',
              signal: new AbortController().signal,
            },
          )
        const answers = await Promise.all([run(), run()])
        assert.deepEqual(
          answers.map(({ text }) => text),
          ['an answer', 'an answer'],
        )
        assert.equal(internet.asked.length, 1)
        assert.match(internet.asked[0] ?? '', /refresh-1/)
        const saved = await readFile(join(home, path), 'utf8')
        assert.match(saved, /refresh-2/)
        assert.doesNotMatch(saved, /refresh-1|"access-1"/)
        const used = model.requests
          .slice(before)
          .filter(({ body }) => body.includes('say it'))
          .map(({ headers }) => headers.authorization ?? '')
        assert.ok(used.length >= 2)
        for (const header of used)
          assert.match(
            Buffer.from(header.split('.')[1] ?? '', 'base64url').toString(),
            /"name":"access-2"/,
          )
      } finally {
        internet.close()
      }
    })
})
