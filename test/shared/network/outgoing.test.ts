import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'mocha'
import { ProxyError } from '../../../shared/network/faults.ts'
import { configureNetwork, openRequest } from '../../../shared/network/outgoing.ts'
import { connectMail } from '../../../shared/network/mail.ts'
import {
  type Certificates,
  makeCertificates,
  startBadProxy,
  startProxy,
  startTlsFront,
} from '../../support/servers/private-network.ts'
import { json, startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('a request to another machine', () => {
  let certificates: Certificates
  let server: TargetServer
  let front: Awaited<ReturnType<typeof startTlsFront>>
  let proxy: Awaited<ReturnType<typeof startProxy>>

  before(async () => {
    certificates = await makeCertificates()
    server = await startTargetServer(json(200, { ok: true }))
    front = await startTlsFront(certificates, Number(new URL(server.origin).port))
    proxy = await startProxy()
  })
  afterEach(() => {
    proxy.connections.length = 0
    server.requests.length = 0
    configureNetwork(process.env)
  })
  after(async () => {
    front.close()
    server.close()
    await proxy.close()
  })

  const url = (host = 'login.corp.example') => new URL(`https://${host}:${front.port}/path?a=b`)
  const ask = async (env: NodeJS.ProcessEnv, to = url(), limitMs = 5000) => {
    configureNetwork(env)
    let isConnected = false
    try {
      const response = await openRequest(to, {
        method: 'POST',
        body: 'body',
        signal: AbortSignal.timeout(limitMs),
        onConnected: () => (isConnected = true),
      })
      response.resume()
      return { status: response.statusCode, isConnected, error: undefined }
    } catch (error) {
      return { status: undefined, isConnected, error: error as Error & { code?: string } }
    }
  }
  const behind = () => ({ HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: certificates.caFile })

  it('goes through a proxy with a password, to a server with a certificate of a private CA', async () => {
    const { status, isConnected } = await ask(behind())
    assert.deepEqual([status, isConnected], [200, true])
    assert.deepEqual(proxy.connections, [`login.corp.example:${front.port}`])
    const [request] = server.requests
    assert.deepEqual(
      [request?.method, request?.path, request?.headers.host, request?.text],
      ['POST', '/path?a=b', `login.corp.example:${front.port}`, 'body'],
    )
    assert.equal(request?.headers['proxy-authorization'], undefined)
  })

  it('goes directly to this machine, with the same certificates', async () => {
    assert.equal((await ask(behind(), url('127.0.0.1'))).status, 200)
    assert.deepEqual(proxy.connections, [])
  })

  it('goes directly to what NO_PROXY names', async () => {
    const { error } = await ask({ ...behind(), NO_PROXY: '.corp.example' })
    assert.match(error?.code ?? '', /ENOTFOUND|EAI_AGAIN/)
    assert.deepEqual(proxy.connections, [])
  })

  it('is not sent to a server whose CA is unknown', async () => {
    const { error, isConnected } = await ask({ HTTPS_PROXY: proxy.url })
    assert.equal(error?.code, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    assert.deepEqual([isConnected, server.requests.length], [false, 0])
  })

  it('is not sent to a server whose certificate has expired', async () => {
    const { key, expiredCert: cert } = certificates
    const expired = await startTlsFront({ key, cert }, Number(new URL(server.origin).port))
    const to = new URL(`https://login.corp.example:${expired.port}`)
    const { error, isConnected } = await ask(behind(), to)
    expired.close()
    assert.equal(error?.code, 'CERT_HAS_EXPIRED')
    assert.deepEqual([isConnected, server.requests.length], [false, 0])
  })

  it('is not sent where the certificate is for another host', async () => {
    const { error } = await ask(behind(), url('login.other.example'))
    assert.equal(error?.code, 'ERR_TLS_CERT_ALTNAME_INVALID')
    assert.deepEqual(server.requests, [])
  })

  it('trusts every certificate of a file, after whatever text', async () => {
    const file = join(await temporaryFolder(), 'all.pem')
    const other = await makeCertificates()
    const texts = [other.caFile, certificates.caFile].map((path) => readFile(path, 'utf8'))
    await writeFile(file, `# Corp\n${(await Promise.all(texts)).join('\n# next\n')}`)
    assert.equal((await ask({ ...behind(), NODE_EXTRA_CA_CERTS: file })).status, 200)
  })

  it('is refused where the proxy is not given, or is given a wrong password', async () => {
    const { place } = proxy
    const none = (await ask({ ...behind(), HTTPS_PROXY: `http://${place}` })).error
    assert.ok(none instanceof ProxyError && none.isPermanent)
    assert.equal(none.message, `the proxy ${place} asks for a password (407)`)
    assert.match(none.hint, /write it into HTTPS_PROXY in \.env.*doorward help networks$/)
    const wrong = (await ask({ ...behind(), https_proxy: `http://ada:canary@${place}` })).error
    assert.ok(wrong instanceof ProxyError && wrong.isPermanent)
    assert.match(wrong.message, /does not accept the user and password in https_proxy \(407\)$/)
    assert.doesNotMatch(`${wrong.message} ${wrong.hint} ${wrong.stack}`, /canary/)
  })

  it('is refused by a proxy that answers a wrong password with 401, as tinyproxy does', async () => {
    const tiny = await startBadProxy((socket) => socket.end('HTTP/1.1 401 Unauthorized\r\n\r\n'))
    const none = (await ask({ ...behind(), HTTPS_PROXY: tiny.url })).error
    assert.equal(none?.message, `the proxy ${tiny.place} asks for a password (401)`)
    const env = { ...behind(), HTTPS_PROXY: `http://ada:canary@${tiny.place}` }
    const wrong = (await ask(env)).error
    tiny.close()
    assert.ok(wrong instanceof ProxyError && wrong.isPermanent)
    assert.match(wrong.message, /does not accept the user and password in HTTPS_PROXY \(401\)$/)
    assert.match(wrong.hint, /^correct them/)
    assert.doesNotMatch(`${wrong.message} ${wrong.hint} ${wrong.stack}`, /canary/)
  })

  const html = '<html><body>Please log in</body></html>'
  const answers: readonly (readonly [string, (socket: Socket) => void, RegExp])[] = [
    [
      'refuses',
      (socket) => socket.end(`HTTP/1.1 403 Forbidden\r\n\r\n${html}`),
      /refuses connections to login\.corp\.example:\d+ \(403\)$/,
    ],
    [
      'cannot reach the server',
      (socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'),
      /cannot reach login\.corp\.example:\d+ \(502\)$/,
    ],
    ['answers only HTML', (socket) => socket.end(html), /does not answer like an HTTP proxy$/],
    [
      'answers garbage',
      (socket) => socket.end('\0\x01\x02'),
      /does not answer like an HTTP proxy$/,
    ],
    [
      'answers a page in place of the server',
      (socket) => socket.end(`HTTP/1.1 200 OK\r\ncontent-length: 39\r\n\r\n${html}`),
      /answers in place of login\.corp\.example|closed the connection to login\.corp\.example/,
    ],
    ['resets', (socket) => socket.resetAndDestroy(), /closed the connection$/],
    ['closes', (socket) => socket.end(), /closed the connection$/],
    [
      'resets after it said yes',
      (socket) => {
        socket.write('HTTP/1.1 200 Connection established\r\n\r\n')
        socket.once('data', () => socket.resetAndDestroy())
      },
      /closed the connection to login\.corp\.example/,
    ],
  ]
  for (const [what, answer, said] of answers)
    it(`names a proxy that ${what}`, async () => {
      const bad = await startBadProxy(answer)
      const { error, isConnected } = await ask({ ...behind(), HTTPS_PROXY: bad.url })
      bad.close()
      assert.ok(error instanceof ProxyError, error?.stack)
      assert.match(error.message, said)
      assert.ok(error.message.startsWith(`the proxy ${bad.place} `))
      assert.equal(isConnected, false)
    })

  it('names a proxy that cannot be reached, one without TLS, and what is not a URL', async () => {
    const bad = await startBadProxy((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const https = await ask({ HTTPS_PROXY: `https://${bad.place}` })
    assert.equal(https.error?.message, `the proxy ${bad.place} does not speak TLS`)
    bad.close()
    const { error } = await ask({ HTTPS_PROXY: bad.url })
    assert.equal(error?.message, `the proxy ${bad.place} cannot be reached (ECONNREFUSED)`)
    const unusable = await ask({ HTTPS_PROXY: 'socks5://canary@proxy' })
    assert.equal(unusable.error?.message, 'HTTPS_PROXY is not the URL of an HTTP proxy')
  })

  it('ends in time with a proxy that never answers, also for mail', async () => {
    const bad = await startBadProxy(() => undefined)
    const { error } = await ask({ HTTPS_PROXY: bad.url }, url(), 200)
    assert.ok(error instanceof ProxyError && !error.isPermanent)
    assert.equal(error.message, `the proxy ${bad.place} did not answer in time`)
    const server = { host: 'mail.corp.example', port: 465, isTls: true, isLoopback: false }
    configureNetwork({ HTTPS_PROXY: bad.url })
    await assert.rejects(connectMail(server, 200), /did not answer in time/)
    bad.close()
  })

  it('ends in time with a proxy that says yes and then nothing', async () => {
    const bad = await startBadProxy((socket) =>
      socket.write('HTTP/1.1 200 Connection established\r\n\r\n'),
    )
    const { error, isConnected } = await ask({ HTTPS_PROXY: bad.url }, url(), 200)
    bad.close()
    assert.ok(error instanceof ProxyError && !isConnected)
    assert.match(error.message, /connected to login\.corp\.example:\d+, and then nothing came$/)
  })
})
