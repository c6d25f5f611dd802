import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Pings } from '../../../daemon/tunnel/pings.ts'

const { signal } = new AbortController()

describe('pings through the public address', () => {
  const servers: Server[] = []
  const start = async (handle: RequestListener): Promise<string> => {
    const server = createServer(handle).listen(0, '127.0.0.1')
    servers.push(server)
    await once(server, 'listening')
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  }
  afterEach(() => {
    for (const server of servers.splice(0)) server.close()
  })
  const notFound: RequestListener = (_, response) => void response.writeHead(404).end()

  it('arrive at a path that works once, and that nothing else has', async () => {
    const pings = new Pings()
    const paths: string[] = []
    const handle = pings.before(notFound)
    const url = await start((request, response) => {
      paths.push(request.url ?? '')
      handle(request, response)
    })
    assert.equal(await pings.send(`${url}/`, signal), undefined)
    assert.equal(await pings.send(url, signal), undefined)
    assert.equal(new Set(paths).size, 2)
    for (const path of [...paths, '/doorward-ping/', '/doorward-ping/0'])
      assert.equal((await fetch(`${url}${path}`)).status, 404)
  })

  it('say what answers in place of this daemon', async () => {
    const pings = new Pings()
    const other = await start((_, response) => void response.writeHead(204).end())
    assert.equal(await pings.send(other, signal), 'something else answers there (204)')
    const inner = await start(pings.before(notFound))
    const broken = await start(
      (request, response) =>
        void fetch(`${inner}${request.url}`).then(() => response.writeHead(502).end()),
    )
    assert.equal(await pings.send(broken, signal), 'it answers there (502)')
    assert.equal(await pings.send('http://127.0.0.1:1', signal), 'ECONNREFUSED')
    const unknown = await pings.send('http://gone.invalid', signal)
    assert.match(unknown ?? '', /ENOTFOUND|EAI_AGAIN/)
  })
  it('end where nothing answers, and where an answer does not end', async () => {
    const pings = new Pings(200)
    const silent = await start(() => undefined)
    // A signal that only the request knows could be collected before it is aborted.
    setFlagsFromString('--expose-gc')
    const collect = setInterval(runInNewContext('gc') as () => void, 20)
    assert.equal(await pings.send(silent, signal), 'no answer')
    clearInterval(collect)
    const closed = new Promise<void>((resolve) => {
      void start((_, response) => {
        const write = () => response.write('x'.repeat(100_000), write)
        response.once('close', resolve)
        write()
      }).then(async (url) => pings.send(url, signal))
    })
    await closed
  })
})
