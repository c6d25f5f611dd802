import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectSocket, createServer, type Socket } from 'node:net'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import pino from 'pino'
import { checkConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'
import { Broker } from '../../../../daemon/queue/nats/broker.ts'
import { untilTrue } from '../../../support/queue/engines.ts'
import { type Broker as Server, startBroker } from '../../../support/servers/nats.ts'

describe('the connection to NATS', () => {
  let server: Server
  let broker: Broker | undefined

  const start = (url = server.url, keys: readonly Buffer[] = [Buffer.alloc(32)]): Broker => {
    const env = { NATS_URL: url }
    const { gateway } = checkConfig(
      readYaml('gateway.yaml', 'queue: { engine: nats }'),
      readYaml('agents.yaml', 'agents: {}'),
      readYaml('webhooks.yaml', 'webhooks: []'),
      env,
    )
    const log = pino({ level: 'silent' })
    const runs = { madeAt: undefined }
    const settings = () => gateway.queue
    broker = new Broker({ settings, env: () => env, keys: () => keys, runs, log })
    broker.start()
    return broker
  }
  afterEach(async () => {
    await broker?.close()
    broker = undefined
    await server.stop()
  })

  it('is not made without a key', async () => {
    server = await startBroker()
    const { problem } = await untilProblem(start(server.url, []))
    assert.equal(problem, 'DOORWARD_QUEUE_KEY does not hold keys of 32 bytes in base64')
  })

  it('uses no stream that would lose or keep events', async () => {
    server = await startBroker()
    const nc = await connect({ servers: server.url })
    const jsm = await jetstreamManager(nc)
    const name = 'doorward-runs'
    await jsm.streams.add({ name, subjects: ['doorward.run.*'], storage: 'memory' })
    await nc.close()
    const { problem } = await untilProblem(start())
    assert.match(problem ?? '', /doorward-runs .* not made by doorward: remove it there/)
  })

  it('says what the server says', async () => {
    server = await startBroker('jetstream { max_mem: 1MB }')
    const { problem } = await untilProblem(start())
    assert.match(problem ?? '', /insufficient memory/)
  })

  it('does not stay open where it is closed before it is there', async () => {
    server = await startBroker()
    const sockets: Socket[] = []
    const slow = createServer((socket) => sockets.push(socket.on('error', () => undefined)))
    slow.listen(0, '127.0.0.1')
    await once(slow, 'listening')
    const address = slow.address()
    assert.ok(address && typeof address === 'object')
    const closing = start(`nats://127.0.0.1:${address.port}`)
    await untilTrue(() => sockets.length === 1)
    await closing.close()
    const [socket] = sockets
    assert.ok(socket)
    const closed = once(socket, 'close')
    const upstream = connectSocket(server.port, '127.0.0.1').on('error', () => undefined)
    socket.pipe(upstream).pipe(socket)
    await closed
    slow.close()
  })
})

const untilProblem = async (broker: Broker): Promise<Broker> => {
  await untilTrue(() => broker.problem !== undefined)
  return broker
}
