import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import {
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import { type AddressInfo, type Server, type Socket, createServer } from 'node:net'
import { setInterval } from 'node:timers'
import { type Client, connect, readDaemonFile, whoAnswers } from '../../shared/client.ts'
import { DoorwardError, type ErrorCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home.ts'
import { challengeHeader, placeOf, proofHeader, proofOf } from '../../shared/identity.ts'
import { temporaryHome } from '../support/temporary.ts'

const apiToken = 'the-token-of-this-home-0123456789abcdef'

const servers: Server[] = []
const sockets = new Set<Socket>()

const listening = async (server: Server): Promise<string> => {
  servers.push(server)
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A home whose `daemon.json` names this address, and this process. */
const homeWith = async (url: string, pid = 1): Promise<Home> => {
  const home = await temporaryHome()
  await mkdir(home.run, { mode: 0o700 })
  await writeFile(home.daemonJson, JSON.stringify({ pid, url, version: '1', startedAt: '' }))
  await writeFile(home.apiToken, `${apiToken}\n`, { mode: 0o600 })
  return home
}

/** Answers the challenge of a request, as the daemon with this token does. */
const prove = (request: IncomingMessage, response: ServerResponse, token = apiToken): void => {
  const { localAddress, localPort } = request.socket
  const challenge = String(request.headers[challengeHeader])
  response.setHeader(proofHeader, proofOf(token, challenge, placeOf(localAddress, localPort)))
}

const refused = async (tried: Promise<unknown>, code: ErrorCode): Promise<void> =>
  assert.rejects(tried, (error: unknown) => {
    assert.ok(error instanceof DoorwardError, String(error))
    assert.equal(error.code, code, error.message)
    assert.doesNotMatch(`${error.message} ${error.hint}`, new RegExp(apiToken))
    return true
  })

after(() => {
  for (const socket of sockets) socket.destroy()
  for (const server of servers) server.close()
})

describe('a client at a port that another program holds', () => {
  const http = (status: string, headers: string, body: string) => (socket: Socket) =>
    socket.end(`HTTP/1.1 ${status}\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`)
  const health = JSON.stringify({ status: 'ok', name: 'doorward', version: '0' })

  const strangers: Record<string, (socket: Socket) => void> = {
    'hangs up': (socket) => socket.destroy(),
    'answers garbage': (socket) => socket.end('+OK hello\r\n'),
    'answers nothing': () => undefined,
    'answers a byte now and then': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5000\r\n\r\n')
      const timer = setInterval(() => socket.write(' '), 200)
      socket.once('close', () => clearInterval(timer))
    },
    'answers a page': http('200 OK', 'content-type: text/html\r\n', '<h1>name: doorward</h1>'),
    'answers JSON': http('200 OK', '', '{"name":"another"}'),
    'answers null': http('200 OK', '', 'null'),
    'answers 401': http('401 Unauthorized', 'www-authenticate: Bearer\r\n', ''),
    'answers 101': (socket) =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'),
    'answers 100 for ever': (socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 100 Continue\r\n\r\n'), 200)
      socket.once('close', () => clearInterval(timer))
    },
    redirects: http('302 Found', 'location: http://127.0.0.1:1/health\r\n', ''),
    'answers a proof that is none': http('200 OK', `${proofHeader}: ${'0'.repeat(64)}\r\n`, 'x'),
    'answers without end': (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      const chunk = `${(65_536).toString(16)}\r\n${'x'.repeat(65_536)}\r\n`
      const more = () => {
        while (!socket.destroyed && socket.write(chunk));
      }
      socket.on('drain', more)
      more()
    },
    'breaks off': (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nxx'),
  }

  const silent = new Set(['answers nothing', 'answers a byte now and then', 'answers 100 for ever'])

  const standIn = async (answer: (socket: Socket) => void) => {
    const heard: string[] = []
    const server = createServer((socket) => {
      socket.once('data', (chunk: Buffer) => {
        heard.push(chunk.toString('latin1'))
        answer(socket)
        socket.on('data', (more: Buffer) => heard.push(more.toString('latin1')))
      })
    })
    return { url: await listening(server), heard }
  }

  it('says that another program is there, and never sends it the token', async () => {
    await Promise.all(
      Object.entries(strangers).map(async ([what, answer]) => {
        const { url, heard } = await standIn(answer)
        const home = await homeWith(url)
        await Promise.all([
          refused(connect(home), 'daemon-foreign'),
          whoAnswers(url, apiToken).then((who) =>
            assert.equal(who, silent.has(what) ? 'silent' : 'stranger', what),
          ),
        ])
        assert.equal(heard.length >= 2, true, what)
        assert.doesNotMatch(heard.join(''), /authorization|bearer/i, what)
        assert.equal(heard.join('').includes(apiToken), false, what)
      }),
    )
  })

  it('knows another doorward, even one that repeats the challenge, and sends it no token', async () => {
    const { url, heard } = await standIn(http('200 OK', '', health))
    assert.equal(await whoAnswers(url, apiToken), 'other-doorward')
    await refused(connect(await homeWith(url)), 'daemon-foreign')
    assert.equal(heard.join('').includes(apiToken), false)

    const parrot = await listening(
      createHttpServer((request, response) => {
        response.setHeader(proofHeader, String(request.headers[challengeHeader]))
        response.end(health)
      }),
    )
    assert.equal(await whoAnswers(parrot, apiToken), 'other-doorward')
    const withOtherToken = await listening(
      createHttpServer((request, response) => {
        prove(request, response, 'another')
        response.end(health)
      }),
    )
    assert.equal(await whoAnswers(withOtherToken, apiToken), 'other-doorward')
    assert.equal(await whoAnswers(withOtherToken, undefined), 'other-doorward')
  })

  it('believes no proof that was fetched from the daemon at another port', async () => {
    const daemon = await listening(
      createHttpServer((request, response) => {
        prove(request, response)
        response.end(health)
      }),
    )
    assert.equal(await whoAnswers(daemon, apiToken), 'ours')
    const passOn = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const challenge = String(request.headers[challengeHeader])
      const answer = await fetch(`${daemon}/health`, { headers: { [challengeHeader]: challenge } })
      response.setHeader(proofHeader, answer.headers.get(proofHeader) ?? '')
      response.end(health)
    }
    const relay = createHttpServer((request, response) => void passOn(request, response))
    await refused(connect(await homeWith(await listening(relay))), 'daemon-foreign')
  })

  it('says of the daemon itself that it ends each connection, and never that it is another program', async function () {
    // Elsewhere the holder of a port is not always known.
    if (process.platform !== 'linux') return this.skip()
    const url = await listening(createServer((socket) => void socket.destroy()))
    await refused(connect(await homeWith(url, process.pid)), 'daemon-silent')
  })

  it('asks again where it was hung up on, as by a daemon that ends and is followed by another', async () => {
    let asked = 0
    const server = createHttpServer((request, response) => {
      asked += 1
      if (asked === 1) {
        request.socket.destroy()
        return
      }
      prove(request, response)
      response.end(health)
    })
    const client = await connect(await homeWith(await listening(server)))
    client.close()
    assert.equal(asked, 2)

    const ends = createHttpServer((request) => {
      ends.close()
      request.socket.destroy()
    })
    await refused(connect(await homeWith(await listening(ends))), 'daemon-unreachable')
  })

  it('sends another challenge each time', async () => {
    const { url, heard } = await standIn(http('200 OK', '', health))
    await whoAnswers(url, apiToken)
    await whoAnswers(url, apiToken)
    const challenges = heard.map((text) => /doorward-challenge: ([0-9a-f]{64})\r/.exec(text)?.[1])
    assert.equal(new Set(challenges).size, 2, heard.join())
    assert.equal(challenges.includes(undefined), false)
  })
})

describe('a client of a home without a daemon', () => {
  it('says so when there is no daemon.json, no token, or a damaged one', async () => {
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

  it('goes to no address but a loopback one', async () => {
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

  it('says so when nobody listens there any more', async () => {
    const server = createServer()
    const url = await listening(server)
    server.close()
    await once(server, 'close')
    assert.equal(await whoAnswers(url, apiToken), 'nobody')
    await refused(connect(await homeWith(url)), 'daemon-unreachable')
  })
})

describe('a client of its daemon', () => {
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

  it('sends the token and JSON, and gives back what it gets', async () => {
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

  it('says who asks with every request of the owner, and not before the proof', async () => {
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

  it('asks each new connection for a proof: a program that has the port by now gets no token', async () => {
    const server = createHttpServer((request, response) => {
      if (request.url === '/health') prove(request, response)
      response.end('{}')
    })
    const url = await listening(server)
    const client = await connect(await homeWith(url))
    clients.push(client)
    assert.deepEqual(await client.get('/'), {})
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
    await refused(client.get('/'), 'daemon-unreachable')

    const heard: string[] = []
    const squatter = createHttpServer((request, response) => {
      heard.push(request.url ?? '', request.headers.authorization ?? 'no token')
      response.end('{}')
    })
    servers.push(squatter)
    squatter.listen(Number(new URL(url).port), '127.0.0.1')
    await once(squatter, 'listening')
    await refused(client.get('/'), 'daemon-foreign')
    assert.deepEqual(heard, ['/health', 'no token'])
  })

  it('goes on over a new connection when the daemon has ended the idle one', async () => {
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

  it('asks again, once, where an idle connection was ended just as it asked; but does nothing twice', async () => {
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

  it('throws the problem that the daemon tells, with its code and hint', async () => {
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

  it('throws an error of ours for every answer that is not to be understood', async () => {
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

  it('waits as long as it was told, and no longer', async () => {
    const client = await connected((request, response) => {
      if (request.url === '/half') {
        response.writeHead(200, { 'content-length': '100' })
        response.write('{')
      }
    })
    await refused(client.get('/never', { timeoutMs: 50 }), 'daemon-unreachable')
    await refused(client.get('/half', { timeoutMs: 50 }), 'daemon-unreachable')
  })

  it('ends by its signal, before the answer and in the middle of it', async () => {
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

  it('cuts off an answer without end', async () => {
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
