import assert from 'node:assert/strict'
import {
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import type { Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { NotQuick, connectQuickly } from '../../cli/quick-daemon.ts'
import { version } from '../../shared/version.ts'
import { apiToken, homeWith, listensUntilTheEnd, prove, refused } from '../support/stand-ins.ts'
import { standsIn, strangers } from '../support/strangers.ts'
import { run } from './support/cli.ts'

const userAgent = 'doorward-cli/0 (a test)'

describe('cli: the quick way to a token', () => {
  const listening = listensUntilTheEnd()
  const path = '/oauth/tokens/github/access'
  const token = { provider: 'github', accessToken: 'the-one', tokenType: 'bearer', scopes: [] }

  type Say = (response: ServerResponse, text: string, time: number) => unknown
  const sayWhole: Say = (response, text) =>
    response.writeHead(200, { 'content-length': Buffer.byteLength(text) }).end(text)

  /** A daemon that proves itself and says a token as told; `asked` has what is asked, by connection. */
  const daemonThat = async (say: Say) => {
    const asked: { readonly url: string; readonly connection: Socket }[] = []
    const answer = (request: IncomingMessage, response: ServerResponse) => {
      const { url = '', socket: connection, headers } = request
      asked.push({ url, connection })
      if (url === '/health') {
        prove(request, response)
        return void response.end('{"name":"doorward"}')
      }
      assert.equal(headers.authorization, `Bearer ${apiToken}`)
      assert.match(String(headers['user-agent']), /^doorward-cli/)
      say(response, JSON.stringify(token), asked.filter((one) => one.url === url).length)
    }
    const server: Server = createHttpServer(answer)
    const url = await listening(server)
    return { asked, home: await homeWith(url, process.pid, version), server, url }
  }
  const printed = async (daemon: Awaited<ReturnType<typeof daemonThat>>) =>
    run(['oauth', 'token', 'github', '--no-start'], { home: daemon.home })
  const paths = (daemon: Awaited<ReturnType<typeof daemonThat>>) =>
    daemon.asked.map(({ url }) => url)

  it('asks two questions over one connection', async () => {
    const daemon = await daemonThat(sayWhole)
    assert.deepEqual(await printed(daemon), { code: 0, stdout: 'the-one\n', stderr: '' })
    assert.deepEqual(paths(daemon), ['/health', path])
    assert.equal(new Set(daemon.asked.map(({ connection }) => connection)).size, 1)
  })

  it('takes an answer that comes in pieces', async () => {
    const daemon = await daemonThat(async (response, text) => {
      response.writeHead(200, { 'content-length': text.length })
      for (const piece of text) {
        response.write(piece)
        await setImmediate()
      }
      response.end()
    })
    const client = await connectQuickly({ home: daemon.home, userAgent })
    assert.deepEqual(await client.get(path), token)
    assert.deepEqual(await client.get(path), token)
    client.close()
    assert.deepEqual(paths(daemon), ['/health', path, path])
  })

  it('tells a refusal at once, without asking again', async () => {
    const daemon = await daemonThat((response) => {
      const problem = JSON.stringify({ code: 'not-logged-in', detail: 'not logged in' })
      response.writeHead(404, { 'content-length': problem.length }).end(problem)
    })
    const { code, stdout, stderr } = await printed(daemon)
    assert.deepEqual([code, stdout], [4, ''])
    assert.match(stderr, /not logged in\nhint: doorward oauth login github\n$/)
    assert.deepEqual(paths(daemon), ['/health', path])
  })

  const unusual: Record<string, Say> = {
    'is chunked': (response, text) => response.writeHead(200).end(text),
    'is of no length': (response, text) => {
      response.socket?.end(`HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${text}`)
    },
    'is followed by more': (response, text) => {
      response.socket?.end(`HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n${text}`)
    },
    'has two lengths': (response, text) => {
      const lengths = `content-length: ${text.length}\r\ncontent-length: ${text.length}\r\n`
      response.socket?.end(`HTTP/1.1 200 OK\r\n${lengths}\r\n${text}`)
    },
    'is of a length and chunked': (response, text) => {
      const both = `content-length: ${text.length}\r\ntransfer-encoding: chunked\r\n`
      response.socket?.end(`HTTP/1.1 200 OK\r\n${both}\r\n${text}`)
    },
    'is garbage': (response) => response.socket?.end('hello\r\n\r\n'),
    'breaks off': (response) => {
      response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{')
    },
    'is nothing': (response) => response.socket?.destroy(),
    'is of a daemon that is about to end': (response) => {
      const problem = JSON.stringify({ code: 'stopping', detail: 'the daemon is stopping' })
      response.writeHead(503, { 'content-length': problem.length }).end(problem)
    },
  }
  for (const [what, first] of Object.entries(unusual))
    it(`leaves an answer that ${what} to the usual way`, async () => {
      const daemon = await daemonThat((response, text, time) =>
        (time === 1 ? first : sayWhole)(response, text, time),
      )
      assert.deepEqual(await printed(daemon), { code: 0, stdout: 'the-one\n', stderr: '' })
      assert.deepEqual(paths(daemon), ['/health', path, '/health', path])
    })

  it('leaves a daemon of another version to it, which says so', async () => {
    const daemon = await daemonThat(sayWhole)
    const home = await homeWith(daemon.url, process.pid, '0.0.1')
    await assert.rejects(connectQuickly({ home, userAgent }), NotQuick)
    assert.deepEqual(paths(daemon), [])
    const { stdout, stderr } = await run(['oauth', 'token', 'github', '--no-start'], { home })
    assert.equal(stdout, 'the-one\n')
    assert.match(stderr, /the running daemon is version 0\.0\.1/)
  })

  it('leaves an address to it that is not written as a daemon writes its own', async () => {
    const daemon = await daemonThat(sayWhole)
    const { port } = new URL(daemon.url)
    for (const url of [`http://127.0.0.1:0${port}`, `http://127.000.0.1:${port}`]) {
      const home = await homeWith(url, process.pid, version)
      await assert.rejects(connectQuickly({ home, userAgent }), NotQuick)
      const { stdout } = await run(['oauth', 'token', 'github', '--no-start'], { home })
      assert.equal(stdout, 'the-one\n')
    }
  })

  it('says of a daemon that stays silent that it does not answer', async () => {
    const daemon = await daemonThat(() => undefined)
    const client = await connectQuickly({ home: daemon.home, userAgent })
    await refused(client.get(path, { timeoutMs: 50 }), 'daemon-unreachable')
    await assert.rejects(client.get(path), NotQuick)
  })

  it('never sends the token to a stranger, whatever that says', async () => {
    const standIn = standsIn(listening)
    const all = { ...strangers, 'is a daemon with another token': undefined }
    await Promise.all(
      Object.entries(all).map(async ([what, answer]) => {
        const { url, heard } = answer
          ? await standIn(answer)
          : { url: await listening(otherDaemon()), heard: [] }
        const home = await homeWith(url, process.pid, version)
        await assert.rejects(connectQuickly({ home, userAgent }), NotQuick, what)
        assert.doesNotMatch(heard.join(''), /authorization|bearer/i, what)
        assert.equal(heard.join('').includes(apiToken), false, what)
      }),
    )
  })
})

const otherDaemon = (): Server =>
  createHttpServer((request, response) => {
    assert.equal(request.headers.authorization, undefined)
    prove(request, response, 'another')
    response.end('{}')
  })
