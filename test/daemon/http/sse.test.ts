import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { type EventStream, createEventStream } from '../../../daemon/http/sse.ts'
import { getUserAgent } from '../../../shared/version.ts'

describe('the stream of events', () => {
  let stream: EventStream
  let server: Server
  let client: Socket

  beforeEach(async () => {
    stream = createEventStream(new EventStore(10))
    server = createServer()
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    client = connect((server.address() as AddressInfo).port, '127.0.0.1')
    client.on('error', () => undefined)
    client.write('GET /events/stream HTTP/1.1\r\nHost: here\r\n\r\n')
  })

  afterEach(async () => {
    client.destroy()
    server.closeAllConnections()
    server.close()
    await once(server, 'close')
  })

  const asked = async (): Promise<[IncomingMessage, ServerResponse]> =>
    (await once(server, 'request')) as [IncomingMessage, ServerResponse]

  it('counts who follows, until they go', async () => {
    const [request, response] = await asked()
    await stream.open(request, response)
    assert.equal(stream.followers(), 1)
    client.destroy()
    await once(response, 'close')
    assert.equal(stream.followers(), 0)
  })

  it('knows a tray by its name, and no other follower', async () => {
    const [other, response] = await asked()
    await stream.open(other, response)
    assert.deepEqual([stream.followers(), stream.hasTray()], [1, false])
    const tray = connect((server.address() as AddressInfo).port, '127.0.0.1')
    tray.on('error', () => undefined)
    tray.write(
      `GET /events/stream HTTP/1.1\r\nHost: here\r\nUser-Agent: ${getUserAgent('tray')}\r\n\r\n`,
    )
    const [request, second] = await asked()
    await stream.open(request, second)
    assert.deepEqual([stream.followers(), stream.hasTray()], [2, true])
    tray.destroy()
    await once(second, 'close')
    assert.deepEqual([stream.followers(), stream.hasTray()], [1, false])
  })

  it('counts nobody who has gone before it begins', async () => {
    const [request, response] = await asked()
    const closed = once(response, 'close')
    // As a turn of the daemon does: what has closed in it is told of before the stream begins.
    await new Promise<void>((resolve) => void setImmediate(resolve))
    const opened = stream.open(request, response)
    request.socket.destroy()
    await closed
    await opened
    assert.equal(stream.followers(), 0)
  })
})
