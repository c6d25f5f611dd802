import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream'
import { connect, type Msg, type NatsConnection, nkeyAuthenticator } from '@nats-io/transport-node'
import pino from 'pino'
import { readIdentity } from '../../daemon/util/identity.ts'
import { readRun, writeDone, writeNote } from '../../daemon/queue/nats/messages.ts'
import { newKey, startTestMachine, type TestMachine, untilTrue } from '../support/queue/engines.ts'
import { type Broker, startBroker } from '../support/servers/nats.ts'
import { documentedAccounts, newUser } from '../support/servers/nats-users.ts'

/*
 * An intruder has the login of a worker at the broker, and perhaps the queue key. The broker has the accounts of the
 * documents: one worker may run the agent `echo`, another one `waits`.
 */
describe('an intruder on the queue', () => {
  const runs = 'doorward-runs'
  const [receiverUser, echoUser, waitsUser] = [newUser(), newUser(), newUser()]
  const key = newKey()
  const lines: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) })
  let broker: Broker
  let receiver: TestMachine
  let receiverId: string
  let intruder: NatsConnection
  /** Of the owner, who may do everything. */
  let owner: NatsConnection
  let manager: JetStreamManager
  const workers: TestMachine[] = []

  const start = async (role: 'receiver' | 'worker', { seed } = echoUser): Promise<TestMachine> => {
    const options = { servers: broker.url, key, seed, role, log, lostAfter: '3s' }
    const machine = await startTestMachine(options)
    await untilTrue(machine.isConnected)
    return machine
  }
  const startWorker = async (user = echoUser): Promise<TestMachine> => {
    const machine = await start('worker', user)
    workers.push(machine)
    return machine
  }
  const connectAs = async ({ seed }: { readonly seed: string }): Promise<NatsConnection> =>
    connect({
      servers: broker.url,
      authenticator: nkeyAuthenticator(new TextEncoder().encode(seed)),
    })

  before(async () => {
    const agents = { [echoUser.publicKey]: ['echo'], [waitsUser.publicKey]: ['waits'] }
    const { accounts } = await documentedAccounts(receiverUser.publicKey, agents)
    broker = await startBroker(accounts)
    receiver = await start('receiver', receiverUser)
    receiverId = (await readIdentity(receiver.home)).id
    intruder = await connectAs(echoUser)
    owner = await connectAs(receiverUser)
    manager = await jetstreamManager(owner)
  })
  afterEach(async () => {
    await Promise.all(workers.splice(0).map(async (machine) => machine.stop()))
  })
  after(async () => {
    await intruder.close()
    await owner.close()
    await receiver.stop()
    await broker.stop()
  })

  const linesWith = (text: string) => lines.filter((line) => line.includes(text))
  const nextRun = async (payload = '{"batch":1,"expires":900000000}'): Promise<Msg> =>
    intruder.request(`doorward.js.CONSUMER.MSG.NEXT.${runs}.echo`, payload, {
      noMux: true,
      timeout: 1000,
    })
  const isDone = async (machine: TestMachine, id: string) =>
    assert.equal((await machine.untilOver(id)).state, 'done')
  /** All that is at the broker, but for the times. */
  const stateOf = async () => {
    const { state } = await manager.streams.info(runs)
    const consumers = await manager.consumers.list(runs).next()
    return [
      [state.messages, state.first_seq, state.last_seq],
      consumers.map(({ name, config, num_ack_pending: taken }) => [name, config, taken]),
    ]
  }

  it('cannot log in without a key of the broker', async () => {
    await assert.rejects(
      connect({ servers: broker.url, maxReconnectAttempts: 0 }),
      /Authorization/i,
    )
    await assert.rejects(connectAs(newUser()), /Authorization/i)
  })

  it('may take runs of its own agents, and do nothing else', async () => {
    const id = await receiver.accept('waits', 'never\n')
    const taken = await owner.request(`$JS.API.CONSUMER.MSG.NEXT.${runs}.waits`, '', {
      noMux: true,
      timeout: 1000,
    })
    const before = await stateOf()
    const asked = [
      ['STREAM.INFO.doorward-answers', ''],
      ['STREAM.DELETE.doorward-runs', ''],
      ['STREAM.PURGE.doorward-runs', ''],
      ['STREAM.MSG.GET.doorward-runs', '{"seq":1}'],
      ['STREAM.MSG.DELETE.doorward-runs', '{"seq":1}'],
      ['DIRECT.GET.doorward-runs', '{"seq":1}'],
      ['CONSUMER.LIST.doorward-runs', ''],
      ['CONSUMER.INFO.doorward-runs.waits', ''],
      ['CONSUMER.DELETE.doorward-runs.waits', ''],
      ['CONSUMER.DELETE.doorward-runs.echo', ''],
      ['CONSUMER.MSG.NEXT.doorward-runs.waits', '{"batch":1,"no_wait":true}'],
      ...['mine', 'echo'].flatMap((name) => [
        [`CONSUMER.CREATE.doorward-runs.${name}`, toConsumer(name)],
        [`CONSUMER.DURABLE.CREATE.doorward-runs.${name}`, toConsumer(name)],
      ]),
    ] as const
    const heard: string[] = []
    const all = intruder.subscribe('>', { callback: (_, { subject }) => void heard.push(subject) })
    const requests = ['$JS.API', 'doorward.js'].flatMap((prefix) =>
      asked.map(async ([subject, payload]) => {
        const request = intruder.request(`${prefix}.${subject}`, payload, { timeout: 500 })
        const reply = await request.then((message) => message.string(), String)
        assert.match(reply, /not enabled for account|no responders|timeout/, subject)
      }),
    )
    await Promise.all(requests)
    intruder.publish('doorward.run.echo', 'x')
    intruder.publish('doorward.run.waits', 'x')
    intruder.publish('doorward.cancel', writeNote('cancel', id, {}, [Buffer.from(key, 'base64')]))
    intruder.publish(taken.reply ?? '', '+TERM')
    await intruder.flush()
    assert.deepEqual(await stateOf(), before)
    all.unsubscribe()
    // All others are what it has sent or was answered itself.
    assert.deepEqual(
      heard.filter((subject) => subject.startsWith('doorward.done')),
      [],
    )
    receiver.queue.cancel(id)
    owner.publish(taken.reply ?? '', '+ACK')
    await owner.flush()
  })

  it('cannot have the broker do it, by the subject of a reply', async () => {
    const before = await stateOf()
    for (const reply of [
      '$JS.API.STREAM.DELETE.doorward-runs',
      '$JS.API.STREAM.PURGE.doorward-runs',
      '$JS.API.STREAM.MSG.DELETE.doorward-runs',
      '$JS.API.CONSUMER.DELETE.doorward-runs.waits',
      'doorward.run.waits',
      'doorward.cancel',
    ]) {
      const nothing = '{"batch":1,"no_wait":true}'
      intruder.publish(`doorward.js.CONSUMER.MSG.NEXT.${runs}.echo`, nothing, { reply })
      intruder.publish('doorward.js.STREAM.INFO.doorward-runs', '', { reply })
      intruder.publish(`doorward.done.${receiverId}`, 'x', { reply })
    }
    await nextRun('{"batch":1,"no_wait":true}').catch(() => undefined)
    assert.deepEqual(await stateOf(), before)
  })

  it('leaves each worker its work, which knows what it may not take', async () => {
    const [one, other] = [await startWorker(), await startWorker(waitsUser)]
    const gate = receiver.newGate('gate')
    await gate.open('waited')
    await isDone(receiver, await receiver.accept('echo', 'hi'))
    await isDone(receiver, await receiver.accept('waits', `${gate.path}\n`))
    const notOffered = ({ queue }: TestMachine) => queue.machines?.().broker?.notOffered
    await untilTrue(() => notOffered(one)?.includes('waits, fails') ?? false)
    await untilTrue(() => notOffered(other)?.includes('echo, fails') ?? false)
    assert.match(notOffered(one) ?? '', /^the configuration of NATS gives this machine no runs of/)
  })

  it('stops no answers with messages that nothing opens', async () => {
    await startWorker()
    for (let count = 0; count < 300; count += 1)
      intruder.publish(`doorward.done.${receiverId}`, randomBytes(count))
    await intruder.flush()
    await isDone(receiver, await receiver.accept('echo', 'after it'))
    assert.equal(linesWith('refused answers').length, 1)
  })

  it('fills the answers for a few seconds only', async () => {
    await startWorker()
    for (let count = 0; count < 150; count += 1)
      intruder.publish(`doorward.done.nobody${count % 3}`, randomBytes(100))
    await intruder.flush()
    const id = await receiver.accept('echo', 'when there is room')
    await isDone(receiver, id)
  })

  it('starves no agent with runs that nothing opens', async () => {
    for (let count = 0; count < 50; count += 1)
      owner.publish('doorward.run.waits', randomBytes(count))
    const gate = receiver.newGate('next')
    await gate.open('ran')
    const id = await receiver.accept('waits', `${gate.path}\n`)
    await startWorker(waitsUser)
    await isDone(receiver, id)
    assert.equal(linesWith('runs cannot be opened').length, 1)
    while ((await manager.streams.info(runs)).state.messages > 0);
  })

  it('reads nothing without the queue key, and its answer fails the event', async () => {
    const id = await receiver.accept('echo', 'canary-51c2')
    const taken = await nextRun()
    assert.doesNotMatch(Buffer.from(taken.data).toString('latin1'), /canary-51c2/)
    assert.equal(readRun(taken.data, [Buffer.from(newKey(), 'base64')]), undefined)
    intruder.publish(`doorward.done.${receiverId}`, taken.data)
    const { state, code, detail } = await receiver.untilOver(id)
    assert.deepEqual([state, code], ['failed', 'agent-failed'])
    assert.match(detail ?? '', /cannot be opened: the worker uses a different queue key/)
    intruder.publish(taken.reply ?? '', '+ACK')
    await intruder.flush()
  })

  it('with the queue key reads and answers what its agents are asked, and nothing else', async () => {
    const keys = [Buffer.from(key, 'base64')]
    const id = await receiver.accept('echo', 'canary-9e07')
    const other = await receiver.accept('waits', 'nobody\n')
    const taken = await nextRun()
    const run = readRun(taken.data, keys)
    assert.equal(run?.prompt, 'canary-9e07')
    const outcome = {
      machine: 'm',
      run: run.run,
      attempt: 1,
      queuedMs: 0,
      agentMs: 0,
      detail: '',
      seen: undefined,
      error: undefined,
      prompt: undefined,
      text: 'as it likes',
    }
    const answer = (to: string) =>
      intruder.publish(
        `doorward.done.${receiverId}`,
        writeDone({ id: to, outcome, ticket: run.ticket }, keys),
      )
    answer(other)
    answer(id)
    assert.equal((await receiver.untilOver(id)).resultPreview, 'as it likes')
    assert.equal(receiver.memory.events.record(other)?.state, 'queued')
    intruder.publish(taken.reply ?? '', '+ACK')
    await intruder.flush()
    receiver.queue.cancel(other)
  })

  it('that ends a run fails its event, which says so', async () => {
    const id = await receiver.accept('echo', 'never')
    const taken = await nextRun()
    intruder.publish(taken.reply ?? '', '+TERM')
    const { code, detail } = await receiver.untilOver(id)
    assert.equal(code, 'event-dropped')
    assert.match(detail ?? '', /different queue keys/)
  })
})

const toConsumer = (name: string): string => {
  const config = { durable_name: name, filter_subject: 'doorward.run.waits', ack_wait: 3.6e12 }
  return JSON.stringify({ stream_name: 'doorward-runs', config })
}
