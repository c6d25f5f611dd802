import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { createTurnBatching } from '../../../daemon/http/turn-batching.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Blocks the event loop, as the start of a program does. */
const passTime = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('the end of a turn', () => {
  // However slow the machine is, no limit ends the wait.
  const { batchResponse, deferToTickEnd } = createTurnBatching(Infinity)

  it('sends responses in their order, and then runs deferred steps', async () => {
    const done: string[] = []
    deferToTickEnd(() => done.push('step'))
    batchResponse(() => done.push('first'))
    batchResponse(() => done.push('second'))
    assert.deepEqual(done, [])
    await turn()
    assert.deepEqual(done, ['first', 'second', 'step'])
  })

  it('sends the responses of the next turn before steps that a step deferred', async () => {
    const done: string[] = []
    deferToTickEnd(() => {
      deferToTickEnd(() => done.push('later step'))
      batchResponse(() => done.push('response'))
      done.push('step')
    })
    await turn()
    assert.deepEqual(done, ['step'])
    await turn()
    assert.deepEqual(done, ['step', 'response', 'later step'])
  })

  it('does not keep responses waiting in a long turn', async () => {
    const { batchResponse, deferToTickEnd } = createTurnBatching(250)
    const done: string[] = []
    deferToTickEnd(() => done.push('turn'))
    await turn()
    deferToTickEnd(() => done.push('step'))
    batchResponse(() => done.push('first'))
    assert.deepEqual(done, ['turn'])
    passTime(250)
    batchResponse(() => done.push('second'))
    assert.deepEqual(done, ['turn', 'first', 'second'])
    await turn()
    assert.deepEqual(done, ['turn', 'first', 'second', 'step'])
  })

  it('comes after all requests that arrived together were read', async () => {
    const steps: string[] = []
    const server = createServer((_request, response) => {
      steps.push('read')
      batchResponse(() => {
        steps.push('responded')
        response.end()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const sockets: Socket[] = []
    while (sockets.length < 8) {
      sockets.push(connect(port, '127.0.0.1'))
      await once(server, 'connection')
    }
    await Promise.all(
      sockets.map(async (socket) => {
        socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
        await once(socket, 'data')
      }),
    )
    for (const socket of sockets) socket.destroy()
    server.close()
    assert.deepEqual(steps, [
      ...Array.from({ length: 8 }, () => 'read'),
      ...Array.from({ length: 8 }, () => 'responded'),
    ])
  })
})
