import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { type ByteBudget, createByteBudget } from '../../../daemon/util/byte-budget.ts'
import { type ReceivedBody, receive } from '../../../daemon/webhook/receive.ts'
import { DoorwardError } from '../../../shared/errors.ts'

const maxBodyBytes = 1000

type Outcome = { readonly body?: ReceivedBody; readonly code?: string }

describe('receive', () => {
  let server: Server
  let budget: ByteBudget
  let bodyTimeoutMs: number
  let outcomes: Outcome[]
  let wake: () => void
  const sockets = new Set<Socket>()

  before(async () => {
    server = createServer((request, response) => {
      void take(request, response)
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    server.closeAllConnections()
  })
  beforeEach(() => {
    budget = createByteBudget(1500)
    bodyTimeoutMs = 15_000
    outcomes = []
    wake = () => undefined
  })

  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const declared = Number(request.headers['content-length'])
    try {
      outcomes.push({
        body: await receive(request, { declared, maxBodyBytes, budget, bodyTimeoutMs }),
      })
      response.end('taken')
    } catch (error) {
      assert.ok(error instanceof DoorwardError)
      outcomes.push({ code: error.code })
      response.writeHead(400).end()
    }
    wake()
  }
  /** A connection on which these bytes were sent. */
  const open = async (...pieces: (string | Buffer)[]): Promise<Socket> => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.on('error', () => undefined)
    sockets.add(socket)
    await once(socket, 'connect')
    for (const piece of pieces) await new Promise((resolve) => socket.write(piece, resolve))
    return socket
  }
  const outcome = async (count = 1): Promise<Outcome> => {
    while (outcomes.length < count)
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    return outcomes[count - 1] ?? {}
  }
  const head = (...headers: string[]) =>
    ['POST / HTTP/1.1', 'Host: x', ...headers, '', ''].join('\r\n')
  const chunk = (size: number) => `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n`

  it('gives the bytes as they came, and counts them until they are released', async () => {
    const bytes = Buffer.from([0, 0xff, 0x0d, 0x0a, 0xc3, 0x28])
    await open(head('Content-Length: 6'), bytes.subarray(0, 3), bytes.subarray(3))
    const { body } = await outcome()
    assert.deepEqual(body?.bytes, bytes)
    assert.equal(budget.used(), 6)
    body?.release()
    body?.release()
    assert.equal(budget.used(), 0)
  })

  it('puts chunks together', async () => {
    await open(head('Transfer-Encoding: chunked'), chunk(3), chunk(400), '0\r\n\r\n')
    assert.equal((await outcome()).body?.bytes.toString(), 'x'.repeat(403))
  })

  it('takes an empty body, and one of exactly the limit', async () => {
    await open(head('Content-Length: 0'))
    assert.equal((await outcome()).body?.bytes.length, 0)
    await open(head(`Content-Length: ${maxBodyBytes}`), 'x'.repeat(maxBodyBytes))
    assert.equal((await outcome(2)).body?.bytes.length, maxBodyBytes)
  })

  it('refuses by its length a body that is too large, before any of it came', async () => {
    await open(head(`Content-Length: ${maxBodyBytes + 1}`))
    assert.equal((await outcome()).code, 'body-too-large')
    assert.equal(budget.used(), 0)
  })

  it('refuses a chunked body as soon as it is too large, before its end', async () => {
    await open(head('Transfer-Encoding: chunked'), chunk(600), chunk(600))
    assert.equal((await outcome()).code, 'body-too-large')
    assert.equal(budget.used(), 0)
  })

  it('refuses a body when the budget is used up, and gives back what it had taken', async () => {
    budget.take(1400)
    await open(head('Content-Length: 900'), 'x'.repeat(90), 'x'.repeat(300))
    assert.equal((await outcome()).code, 'queue-full')
    assert.equal(budget.used(), 1400)
  })

  it('counts nothing after a refusal, though the sender goes on', async () => {
    const socket = await open(head('Transfer-Encoding: chunked'), chunk(999), chunk(600))
    assert.equal((await outcome()).code, 'body-too-large')
    const answered = once(socket, 'data')
    for (let i = 0; i < 20; i += 1) socket.write(chunk(600))
    await answered
    assert.equal(budget.used(), 0)
  })

  it('gives back what it had taken when the sender goes away', async () => {
    const socket = await open(head('Content-Length: 900'), 'x'.repeat(500))
    while (budget.used() === 0) await new Promise((resolve) => setImmediate(resolve))
    assert.equal(budget.used(), 500)
    socket.resetAndDestroy()
    assert.equal((await outcome()).code, 'body-aborted')
    assert.equal(budget.used(), 0)
  })

  it('is not fooled by a sender that ends its half too early', async () => {
    const socket = await open(head('Content-Length: 900'), 'x'.repeat(500))
    socket.end()
    assert.equal((await outcome()).code, 'body-aborted')
    assert.equal(budget.used(), 0)
  })

  it('refuses a body that takes too long, however steadily it drips', async () => {
    bodyTimeoutMs = 200
    const socket = await open(head('Content-Length: 900'), 'x')
    const drip = setInterval(() => socket.write('x'), 20)
    try {
      assert.equal((await outcome()).code, 'body-timeout')
      assert.equal(budget.used(), 0)
    } finally {
      clearInterval(drip)
    }
  })
})
