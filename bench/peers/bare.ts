import { createHmac, timingSafeEqual } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/*
 * The limit: node:http, the same check of the signature and the same parse, and nothing else. It says
 * its port on standard output; the secret comes in the environment.
 */

const secret = process.env['BENCH_SECRET'] ?? ''

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const body = Buffer.concat(chunks)
    const given = Buffer.from(String(request.headers['x-hub-signature-256']).slice(7), 'hex')
    const digest = createHmac('sha256', secret).update(body).digest()
    const fits = given.length === digest.length && timingSafeEqual(given, digest)
    if (fits) JSON.parse(body.toString('utf8'))
    const answer = JSON.stringify({ id: 'evt_000000000000000000', status: 'accepted' })
    response.writeHead(fits ? 202 : 401, {
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(answer),
    })
    response.end(answer)
  })
})
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`)
})
