import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'

/*
 * The limit: node:http, the same check of the signature and the same parse, and nothing else; and the
 * least that a server could do for a token. The port is its argument, the secret is in the environment.
 */

const secret = process.env['BENCH_SECRET'] ?? ''

const accepted = JSON.stringify({ id: 'evt_000000000000000000', status: 'accepted' })

const token = JSON.stringify({
  provider: 'cached',
  accessToken: 'x'.repeat(200),
  tokenType: 'Bearer',
  expiresAt: new Date().toISOString(),
  scopes: ['a', 'b'],
})

const server = createServer((request, response) => {
  if (request.method === 'GET') {
    const isOurs = request.headers.authorization === `Bearer ${secret}`
    response.writeHead(isOurs ? 200 : 401, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(token),
    })
    response.end(token)
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const given = Buffer.from(String(request.headers['x-hub-signature-256']).slice(7), 'hex')
    const digest = createHmac('sha256', secret).update(body).digest()
    const fits = given.length === digest.length && timingSafeEqual(given, digest)
    if (fits) JSON.parse(body.toString('utf8'))
    response.writeHead(fits ? 202 : 401, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(accepted),
    })
    response.end(accepted)
  })
})
server.listen(Number(process.argv[2]), '127.0.0.1')
