import assert from 'node:assert/strict'
import { readdir, readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import type { AccessToken, Login, StartedLogin } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { visit } from '../../support/desktop/browser.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { examined } from '../../support/daemon/doctor.ts'
import { send } from '../../support/servers/http.ts'
import {
  type Certificates,
  makeCertificates,
  startProxy,
  startTlsFront,
} from '../../support/servers/private-network.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryHome } from '../../support/temporary.ts'

const printNetwork = JSON.stringify([
  process.execPath,
  '-e',
  `const names = Object.keys(process.env).filter((name) => /proxy|_certs/i.test(name)).sort()
   process.stdout.write(names.join())`,
])
const failWithNetwork = JSON.stringify([
  process.execPath,
  '-e',
  'console.error(process.env.HTTPS_PROXY); process.exitCode = 1',
])

describe('a daemon behind a proxy that demands a password, with a private CA', () => {
  let certificates: Certificates
  let provider: TargetServer
  let front: Awaited<ReturnType<typeof startTlsFront>>
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let daemon: RunningDaemon
  let granted = 0

  before(async () => {
    certificates = await makeCertificates()
    provider = await startTargetServer((response, recorded, request) => {
      granted += 1
      const grant = { access_token: `at-${granted}`, refresh_token: `rt-${granted}` }
      return json(200, { ...grant, token_type: 'Bearer', expires_in: 3600 })(
        response,
        recorded,
        request,
      )
    })
    front = await startTlsFront(certificates, Number(new URL(provider.origin).port))
    proxy = await startProxy((host) => host === 'mail.corp.example')
    const origin = `https://login.corp.example:${front.port}`
    daemon = await startDaemon({
      env: `HTTPS_PROXY='${proxy.url}'\nNO_PROXY=.intern.example\nNODE_EXTRA_CA_CERTS=${certificates.caFile}\nSMTP_URL=smtp://me:canary-pass@mail.corp.example\n`,
      gateway: `
oauth: { callback_port: 0 }
providers:
  corp:
    authorization_endpoint: ${origin}/authorize
    token_endpoint: ${origin}/token
    client_id: my-app
targets:
  http: { log: { url: "${origin}/log", secret_env: HOOK } }
  email: { smtp_url_env: SMTP_URL, from: me@example.com }
`,
      agents: `agents:
  with: { kind: command, command: ${printNetwork} }
  without: { kind: command, command: ${printNetwork}, proxy_env: false }
  fails: { kind: command, command: ${failWithNetwork} }
`,
      webhooks: `webhooks:
  - { path: /with, agent: with, prompt_template: x }
  - { path: /without, agent: without, prompt_template: x }
  - { path: /fails, agent: fails, prompt_template: x }
  - { path: /mail, agent: with, prompt_template: x, deliver_to: ["email:jane@example.com"] }
`,
    })
  })
  after(async () => {
    assert.equal(await daemon.stop(), 0)
    front.close()
    provider.close()
    await proxy.close()
  })

  it('logs in and refreshes through it', async () => {
    const started = await daemon.client.post<StartedLogin>('/oauth/start', { provider: 'corp' })
    const state = new URL(started.authorizationUrl).searchParams.get('state')
    await visit(`${started.redirectUri}?code=a-code&state=${state}`)
    const login = await daemon.client.get<Login>(`/oauth/logins/${started.loginId}?wait=10`)
    assert.equal(login.status, 'authorized', JSON.stringify(login))
    const access = '/oauth/tokens/corp/access?min_validity=7200'
    assert.equal((await daemon.client.get<AccessToken>(access)).accessToken, 'at-2')
    const grants = provider.requests.map(({ fields }) => fields['grant_type'])
    assert.deepEqual(grants, ['authorization_code', 'refresh_token'])
    const place = `login.corp.example:${front.port}`
    assert.deepEqual(proxy.connections, [place, place])
  })

  const eventAt = async (path: string) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}${path}`, { headers, body: '{}' })
    return untilFinished(daemon, String(reply.json()['id']))
  }

  it('passes proxy and certificates on to agents, but not where proxy_env is false', async () => {
    const { result } = await eventAt('/with')
    assert.equal(result, 'HTTPS_PROXY,NODE_EXTRA_CA_CERTS,NO_PROXY')
    assert.equal((await eventAt('/without')).result, '')
  })

  it('hides the password in the words of an agent that fails', async () => {
    const { detail } = await eventAt('/fails')
    assert.match(detail ?? '', /http:\/\/<password in HTTPS_PROXY>127/)
  })

  it('shows proxy and certificates in doctor, which uses them too', async () => {
    const [row] = (await examined(daemon.home)).of('system', 'network')
    assert.equal(row?.status, 'ok')
    assert.equal(
      row.detail,
      `through the proxy ${proxy.place} (HTTPS_PROXY), but not to .intern.example, with the certificates in ${certificates.caFile}`,
    )
    const online = await examined(daemon.home, {}, '--online')
    const [endpoint] = online.of('logins', 'corp endpoint')
    assert.deepEqual([endpoint?.status, online.stdout.includes('p%23ss')], ['ok', false])
    const [mail] = online.of('targets', 'email')
    assert.equal(
      mail?.detail,
      `the mail server cannot be reached: the proxy ${proxy.place} refuses connections to mail.corp.example:587 (403)`,
    )
    assert.match(
      mail.hint ?? '',
      /ask who runs it to allow this host, or name the host in NO_PROXY/,
    )
    assert.equal(online.stdout.includes('canary'), false)
    const unset = {
      HTTPS_PROXY: 'socks5://x',
      NODE_EXTRA_CA_CERTS: '/nowhere.pem',
      SSL_CERT_FILE: '/nowhere.pem',
    }
    const rows = (await examined(daemon.home, unset)).of('system', 'network')
    assert.deepEqual(
      rows.map(({ status, detail }) => [status, detail.split(/[: ]/, 1)[0]]),
      [
        ['error', 'HTTPS_PROXY'],
        ['error', 'NODE_EXTRA_CA_CERTS'],
        ['error', 'SSL_CERT_FILE'],
      ],
    )
  })

  it('is told by config check what cannot be used', async () => {
    const env = { HTTPS_PROXY: 'socks5://canary@x', NODE_EXTRA_CA_CERTS: '/nowhere.pem' }
    const { stdout } = await run(['config', 'check', '--json'], { home: daemon.home, env })
    const { warnings } = JSON.parse(stdout) as { warnings: { code: string }[] }
    const codes = warnings.map(({ code }) => code)
    assert.ok(codes.includes('proxy-unusable') && codes.includes('ca-file-unusable'))
    assert.doesNotMatch(stdout, /canary/)
  })

  it('is told at the start and by status of a file in SSL_CERT_FILE that is missing', async () => {
    const home = await temporaryHome({
      env: 'SSL_CERT_FILE=~/nowhere-of-doorward/ca.pem\n',
      gateway: 'server: { port: 0 }\noauth: { callback_port: 0 }\n',
    })
    const path = join(homedir(), 'nowhere-of-doorward', 'ca.pem')
    const said = `SSL_CERT_FILE: ${path} cannot be read`
    try {
      const { stderr } = await run(['daemon', 'start'], { home })
      assert.ok(stderr.includes(`warning: ${said}`), stderr)
      const { stdout } = await run(['status', '--json'], { home })
      assert.ok(stdout.includes(said), stdout)
    } finally {
      await run(['daemon', 'stop'], { home })
    }
  })

  it('writes the password of the proxy nowhere', async () => {
    const files = await readdir(daemon.home.logs)
    const logs = await Promise.all(
      files.map((name) => readFile(join(daemon.home.logs, name), 'utf8')),
    )
    const events = JSON.stringify(await daemon.client.get('/events'))
    for (const text of [...logs, events, daemon.stdout(), daemon.stderr()])
      assert.doesNotMatch(text, /p%23ss|p#ss/)
  })
})
