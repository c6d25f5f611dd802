import assert from 'node:assert/strict'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { DoorwardError } from '../../../../shared/errors.ts'
import { readIdentity } from '../../../../daemon/util/identity.ts'
import { writeNote } from '../../../../daemon/queue/nats/messages.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../../support/queue/engines.ts'
import { startLink } from '../../../support/servers/link.ts'
import { type Broker, startBroker } from '../../../support/servers/nats.ts'

describe('machines that share a queue, when something goes wrong', () => {
  let broker: Broker
  let key: string
  const machines: TestMachine[] = []

  const start = async (
    role: 'receiver' | 'worker' | 'both',
    options: TestMachineOptions = {},
  ): Promise<TestMachine> => {
    const machine = await startTestMachine({ servers: broker.url, key, role, ...options })
    machines.push(machine)
    await untilTrue(machine.isConnected)
    return machine
  }
  beforeEach(async () => {
    broker = await startBroker()
    key = newKey()
  })
  afterEach(async () => {
    await Promise.all(machines.splice(0).map(async (machine) => machine.stop()))
    await broker.stop()
  })

  it('count each machine once, however often it says that it runs an event', async () => {
    const receiver = await start('receiver')
    const id = await receiver.accept('waits', 'nobody\n')
    const { id: receiverId } = await readIdentity(receiver.home)
    const nc = await connect({ servers: broker.url })
    const tell = async (machine: string, attempt: number) => {
      const progress = { run: 'r', machine, attempt, queuedMs: 0 }
      nc.publish(
        `doorward.progress.${receiverId}`,
        writeNote('progress', id, progress, [Buffer.from(key, 'base64')]),
      )
      await nc.flush()
    }
    for (let more = 0; more < 3; more += 1) {
      await tell('paused', 1)
      await tell('other', 2)
    }
    await tell('third', 3)
    await nc.close()
    const { attempts, detail } = await receiver.until(id, ({ machine }) => machine === 'third')
    assert.deepEqual([attempts, detail], [3, 'it may have run before on other'])
  })

  it('note a limited number of runs of one event, whatever a worker reports', async () => {
    const receiver = await start('receiver')
    await start('worker')
    const id = await receiver.accept('echo', 'one')
    await receiver.untilOver(id)
    const { id: receiverId } = await readIdentity(receiver.home)
    const nc = await connect({ servers: broker.url })
    for (let count = 0; count < 200; count += 1) {
      const progress = { run: `r${count}`, machine: 'm', attempt: 1, queuedMs: 0 }
      const note = writeNote('progress', id, progress, [Buffer.from(key, 'base64')])
      nc.publish(`doorward.progress.${receiverId}`, note)
    }
    await nc.flush()
    await nc.close()
    await receiver.untilOver(await receiver.accept('echo', 'two'))
    const noted = receiver.memory.events.list({ limit: 1000, kind: 'daemon' }).length
    assert.ok(noted > 0 && noted <= 50)
  })

  it('report a run that another one has overtaken', async () => {
    const receiver = await start('receiver')
    await start('worker')
    const id = await receiver.accept('echo', 'one')
    await receiver.untilOver(id)
    const { id: receiverId } = await readIdentity(receiver.home)
    const nc = await connect({ servers: broker.url })
    for (const machine of ['late', 'late', 'later']) {
      const progress = { run: 'r', machine, attempt: 1, queuedMs: 0 }
      const note = writeNote('progress', id, progress, [Buffer.from(key, 'base64')])
      nc.publish(`doorward.progress.${receiverId}`, note)
    }
    await nc.flush()
    await nc.close()
    const told = () =>
      receiver.memory.events
        .list({ limit: 100, kind: 'daemon' })
        .flatMap(
          ({ detail }) => /when (\w+) said that it runs it too/.exec(detail ?? '')?.[1] ?? [],
        )
    await untilTrue(() => told().includes('later'))
    assert.deepEqual(told(), ['later', 'late'])
    const { state, attempts } = receiver.memory.events.record(id) ?? {}
    assert.deepEqual([state, attempts], ['done', 1])
  })

  it('deliver what was published without an acknowledgement, and run it once', async () => {
    const link = await startLink(broker.port)
    const receiver = await start('receiver', { servers: `nats://127.0.0.1:${link.port}` })
    await start('worker')
    const delivery = { webhook: '/a', hash: 'same' }
    const id = await receiver.accept('fails', 'one', { delivery })
    await receiver.untilOver(id)
    const event = receiver.kept.get(id)
    const agent = receiver.engine.config.agents.get('echo')
    assert.ok(event && agent)
    link.cut()
    receiver.engine.runEvent.again(id, {
      ...event,
      webhook: { ...event.webhook, agentName: 'echo', agent },
    })
    await receiver.until(id, (record) => record.detail?.startsWith('it waits: ') ?? false)
    link.restore()
    const { state, resultPreview } = await receiver.untilOver(id)
    link.close()
    assert.deepEqual([state, resultPreview], ['done', 'one'])
  })

  it('run again what the broker has lost together with its worker', async () => {
    const options = { lostAfter: '1500ms' }
    const receiver = await start('receiver', options)
    const lost = await start('worker', options)
    const gate = receiver.newGate('gate')
    const id = await receiver.accept('waits', `${gate.path}\n`)
    await receiver.untilState(id, 'running')
    await broker.kill()
    machines.splice(machines.indexOf(lost), 1)
    await lost.vanish()
    await broker.start()
    // The same machine, which knows nothing of it.
    await start('worker', { ...options, home: lost.home })
    await gate.open('at last')
    const { state, detail } = await receiver.untilOver(id)
    assert.equal(state, 'done')
    assert.match(detail ?? '', /it may have run before/)
  })

  it('deliver an answer while an event of its agent waits for the broker', async () => {
    const link = await startLink(broker.port)
    const receiver = await start('receiver', { servers: `nats://127.0.0.1:${link.port}` })
    await start('worker')
    const [first, second] = [
      await receiver.accept('fails', 'one'),
      await receiver.accept('fails', 'two'),
    ]
    await Promise.all([receiver.untilOver(first), receiver.untilOver(second)])
    const [one, two] = [receiver.kept.get(first), receiver.kept.get(second)]
    assert.ok(one && two)
    link.cut()
    receiver.engine.runEvent.again(first, one)
    receiver.engine.runEvent.again(second, two, 'an answer from before')
    const { state } = await receiver.untilOver(second)
    assert.deepEqual([state, receiver.memory.events.record(first)?.state], ['done', 'queued'])
    link.restore()
    await receiver.untilOver(first)
    link.close()
  })

  it('leave alone what has the place of a run in the stream before', async () => {
    const [receiver, worker] = [await start('receiver'), await start('worker')]
    const gate = receiver.newGate('gate')
    const first = await receiver.accept('waits', `${gate.path}\n`)
    await receiver.untilState(first, 'running')
    await broker.kill()
    await untilTrue(() => !receiver.isConnected() && !worker.isConnected())
    await broker.start()
    await untilTrue(() => receiver.isConnected() && worker.isConnected())
    const second = await receiver.accept('waits', `${gate.path}\n`)
    await gate.open('both')
    for (const id of [first, second]) assert.equal((await receiver.untilOver(id)).state, 'done')
  })

  it('publish later what a broker has lost and has no room for', async () => {
    const options = { lostAfter: '1500ms', maxEvents: 1 }
    const receiver = await start('receiver', options)
    const id = await receiver.accept('echo', 'later')
    await broker.kill()
    await untilTrue(() => !receiver.isConnected())
    await broker.start()
    // Before the receiver is there.
    const nc = await connect({ servers: broker.url })
    const jsm = await jetstreamManager(nc)
    await jsm.streams.add({
      name: 'doorward-runs',
      subjects: ['doorward.run.*'],
      storage: 'memory',
      retention: 'workqueue',
      discard: 'new',
      max_msgs: 1,
    })
    await jetstream(nc).publish('doorward.run.nobody', '')
    await untilTrue(() => receiver.isConnected())
    const gone = receiver.accept('echo', 'no room')
    await assert.rejects(gone, (error) => error instanceof DoorwardError)
    await jsm.streams.purge('doorward-runs')
    await nc.close()
    await start('worker', options)
    assert.equal((await receiver.untilOver(id)).state, 'done')
  })
})
