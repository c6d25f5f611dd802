import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import { createServer } from 'node:net'
import { type Client, connect, identifyListener } from '../../../shared/client/client.ts'
import { readDaemonFile } from '../../../shared/client/discovery.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import {
  apiToken,
  homeWith,
  listensUntilTheEnd,
  prove,
  refused,
} from '../../support/daemon/stand-ins.ts'
import { temporaryHome } from '../../support/temporary.ts'

describe('a client of a home without a daemon', () => {
  const listening = listensUntilTheEnd()

  it('reports a missing or damaged daemon.json, and a missing token', async () => {
    await refused(connect(await temporaryHome()), 'daemon-unreachable')
    const home = await homeWith('http://127.0.0.1:1')
    for (const text of [
      '',
      '{',
      'null',
      '[]',
      '{"pid":1}',
      '{"pid":"1","url":"http://127.0.0.1:1"}',
    ]) {
      await writeFile(home.daemonJson, text)
      assert.equal(await readDaemonFile(home), undefined)
      await refused(connect(home), 'daemon-unreachable')
    }
  })

  it('connects only to loopback addresses', async () => {
    for (const url of [
      'http://example.com:80',
      'https://127.0.0.1:1',
      'http://127.0.0.1.example.com:80',
      'http://user@127.0.0.1:80',
      'http://127.0.0.1:80/path',
      'http://127.0.0.1@example.com:80',
      'http://localhost',
      'http://0.0.0.0:80',
    ])
      await refused(connect(await homeWith(url)), 'daemon-unreachable')
  })

  it('reports that nothing listens there any more', async () => {
    const server = createServer()
    const url = await listening(server)
    server.close()
    await once(server, 'close')
    assert.equal(await identifyListener(url, apiToken), 'nobody')
    await refused(connect(await homeWith(url)), 'daemon-unreachable')
  })
})

