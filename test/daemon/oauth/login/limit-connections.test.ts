import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type Server, type ServerResponse, createServer } from 'node:http'
import { type AddressInfo, type Socket, connect } from 'node:net'
import { afterEach, beforeEach, describe, it } from 'mocha'
import { limitConnections } from '../../../../daemon/oauth/login/callback-server.ts'

describe('a limit of connections', () => {
  let server: Server
  let sockets: Socket[]

  beforeEach(async () => {
    sockets = []
    server = createServer().listen(0, '127.0.0.1')
    limitConnections(server, 2)
    await once(server, 'listening')
  })
  afterEach(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
    server.closeAllConnections()
  })

  /** A connection that the server has seen, and what tells that the server has ended it. */
  const open = async () => {
    const { port } = server.address() as AddressInfo
    const seen = once(server, 'connection')
    const socket = connect(port, '127.0.0.1').on('error', () => undefined)
    sockets.push(socket)
    const ended = new Promise((resolve) => socket.once('close', resolve))
    await seen
    return { socket, ended }
  }
  /** One with a request that is still to be answered. */
  const ask = async () => {
    const { socket, ended } = await open()
    const asked = once(server, 'request') as Promise<[unknown, ServerResponse]>
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    const [, response] = await asked
    return { socket, ended, response }
  }
  const answered = async ({ socket, response }: Awaited<ReturnType<typeof ask>>) => {
    const data = once(socket, 'data') as Promise<[Buffer]>
    response.end()
    assert.match((await data)[0].toString(), /^HTTP\/1\.1 200 /)
  }

  it('closes the oldest that has sent no request, even after older ones that have', async () => {
    const first = await ask()
    const silent = await open()
    const third = await ask()
    await silent.ended
    await answered(first)
    await answered(third)
  })

  it('takes half a request for none', async () => {
    const half = await open()
    half.socket.write('GET / HTTP/1.1\r\nHost: x\r\n')
    await open()
    const third = await ask()
    await half.ended
    await answered(third)
  })

  it('refuses a new one while all the others are being answered', async () => {
    const [first, second] = [await ask(), await ask()]
    const third = await open()
    await third.ended
    await answered(first)
    await answered(second)
  })

  it('does not count closed connections', async () => {
    const first = await open()
    const closed = once(server, 'connection') as Promise<[Socket]>
    const gone = await open()
    const [atServer] = await closed
    gone.socket.destroy()
    await once(atServer, 'close')
    const third = await ask()
    await answered(third)
    first.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await once(server, 'request')
  })
})
