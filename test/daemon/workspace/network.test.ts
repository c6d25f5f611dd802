import assert from 'node:assert/strict'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, it } from 'mocha'
import { runProcess } from '../../../daemon/agents/process.ts'
import { bundleName } from '../../../daemon/workspace/certificates.ts'
import { Workspaces } from '../../../daemon/workspace/workspaces.ts'
import { gatewayFileSchema } from '../../../shared/config/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { prepareHome, resolveHome, type Home } from '../../../shared/home/home.ts'
import { configureNetwork } from '../../../shared/network/outgoing.ts'
import { type GitServer, startGitServer } from '../../support/servers/git-server.ts'
import {
  type Certificates,
  makeCertificates,
  startBadProxy,
  startProxy,
  startTlsFront,
} from '../../support/servers/private-network.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const failsWith = (words: RegExp, hint: RegExp) => (error: unknown) => {
  assert.ok(error instanceof DoorwardError, String(error))
  assert.match(error.message, words, error.localDetail)
  assert.match(error.hint ?? '', hint)
  // The event shows no other line.
  assert.ok(error.localDetail?.includes(error.hint ?? '-'), error.localDetail)
  assert.doesNotMatch(error.localDetail ?? '', /canary|p#ss|p%23ss/)
  return true
}

describe('a workspace from a server of a company', () => {
  let certificates: Certificates
  let server: GitServer
  let front: Awaited<ReturnType<typeof startTlsFront>>
  let proxy: Awaited<ReturnType<typeof startProxy>>
  let home: Home

  before(async () => {
    certificates = await makeCertificates()
    server = await startGitServer(undefined)
    front = await startTlsFront(certificates, Number(new URL(server.origin).port))
    proxy = await startProxy((host) => host === 'refused.corp.example')
  })
  beforeEach(async () => {
    home = resolveHome(await temporaryFolder())
    await prepareHome(home)
  })
  afterEach(() => {
    configureNetwork(process.env)
    proxy.connections.length = 0
  })
  after(async () => {
    front.close()
    server.close()
    await proxy.close()
  })

  const access = async () => {
    throw new DoorwardError('not-logged-in', 'the repository is public')
  }
  const workspacesWith = (network: NodeJS.ProcessEnv) => {
    const env = { PATH: process.env['PATH'], ...network }
    configureNetwork(env)
    const workspaces = new Workspaces({ home, run: runProcess, access, delaysMs: [] })
    return async (host = 'git.corp.example') => {
      const place = `${host}:${front.port}`
      const gateway = gatewayFileSchema.parse({ providers: { github: { git_hosts: [place] } } })
      const request = {
        repo: `https://${place}/repository.git`,
        fixed: 'all',
        ref: 'main',
        base: undefined,
        pull: undefined,
        login: undefined,
        access: 'read',
        depth: undefined,
      } as const
      const { signal } = new AbortController()
      const made = await workspaces.preparer(gateway, env)(request, 'evt_1', signal)
      await made.release()
    }
  }
  const bundle = () => readFile(join(home.run, bundleName), 'utf8')

  it('is fetched through the proxy, with a CA in NODE_EXTRA_CA_CERTS beside those of the system', async () => {
    const fetchAll = workspacesWith({
      HTTPS_PROXY: proxy.url,
      NODE_EXTRA_CA_CERTS: certificates.caFile,
    })
    await fetchAll()
    assert.ok(proxy.connections.length > 0)
    const text = await bundle()
    assert.ok(text.includes((await readFile(certificates.caFile, 'utf8')).trim()))
    assert.ok(text.split('BEGIN CERTIFICATE').length > 50)
    const { mode, mtimeMs } = await stat(join(home.run, bundleName))
    assert.equal(mode & 0o777, 0o600)
    await fetchAll()
    assert.equal((await stat(join(home.run, bundleName))).mtimeMs, mtimeMs)
  })

  it('trusts what NODE_EXTRA_CA_CERTS has now, and only the file in SSL_CERT_FILE where that is set', async () => {
    const [system, extra] = [join(home.root, 'system.pem'), join(home.root, 'extra.pem')]
    const other = await readFile((await makeCertificates()).caFile, 'utf8')
    const own = await readFile(certificates.caFile, 'utf8')
    await writeFile(system, other)
    await writeFile(extra, other)
    const network = { HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: extra, SSL_CERT_FILE: system }
    const fetchBoth = workspacesWith(network)
    const isUntrusted = failsWith(/its certificate is not trusted/, /NODE_EXTRA_CA_CERTS.*SSL_/)
    await assert.rejects(fetchBoth(), isUntrusted)
    assert.equal((await bundle()).split('BEGIN CERTIFICATE').length, 3)
    await writeFile(extra, `${other}${own}`)
    await fetchBoth()
    await writeFile(extra, other)
    await assert.rejects(fetchBoth(), isUntrusted)
    await writeFile(system, own)
    await fetchBoth()
    await workspacesWith({ HTTPS_PROXY: proxy.url, SSL_CERT_FILE: system })()
  })

  it('names the variable where the CA is unknown or its file is missing', async () => {
    const isUntrusted = failsWith(/its certificate is not trusted/, /NODE_EXTRA_CA_CERTS.*SSL_/)
    const network = { HTTPS_PROXY: proxy.url }
    await assert.rejects(workspacesWith(network)(), isUntrusted)
    const missing = { ...network, SSL_CERT_FILE: '/nowhere.pem' }
    await assert.rejects(workspacesWith(missing)(), isUntrusted)
    const extra = { ...missing, NODE_EXTRA_CA_CERTS: certificates.caFile }
    await assert.rejects(workspacesWith(extra)(), isUntrusted)
  })

  it('is fetched directly from what NO_PROXY names, in the forms that doorward knows', async () => {
    const direct = workspacesWith({
      HTTPS_PROXY: proxy.url,
      NODE_EXTRA_CA_CERTS: certificates.caFile,
      NO_PROXY: '*.corp.example',
    })
    await assert.rejects(direct(), failsWith(/it cannot be reached now/, /events retry/))
    await direct('127.0.0.1')
    assert.deepEqual(proxy.connections, [])
  })

  it('names the proxy that refuses the host, or the password', async () => {
    const trust = { NODE_EXTRA_CA_CERTS: certificates.caFile }
    const fetchIt = workspacesWith({ ...trust, HTTPS_PROXY: proxy.url })
    await assert.rejects(
      fetchIt('refused.corp.example'),
      failsWith(/the proxy \S+ refuses connections to refused\.corp\.example:\d+ \(403\)/, /allow/),
    )
    const wrong = `http://ada:canary@${proxy.place}`
    await assert.rejects(
      workspacesWith({ ...trust, HTTPS_PROXY: wrong })(),
      failsWith(/does not accept the user and password in HTTPS_PROXY \(407\)/, /correct them/),
    )
    await assert.rejects(
      workspacesWith({ ...trust, HTTPS_PROXY: `http://${proxy.place}` })(),
      failsWith(/asks for a password \(407\)/, /write it into HTTPS_PROXY/),
    )
    const tiny = await startBadProxy((socket) => socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n'))
    await assert.rejects(
      workspacesWith({ ...trust, HTTPS_PROXY: `http://ada:canary@${tiny.place}` })(),
      failsWith(/does not accept the user and password in HTTPS_PROXY \(401\)/, /correct them/),
    )
    tiny.close()
    await assert.rejects(
      workspacesWith({ ...trust, HTTPS_PROXY: tiny.url })(),
      failsWith(/the proxy \S+ cannot be reached \(ECONNREFUSED\)/, /check HTTPS_PROXY/),
    )
  })
})
