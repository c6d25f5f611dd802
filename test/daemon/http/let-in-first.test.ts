import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { type RequestListener, type Server, createServer, request } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { buffer, text } from 'node:stream/consumers'
import { answerAtEndOfTurn } from '../../../daemon/http/turn-batching.ts'
import { letInFirst } from '../../../daemon/http/let-in-first.ts'

const ask = 'GET / HTTP/1.1\r\nHost: here\r\n\r\n'

describe('letting connections in first', () => {
  let server: Server
  const clients: Socket[] = []

  const serverWith = async (serve: RequestListener, aloneMs = 0): Promise<number> => {
    server = createServer()
    letInFirst(server, serve, aloneMs)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  /** Resolves with the answer. */
  const askOnce = (port: number): Promise<unknown> => {
    const client = connected(port)
    client.write(ask)
    return once(client, 'data')
  }
  /** Some are always on their way, so that each turn brings one. */
  const rush = async (port: number, isOver: () => boolean): Promise<void> => {
    const ended: Promise<unknown>[] = []
    const come = (): void => void ended.push(askOnce(port))
    const comeAgain = (): void => {
      if (isOver()) server.off('connection', comeAgain)
      else come()
    }
    server.on('connection', comeAgain)
    for (let count = 0; count < 20; count += 1) come()
    while (!isOver()) await once(server, 'connection')
    await Promise.all(ended)
  }
  /** Counts whom it answers, and how many of them before the last one was in. */
  const counting = async (aloneMs = 0) => {
    const counts = { areIn: 0, served: 0, servedBeforeLast: 0 }
    const port = await serverWith((_, response) => {
      counts.served += 1
      response.end()
    }, aloneMs)
    server.on('connection', () => {
      counts.areIn += 1
      counts.servedBeforeLast = counts.served
    })
    return { port, counts }
  }
  const connected = (port: number): Socket => {
    const client = connect(port, '127.0.0.1')
    clients.push(client)
    return client
  }

  afterEach(async () => {
    for (const client of clients.splice(0)) client.destroy()
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  it('answers a few requests for each connection while others come', async () => {
    const callers = 200
    const each = 20
    const { port, counts } = await counting()
    await Promise.all(
      Array.from({ length: callers }, async () => {
        const client = connected(port)
        for (let count = 0; count < each; count += 1) {
          client.write(ask)
          await once(client, 'data')
        }
      }),
    )
    assert.equal(counts.areIn, callers)
    assert.equal(counts.served, callers * each)
    // Served as they ask, those who are in would have had all they want by then.
    assert.ok(
      counts.servedBeforeLast < callers * 4,
      `${counts.servedBeforeLast} before the last one was in`,
    )
  })

  it('answers nobody at first, until all are in', async () => {
    const callers = 200
    const { port, counts } = await counting(Number.POSITIVE_INFINITY)
    await rush(port, () => counts.areIn >= callers)
    assert.equal(counts.servedBeforeLast, 0)
    assert.equal(counts.served, counts.areIn)
  })

  it('answers at once in a rush that soon follows another', async () => {
    const aloneMs = 100
    const { port, counts } = await counting(aloneMs)
    const end = performance.now() + 4 * aloneMs
    await rush(port, () => performance.now() >= end)
    const { served, areIn } = counts
    await rush(port, () => counts.areIn >= areIn + 200)
    assert.ok(counts.servedBeforeLast > served, 'nobody before the last one was in')
  })

  it('answers nobody at first in a rush after many who came one by one', async () => {
    const aloneMs = 400
    const { port, counts } = await counting(aloneMs)
    for (let count = 0; count < 100; count += 1) {
      server.once('request', () => {
        const end = performance.now() + 5
        while (performance.now() < end);
      })
      await askOnce(port)
    }
    const { served } = counts
    await rush(port, () => counts.areIn >= served + 50)
    assert.equal(counts.servedBeforeLast, served)
  })

  it('answers while connections go on coming', async () => {
    const port = await serverWith((_, response) => void response.end())
    let isAnswered = false
    let areIn = 0
    server.on('connection', () => {
      areIn += 1
      // Each brings the next one, until there is an answer.
      if (!isAnswered) connected(port)
    })
    const client = connected(port)
    client.write(ask)
    await once(client, 'data')
    isAnswered = true
    assert.ok(areIn < 50, `${areIn} came in before`)
  })

  it('keeps the order in which requests came', async () => {
    const order: string[] = []
    const port = await serverWith((request, response) => {
      order.push(request.url ?? '')
      response.end()
    })
    const client = connected(port)
    client.write([1, 2, 3, 4, 5, 6].map((n) => ask.replace('/', `/${n}`)).join(''))
    for (let answers = ''; answers.split('HTTP/1.1 200').length < 7;)
      answers += String((await once(client, 'data'))[0])
    assert.deepEqual(order, ['/1', '/2', '/3', '/4', '/5', '/6'])
  })

  it('lets no more wait than 512, however many one connection brings', async () => {
    const wanted = 5000
    let asked = 0
    let served = 0
    let most = 0
    let isDone = false
    const port = await serverWith((_, response) => {
      served += 1
      response.end()
    })
    server.on('request', () => {
      asked += 1
      most = Math.max(most, asked - served)
    })
    server.on('connection', () => {
      // Each brings the next one, so that requests wait.
      if (!isDone) connected(port)
    })
    const client = connected(port)
    client.end(ask.repeat(wanted))
    const answers = await text(client)
    isDone = true
    assert.equal(answers.split('HTTP/1.1 200').length - 1, wanted)
    assert.ok(most > 1 && most <= 512, `${most} waited`)
  })

  it('gives a large body whole, however long its request has waited', async () => {
    const body = Buffer.alloc(3_000_000, 'doorward')
    const hash = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
    const port = await serverWith((incoming, response) => {
      void buffer(incoming).then((bytes) => response.end(hash(bytes)))
    })
    const answers = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const posted = request({ port, method: 'POST' })
        posted.end(body)
        const [response] = await once(posted, 'response')
        return text(response)
      }),
    )
    assert.deepEqual(new Set(answers), new Set([hash(body)]))
  })

  it('answers those who have sent all they want, too', async () => {
    const port = await serverWith((_, response) => void response.end('answer'))
    const areIn = new Promise<void>((resolve) => {
      let left = 100
      server.on('connection', () => (left -= 1) === 0 && resolve())
    })
    const callers = Array.from({ length: 100 }, () => connected(port))
    await areIn
    const answers = callers.map(async (client) => {
      // And with it that nothing more comes.
      client.end(ask)
      return text(client)
    })
    // They wait for these.
    for (let count = 0; count < 100; count += 1) connected(port)
    assert.deepEqual(
      (await Promise.all(answers)).filter((answer) => !answer.endsWith('answer')),
      [],
    )
  })

  it('answers them at the end of a turn as well', async () => {
    const port = await serverWith((_, response) =>
      answerAtEndOfTurn(() => void response.end('answer')),
    )
    for (let count = 0; count < 20; count += 1) {
      const client = connected(port)
      client.end(ask)
      assert.match(await text(client), /answer$/)
    }
  })

  it('does not begin with a request whose sender has gone', async () => {
    const urls: string[] = []
    const port = await serverWith((incoming, response) => {
      urls.push(incoming.url ?? '')
      response.end()
    })
    // Seen before those who wait are served: it leaves while the rest comes in.
    let hasLeft = false
    const leaving = connected(port)
    server.on('request', (incoming) => {
      if (incoming.url !== '/leaving') return
      incoming.socket.destroy()
      hasLeft = true
    })
    leaving.write(ask.replace('/', '/leaving'))
    const others = Array.from({ length: 20 }, () => connected(port))
    for (const other of others) other.write(ask)
    await Promise.all(others.map((other) => once(other, 'data')))
    assert.ok(hasLeft)
    assert.deepEqual(new Set(urls), new Set(['/']))
  })
})
