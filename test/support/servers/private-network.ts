import { execFileSync } from 'node:child_process'
import { createPrivateKey, type KeyObject } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer, connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { RequestError, Server as ProxyServer } from 'proxy-chain'
import { temporaryFolder } from '../temporary.ts'

/* A company's network: names that only its proxy resolves, servers with certificates of its own CA. */

export type Certificates = {
  readonly caFile: string
  readonly key: Buffer
  /** For `*.corp.example`. */
  readonly cert: Buffer
  readonly expiredCert: Buffer
  /** An RSA key with a certificate that nothing vouches for. */
  readonly signingKey: KeyObject
  readonly signingCert: Buffer
}

/** A new CA, and certificates that it signed, by openssl; also for these names. */
export const makeCertificates = async (names: readonly string[] = []): Promise<Certificates> => {
  const folder = await temporaryFolder()
  const at = (name: string) => join(folder, name)
  const openssl = (words: string) =>
    execFileSync('openssl', words.split(' '), { cwd: folder, stdio: 'pipe' })
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
  openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=Corp`)
  openssl(`req ${newKey} -keyout s.key -out s.csr -subj /CN=corp.example`)
  const all = ['*.corp.example', ...names].map((name) => `DNS:${name}`)
  writeFileSync(at('names'), `subjectAltName=${all.join(',')},IP:127.0.0.1\n`)
  openssl('req -x509 -newkey rsa:2048 -nodes -keyout r.key -out r.crt -days 2 -subj /CN=sns')
  for (const [name, days] of Object.entries({ good: '2', expired: '-1' }))
    openssl(
      `x509 -req -in s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days ${days} -extfile names -out ${name}.crt`,
    )
  return {
    caFile: at('ca.pem'),
    key: readFileSync(at('s.key')),
    cert: readFileSync(at('good.crt')),
    expiredCert: readFileSync(at('expired.crt')),
    signingKey: createPrivateKey(readFileSync(at('r.key'))),
    signingCert: readFileSync(at('r.crt')),
  }
}

/** TLS in front of a plain server on this machine. */
export const startTlsFront = async (
  { key, cert }: Pick<Certificates, 'key' | 'cert'>,
  plainPort: number,
) => {
  const server = createTlsServer({ key, cert }, (secure) => {
    const plain = connect(plainPort, '127.0.0.1')
    for (const [one, other] of [
      [secure, plain],
      [plain, secure],
    ] as const) {
      one.pipe(other)
      one.on('error', () => other.destroy())
    }
  })
  // A client that does not trust the certificate.
  server.on('tlsClientError', () => undefined)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { port, close: () => void server.close() }
}

/** A real proxy that demands a password and knows every name. What it is told to refuse it answers with 403. */
export const startProxy = async (
  refuses: (host: string, agent: string) => boolean = () => false,
) => {
  const connections: string[] = []
  const server = new ProxyServer({
    port: 0,
    host: '127.0.0.1',
    prepareRequestFunction: ({ request, username, password, hostname, port }) => {
      const isKnown = username === 'ada' && password === 'p#ss word'
      if (isKnown && refuses(hostname, request.headers['user-agent'] ?? ''))
        throw new RequestError('Forbidden', 403)
      if (isKnown) connections.push(`${hostname}:${port}`)
      return {
        requestAuthentication: !isKnown,
        dnsLookup: ((_name: string, options: { readonly all?: boolean }, done: DnsAnswer) =>
          options.all
            ? done(null, [{ address: '127.0.0.1', family: 4 }])
            : done(null, '127.0.0.1', 4)) as never,
      }
    },
  })
  await server.listen()
  return {
    place: `127.0.0.1:${server.port}`,
    url: `http://ada:p%23ss%20word@127.0.0.1:${server.port}`,
    /** Host and port of each connection that it made. */
    connections,
    close: async () => server.close(true),
  }
}

type DnsAnswer = (error: null, address: unknown, family?: number) => void

/** A proxy that answers every connection as told, once it has been asked. */
export const startBadProxy = async (answer: (socket: Socket) => void) => {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('data', () => answer(socket))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const place = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    place,
    url: `http://${place}`,
    close: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