describe('a client of its daemon', () => {
  const listening = listensUntilTheEnd()
  const clients: Client[] = []
  after(() => {
    for (const client of clients) client.close()
  })

  /** A daemon in name: proves itself, and then answers as told. */
  const connected = async (
    answer: (request: IncomingMessage, response: ServerResponse) => void,
  ): Promise<Client> => {
    const handle: RequestListener = (request, response) => {
      if (request.url !== '/health') return answer(request, response)
      prove(request, response)
      response.end('{}')
    }
    const client = await connect(await homeWith(await listening(createHttpServer(handle))))
    clients.push(client)
    return client
  }

  it('sends the token and JSON, and returns the response', async () => {
    const client = await connected((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.once('end', () => {
        const { method, url, headers } = request
        const body = Buffer.concat(chunks).toString()
        if (method === 'DELETE') response.writeHead(204).end()
        else
          response.end(
            JSON.stringify([method, url, headers.authorization, headers['content-type'], body]),
          )
      })
    })
    const bearer = `Bearer ${apiToken}`
    assert.deepEqual(await client.get('/a?b=c'), ['GET', '/a?b=c', bearer, null, ''])
    assert.deepEqual(await client.post('/a', { ü: 1 }), [
      'POST',
      '/a',
      bearer,
      'application/json',
      '{"ü":1}',
    ])
    assert.deepEqual(await client.post('/a'), ['POST', '/a', bearer, null, ''])
    assert.equal(await client.delete('/a'), undefined)
  })

  it('names the caller in every request, but not before the proof', async () => {
    const heard: unknown[] = []
    const server = createHttpServer((request, response) => {
      heard.push([request.url, request.headers['user-agent']])
      if (request.url === '/health') prove(request, response)
      response.end('{}')
    })
    const home = await homeWith(await listening(server))
    const client = await connect(home, { userAgent: 'doorward-cli/1 (status)' })
    clients.push(client)
    await client.get('/a')
    await client.post('/b')
    assert.deepEqual(heard, [
      ['/health', undefined],
      ['/a', 'doorward-cli/1 (status)'],
      ['/b', 'doorward-cli/1 (status)'],
    ])
  })

  it('opens a new connection when the daemon has closed the idle one', async () => {
    const asked: (string | undefined)[] = []
    const client = await connected((request, response) => {
      asked.push(request.url)
      response.setHeader('connection', 'close')
      response.end('{}')
    })
    for (const path of ['/1', '/2', '/3']) assert.deepEqual(await client.get(path), {})
    assert.deepEqual(asked, ['/1', '/2', '/3'])
    await Promise.all(['/4', '/5', '/6'].map(async (path) => client.get(path)))
    assert.equal(asked.length, 6)
  })

  it('retries a GET once when an idle connection is closed under it, but never a POST or DELETE', async () => {
    const asked: string[] = []
    let hangUps = 1
    const client = await connected((request, response) => {
      asked.push(`${request.method} ${request.url}`)
      hangUps -= 1
      if (hangUps >= 0) request.socket.destroy()
      else response.end('{}')
    })
    assert.deepEqual(await client.get('/1'), {})
    hangUps = 2
    await refused(client.get('/2'), 'daemon-unreachable')
    hangUps = 1
    await refused(client.post('/3'), 'daemon-unreachable')
    hangUps = 1
    await refused(client.delete('/4'), 'daemon-unreachable')
    assert.deepEqual(asked, ['GET /1', 'GET /1', 'GET /2', 'GET /2', 'POST /3', 'DELETE /4'])
  })

  it('throws the problem that the daemon reports, with its code and hint', async () => {
    const problem = {
      code: 'not-logged-in',
      detail: 'no login at x',
      hint: 'doorward oauth login x',
    }
    const client = await connected((_, response) =>
      response.writeHead(404).end(JSON.stringify(problem)),
    )
    await assert.rejects(client.get('/'), (error: unknown) => {
      assert.ok(error instanceof DoorwardError)
      assert.deepEqual(
        [error.code, error.message, error.hint],
        [problem.code, problem.detail, problem.hint],
      )
      return true
    })
    await refused(client.open('/events/stream'), 'not-logged-in')
  })

  it('throws a DoorwardError for every malformed response', async () => {
    const answers: Record<string, (response: ServerResponse) => void> = {
      '/garbage': (response) => response.end('<html>'),
      '/half': (response) => response.end('{"a":'),
      '/500': (response) => response.writeHead(500).end('oops'),
      '/null': (response) => response.writeHead(500).end('null'),
      '/no-code': (response) => response.writeHead(400).end('{"detail":"x"}'),
      '/302': (response) => response.writeHead(302, { location: '/half' }).end(),
    }
    const client = await connected((request, response) => answers[request.url ?? '']?.(response))
    for (const path of Object.keys(answers)) await refused(client.get(path), 'internal')
  })

  it('throws daemon-unreachable when the daemon hangs up, at once or half way', async () => {
    const client = await connected((request, response) => {
      if (request.url === '/half') {
        response.writeHead(200, { 'content-length': '100' })
        response.write('{"a":', () => request.socket.destroy())
      } else request.socket.destroy()
    })
    await refused(client.get('/at-once'), 'daemon-unreachable')
    await refused(client.get('/half'), 'daemon-unreachable')
  })

  it('waits only until its timeout', async () => {
    const client = await connected((request, response) => {
      if (request.url === '/half') {
        response.writeHead(200, { 'content-length': '100' })
        response.write('{')
      }
    })
    await refused(client.get('/never', { timeoutMs: 50 }), 'daemon-unreachable')
    await refused(client.get('/half', { timeoutMs: 50 }), 'daemon-unreachable')
  })

  it('is aborted by its signal, before and during the response', async () => {
    const client = await connected((request, response) => {
      if (request.url === '/half') response.writeHead(200, { 'content-length': '100' }).write('{')
      control.abort()
    })
    let control = new AbortController()
    await refused(client.get('/never', { signal: control.signal }), 'interrupted')
    control = new AbortController()
    await refused(client.get('/half', { signal: control.signal }), 'interrupted')
    await refused(client.get('/late', { signal: AbortSignal.abort() }), 'interrupted')
  })

  it('cuts off an endless response', async () => {
    const chunk = Buffer.alloc(1024 * 1024, ' ')
    let sent = 0
    const client = await connected((_, response) => {
      const more = () => {
        while (!response.destroyed && response.write(chunk)) sent += 1
      }
      response.on('drain', more)
      more()
    })
    await refused(client.get('/'), 'internal')
    assert.ok(sent < 100)
  })
})
