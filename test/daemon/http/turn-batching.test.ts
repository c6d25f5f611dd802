import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { createEndOfTurn } from '../../../daemon/http/turn-batching.ts'

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** With nothing else, as a program's start does. */
const passTime = (ms: number): void => {
  const end = performance.now() + ms
  while (performance.now() < end);
}

describe('the end of a turn', () => {
  // However slow the machine is.
  const { answerAtEndOfTurn, workAtEndOfTurn } = createEndOfTurn(Infinity)

  it('sends answers in their order, and only then comes work', async () => {
    const done: string[] = []
    workAtEndOfTurn(() => done.push('work'))
    answerAtEndOfTurn(() => done.push('first'))
    answerAtEndOfTurn(() => done.push('second'))
    assert.deepEqual(done, [])
    await turn()
    assert.deepEqual(done, ['first', 'second', 'work'])
  })

  it('has the answers of the next turn before what work puts off', async () => {
    const done: string[] = []
    workAtEndOfTurn(() => {
      workAtEndOfTurn(() => done.push('later work'))
      answerAtEndOfTurn(() => done.push('answer'))
      done.push('work')
    })
    await turn()
    assert.deepEqual(done, ['work'])
    await turn()
    assert.deepEqual(done, ['work', 'answer', 'later work'])
  })

  it('is not waited for any longer in a turn that takes in very much', async () => {
    const { answerAtEndOfTurn, workAtEndOfTurn } = createEndOfTurn(250)
    const done: string[] = []
    workAtEndOfTurn(() => done.push('turn'))
    await turn()
    workAtEndOfTurn(() => done.push('work'))
    answerAtEndOfTurn(() => done.push('first'))
    assert.deepEqual(done, ['turn'])
    passTime(250)
    answerAtEndOfTurn(() => done.push('second'))
    assert.deepEqual(done, ['turn', 'first', 'second'])
    await turn()
    assert.deepEqual(done, ['turn', 'first', 'second', 'work'])
  })

  it('is not waited for by those who have waited for what took long', async () => {
    const { answerAtEndOfTurn, workAtEndOfTurn } = createEndOfTurn(250)
    const done: string[] = []
    workAtEndOfTurn(() => void Promise.resolve().then(() => passTime(251)))
    await turn()
    answerAtEndOfTurn(() => done.push('late'))
    answerAtEndOfTurn(() => done.push('late too'))
    assert.deepEqual(done, ['late', 'late too'])
    await turn()
    answerAtEndOfTurn(() => done.push('in time'))
    assert.deepEqual(done, ['late', 'late too'])
    await turn()
    assert.deepEqual(done, ['late', 'late too', 'in time'])
  })

  it('comes once requests that came together are all taken in', async () => {
    const steps: string[] = []
    const server = createServer((_request, response) => {
      steps.push('taken in')
      answerAtEndOfTurn(() => {
        steps.push('answered')
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
      ...Array.from({ length: 8 }, () => 'taken in'),
      ...Array.from({ length: 8 }, () => 'answered'),
    ])
  })
})
