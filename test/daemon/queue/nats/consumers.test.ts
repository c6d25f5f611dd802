import assert from 'node:assert/strict'
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../../support/queue/engines.ts'
import { type Broker, startBroker } from '../../../support/servers/nats.ts'

describe('what workers ask the broker', () => {
  const runs = 'doorward-runs'
  let broker: Broker
  let key: string
  let nc: NatsConnection
  let manager: JetStreamManager
  const machines: TestMachine[] = []

  const start = async (
    role: 'receiver' | 'worker',
    options: TestMachineOptions = {},
  ): Promise<TestMachine> => {
    const machine = await startTestMachine({ servers: broker.url, key, role, ...options })
    machines.push(machine)
    return machine
  }
  const startConnected = async (...given: Parameters<typeof start>): Promise<TestMachine> => {
    const machine = await start(...given)
    await untilTrue(machine.isConnected)
    return machine
  }
  const stateOf = (machine: TestMachine) => machine.queue.machines?.().broker
  const untilConsumer = async (agent: string, ackPending: number): Promise<void> => {
    for (;;) {
      const { config } = (await manager.consumers.info(runs, agent).catch(() => undefined)) ?? {}
      if (config?.max_ack_pending === ackPending) return
      await new Promise((resolve) => setTimeout(resolve, 10))
    }
  }
  const messages = async (): Promise<number> => (await manager.streams.info(runs)).state.messages

  beforeEach(async () => {
    broker = await startBroker()
    key = newKey()
    nc = await connect({ servers: broker.url })
    manager = await jetstreamManager(nc)
  })
  afterEach(async () => {
    await Promise.all(machines.splice(0).map(async (machine) => machine.stop()))
    await nc.close()
    await broker.stop()
  })

  it('waits for a receiver, and the worker says so', async () => {
    const worker = await start('worker', { agents: '  extra: { kind: echo }\n' })
    await untilTrue(() => stateOf(worker)?.problem !== undefined)
    assert.equal(stateOf(worker)?.problem, 'the streams are missing: no receiver has connected yet')
    const receiver = await startConnected('receiver')
    const id = await receiver.accept('echo', 'first')
    assert.equal((await receiver.untilOver(id)).state, 'done')
    await untilTrue(() => stateOf(worker)?.notOffered !== undefined)
    assert.match(stateOf(worker)?.notOffered ?? '', /^no receiver offers runs of extra:/)
    assert.equal(stateOf(worker)?.problem, undefined)
  })

  it('may have been made by a worker of an older version, with what waits there', async () => {
    const first = await startConnected('receiver')
    await untilConsumer('echo', 2)
    await manager.consumers.delete(runs, 'echo')
    const made = await manager.consumers.add(runs, {
      durable_name: 'echo',
      filter_subject: 'doorward.run.echo',
      ack_policy: 'explicit',
      max_ack_pending: 7,
      ack_wait: 9e9,
    })
    const id = await first.accept('echo', 'waited')
    await startConnected('receiver', { lostAfter: '30s' })
    await untilConsumer('echo', 2)
    const { created, config } = await manager.consumers.info(runs, 'echo')
    assert.deepEqual([created, config.ack_wait], [made.created, 30e9])
    await startConnected('worker')
    assert.equal((await first.untilOver(id)).state, 'done')
  })

  it('may be asked for with the permissions of one account, as documents of older versions have them', async () => {
    await broker.stop()
    broker = await startBroker(olderPermissions)
    const as = (user: string) => broker.url.replace('//', `//${user}:secret@`)
    const receiver = await startConnected('receiver', { servers: as('receiver') })
    const worker = await startConnected('worker', { servers: as('worker') })
    const id = await receiver.accept('echo', 'as before')
    assert.equal((await receiver.untilOver(id)).state, 'done')
    assert.equal(stateOf(worker)?.notOffered, undefined)
  })

  it('has the key of both, while it is replaced and events wait', async () => {
    const [receiver, worker] = [await startConnected('receiver'), await startConnected('worker')]
    const gate = receiver.newGate('gate')
    const ids: string[] = []
    const accept = async () => ids.push(await receiver.accept('waits', `${gate.path}\n`))
    await accept()
    await receiver.untilState(ids[0] ?? '', 'running')
    await accept()
    const next = newKey()
    worker.setKeys(key, next)
    receiver.setKeys(key, next)
    await accept()
    worker.setKeys(next, key)
    receiver.setKeys(next, key)
    await accept()
    await gate.open('there')
    for (const id of ids) assert.equal((await receiver.untilOver(id)).state, 'done')
    worker.setKeys(next)
    receiver.setKeys(next)
    assert.equal((await receiver.untilOver(await receiver.accept('echo', 'new'))).state, 'done')
  })

  it('is offered to another machine, where the first does not have the new key', async () => {
    const receiver = await startConnected('receiver')
    const [older, newer] = [await startConnected('worker'), await startConnected('worker')]
    await receiver.untilOver(await receiver.accept('echo', 'with the old key'))
    const next = newKey()
    newer.setKeys(next, key)
    receiver.setKeys(next, key)
    for (let count = 0; count < 6; count += 1) {
      const id = await receiver.accept('echo', 'with the new key')
      assert.equal((await receiver.untilOver(id)).state, 'done')
    }
    assert.ok(older.isConnected())
    assert.equal(await messages(), 0)
  })

  it('stays where it is for a worker that has another key', async () => {
    const receiver = await startConnected('receiver')
    const wrong = await startConnected('worker', { key: newKey() })
    await untilTrue(() => stateOf(receiver)?.problem?.includes('different queue key') ?? false)
    const ids = await Promise.all(
      [1, 2, 3].map(async (count) => receiver.accept('echo', `event ${count}`)),
    )
    await startConnected('worker')
    assert.ok(wrong.isConnected())
    for (const id of ids) assert.equal((await receiver.untilOver(id)).state, 'done')
  })
})

const olderPermissions = `
authorization { users: [
  { user: receiver, password: secret, permissions: { publish: ["doorward.>", "$JS.>"], subscribe: ["doorward.>", "_INBOX.door.>"] } }
  { user: worker, password: secret, permissions: { subscribe: ["doorward.cancel", "doorward.machines", "_INBOX.worker.>"], publish: [
    "doorward.done.*", "doorward.progress.*", "doorward.machines", "$JS.API.INFO", "$JS.API.STREAM.INFO.doorward-runs", "$JS.ACK.doorward-runs.>",
    "$JS.API.CONSUMER.INFO.doorward-runs.*", "$JS.API.CONSUMER.CREATE.doorward-runs.>", "$JS.API.CONSUMER.MSG.NEXT.doorward-runs.*"] } }
] }
`
