import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  type IncomingMessage,
  type ServerResponse,
  createServer as createHttpServer,
} from 'node:http'
import { createServer } from 'node:net'
import { connect, identifyListener } from '../../../shared/client/client.ts'
import { challengeHeader, proofHeader } from '../../../shared/client/identity.ts'
import {
  apiToken,
  homeWith,
  listensUntilTheEnd,
  prove,
  refused,
} from '../../support/daemon/stand-ins.ts'
import { answersWith, health, silent, standsIn, strangers } from '../../support/daemon/strangers.ts'

describe('a client at a port that another program holds', () => {
  const listening = listensUntilTheEnd()
  const standIn = standsIn(listening)

  it('reports another program, and never sends it the token', async () => {
    await Promise.all(
      Object.entries(strangers).map(async ([what, answer]) => {
        const { url, heard } = await standIn(answer)
        const home = await homeWith(url)
        await Promise.all([
          refused(connect(home), 'daemon-foreign'),
          identifyListener(url, apiToken).then((who) =>
            assert.equal(who, silent.has(what) ? 'silent' : 'stranger', what),
          ),
        ])
        assert.equal(heard.length >= 2, true, what)
        assert.doesNotMatch(heard.join(''), /authorization|bearer/i, what)
        assert.equal(heard.join('').includes(apiToken), false, what)
      }),
    )
  })

  it('recognises another doorward, even one that repeats the challenge, and sends it no token', async () => {
    const { url, heard } = await standIn(answersWith('200 OK', '', health))
    assert.equal(await identifyListener(url, apiToken), 'other-doorward')
    await refused(connect(await homeWith(url)), 'daemon-foreign')
    assert.equal(heard.join('').includes(apiToken), false)

    const parrot = await listening(
      createHttpServer((request, response) => {
        response.setHeader(proofHeader, String(request.headers[challengeHeader]))
        response.end(health)
      }),
    )
    assert.equal(await identifyListener(parrot, apiToken), 'other-doorward')
    const withOtherToken = await listening(
      createHttpServer((request, response) => {
        prove(request, response, 'another')
        response.end(health)
      }),
    )
    assert.equal(await identifyListener(withOtherToken, apiToken), 'other-doorward')
    assert.equal(await identifyListener(withOtherToken, undefined), 'other-doorward')
  })

  it('rejects a proof that was relayed from the daemon at another port', async () => {
    const daemon = await listening(
      createHttpServer((request, response) => {
        prove(request, response)
        response.end(health)
      }),
    )
    assert.equal(await identifyListener(daemon, apiToken), 'ours')
    const passOn = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      const challenge = String(request.headers[challengeHeader])
      const answer = await fetch(`${daemon}/health`, { headers: { [challengeHeader]: challenge } })
      response.setHeader(proofHeader, answer.headers.get(proofHeader) ?? '')
      response.end(health)
    }
    const relay = createHttpServer((request, response) => void passOn(request, response))
    await refused(connect(await homeWith(await listening(relay))), 'daemon-foreign')
  })

  it('reports that the daemon closes each connection, not that it is another program', async function () {
    // On other systems the process is not always known.
    if (process.platform !== 'linux') return this.skip()
    const url = await listening(createServer((socket) => void socket.destroy()))
    await refused(connect(await homeWith(url, process.pid)), 'daemon-silent')
  })

  it('retries after a hang-up, as of a daemon that is replaced by its successor', async () => {
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
    const { url, heard } = await standIn(answersWith('200 OK', '', health))
    await identifyListener(url, apiToken)
    await identifyListener(url, apiToken)
    const challenges = heard.map((text) => /doorward-challenge: ([0-9a-f]{64})\r/.exec(text)?.[1])
    assert.equal(new Set(challenges).size, 2, heard.join())
    assert.equal(challenges.includes(undefined), false)
  })

  it('requires a proof on each new connection: a program that took the port gets no token', async () => {
    const server = createHttpServer((request, response) => {
      if (request.url === '/health') prove(request, response)
      response.end('{}')
    })
    const url = await listening(server)
    const client = await connect(await homeWith(url))
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
    await listening(squatter, Number(new URL(url).port))
    await refused(client.get('/'), 'daemon-foreign')
    assert.deepEqual(heard, ['/health', 'no token'])
    client.close()
  })
})
