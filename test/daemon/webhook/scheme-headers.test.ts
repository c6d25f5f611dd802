import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { headersNamed, listHeaderNames } from '../../../daemon/webhook/compiled-webhook.ts'
import { toBodyHeaders } from '../../../daemon/webhook/body.ts'
import { toScheme } from '../../../shared/signatures/described.ts'
import { schemeNames } from '../../../shared/signatures/presets.ts'

describe('the headers that a scheme looks at', () => {
  for (const name of schemeNames) {
    it(`are those of ${name}: its signatures, its ids, and what a web page sends`, () => {
      const scheme = toScheme(name, { header: 'x-own', algorithm: 'sha256', prefix: '' })
      const names = listHeaderNames(scheme)
      for (const { header, timestampHeader, idHeader } of scheme.forms)
        for (const wanted of [header, timestampHeader, idHeader])
          // A token in the query has no header.
          if (wanted) assert.ok(names.includes(wanted), wanted)
      for (const wanted of [...scheme.deliveryId.headers, 'origin', 'sec-fetch-site'])
        assert.ok(names.includes(wanted.toLowerCase()), wanted)
      assert.equal(new Set(names).size, names.length)
    })
  }

  it('are read as node:http reads each of them apart, however they are written', async () => {
    const server = createServer((received, response) => {
      const names = ['x-signature', 'x-id', 'x-missing', '__proto__', 'origin']
      const found = headersNamed(received.rawHeaders, names)
      const all = names.map((name) => [found[name], received.headersDistinct[name]])
      const type = ['content-type', 'content-encoding']
      const written = toBodyHeaders(headersNamed(received.rawHeaders, type))
      assert.deepEqual(
        Object.entries(written),
        type.map((name) => [name, received.headers[name]]),
      )
      response.end(JSON.stringify(all))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const headers = [
      'X-SIGNATURE',
      'a',
      'x-Signature',
      'b, c',
      'X-Id',
      '',
      'X-Ix',
      'no',
      'Host',
      'h',
      'Content-Type',
      'text/one',
      'content-type',
      'text/two',
      'Content-Encoding',
      'gzip',
      'content-encoding',
      'identity',
    ]
    const asked = request({ host: '127.0.0.1', port, headers: [...headers, '__proto__', 'p'] })
    asked.end()
    const [answer] = (await once(asked, 'response')) as [AsyncIterable<Buffer>]
    let text = ''
    for await (const chunk of answer) text += String(chunk)
    server.close()
    const all = JSON.parse(text) as readonly [string[] | null, string[] | null][]
    assert.deepEqual(
      all.map(([ours]) => ours),
      [['a', 'b, c'], [''], null, ['p'], null],
    )
    for (const [ours, theirs] of all) assert.deepEqual(ours, theirs)
  })
})
