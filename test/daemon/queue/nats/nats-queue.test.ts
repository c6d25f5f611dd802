import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { jetstream } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { DoorwardError } from '../../../../shared/errors.ts'
import { readIdentity } from '../../../../daemon/util/identity.ts'
import { readNote, writeDone, writeNote } from '../../../../daemon/queue/nats/messages.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../../support/queue/engines.ts'
import { type Broker, startBroker } from '../../../support/servers/nats.ts'

describe('machines that share a queue', () => {
  let broker: Broker
  let key: string
  const machines = new Set<TestMachine>()

  const start = async (
    role: 'receiver' | 'worker' | 'both',
    options: TestMachineOptions = {},
  ): Promise<TestMachine> => {
    const machine = await startTestMachine({ servers: broker.url, key, role, ...options })
    machines.add(machine)
    await untilTrue(machine.isConnected)
    return machine
  }
  const vanish = async (machine: TestMachine) => {
    machines.delete(machine)
    await machine.vanish()
  }
  beforeEach(async () => {
    broker = await startBroker()
    key = newKey()
  })
  afterEach(async () => {
    await Promise.all([...machines].map(async (machine) => machine.stop()))
    machines.clear()
    await broker.stop()
  })

  it('run what waited when the broker has lost it, and deliver what ran', async () => {
    const [receiver, worker] = [await start('receiver'), await start('worker')]
    const gate = receiver.newGate('gate')
    const running = await receiver.accept('waits', `${gate.path}\n`)
    await receiver.untilState(running, 'running')
    const waiting = await receiver.accept('waits', `${gate.path}\n`)
    await broker.kill()
    await untilTrue(() => !receiver.isConnected() && !worker.isConnected())
    await broker.start()
    await untilTrue(() => receiver.isConnected() && worker.isConnected())
    await gate.open('there')
    for (const id of [running, waiting]) {
      const { state, attempts } = await receiver.untilOver(id)
      assert.deepEqual([state, attempts], ['done', 1])
    }
    assert.equal((await receiver.answers()).match(/there/g)?.length, 2)
  })

  it('leave what the broker has lost to the process that took over', async () => {
    const old = await start('receiver')
    const id = await old.accept('echo', 'once')
    old.queue.pause()
    await broker.kill()
    await untilTrue(() => !old.isConnected())
    await broker.start()
    await untilTrue(old.isConnected)
    const [other, worker] = [await start('receiver'), await start('worker')]
    await other.untilOver(await other.accept('echo', 'after it'))
    assert.equal(worker.memory.events.record(id), undefined)
    old.queue.resume()
    assert.equal((await old.untilOver(id)).state, 'done')
  })

  it('run a delivery once that two receivers accept', async () => {
    const [one, two] = [await start('receiver'), await start('receiver')]
    await start('worker')
    const delivery = { webhook: '/a', hash: 'same' }
    const first = await one.accept('echo', 'once', { delivery })
    const second = await two.accept('echo', 'once', { delivery })
    assert.equal(two.memory.events.record(second)?.state, 'duplicate')
    assert.equal((await one.untilOver(first)).state, 'done')
  })

  it('deliver the answer to an event that the receiver no longer knows', async () => {
    const receiver = await start('receiver')
    const worker = await start('worker')
    const gate = receiver.newGate('gate')
    const id = await receiver.accept('waits', `${gate.path}\n`)
    await receiver.untilState(id, 'running')
    await vanish(receiver)
    await gate.open('for the next')
    const next = await start('receiver', { home: receiver.home })
    await untilTrue(() => next.memory.events.record(id) !== undefined)
    const { state, known } = {
      known: worker.memory.events.record(id),
      ...(await next.untilOver(id)),
    }
    assert.equal(state, 'done')
    assert.equal(known?.agent, 'waits')
    assert.match(await next.answers(), /for the next/)
  })

  it('refuse what is longer than a message of the broker, prompt or answer', async () => {
    await broker.stop()
    broker = await startBroker('max_payload: 64KB')
    const receiver = await start('receiver')
    await start('worker', {
      agents: `  long: { kind: command, command: [sh, -c, 'printf %0100000d 7'] }\n`,
    })
    await assert.rejects(
      async () => receiver.accept('echo', 'x'.repeat(100_000)),
      (error) => error instanceof DoorwardError && error.code === 'body-too-large',
    )
    const other = await start('receiver', { agents: '  long: { kind: echo }\n' })
    const { state, code, detail } = await other.untilOver(await other.accept('long', 'write'))
    assert.deepEqual([state, code], ['failed', 'agent-failed'])
    assert.match(detail ?? '', /its answer is too long for NATS/)
  })

  it('give up an event that no machine finishes', async () => {
    const quick = { lostAfter: '1s' }
    const receiver = await start('receiver', quick)
    const gate = receiver.newGate('gate')
    const id = await receiver.accept('waits', `${gate.path}\n`)
    for (const attempt of [1, 2, 3]) {
      const worker = await start('worker', quick)
      await receiver.until(id, ({ attempts }) => attempts === attempt)
      await vanish(worker)
    }
    await start('worker', quick)
    const { state, stage, code, attempts, detail } = await receiver.untilOver(id)
    assert.deepEqual([state, stage, code, attempts], ['failed', 'agent', 'agent-failed', 4])
    assert.match(detail ?? '', /3 machines were given it/)
    await gate.open('ends the programs')
  })

  it('answer only what a machine was given', async () => {
    const receiver = await start('receiver')
    const id = await receiver.accept('waits', 'nobody runs it\n')
    const { id: receiverId } = await readIdentity(receiver.home)
    const nc = await connect({ servers: broker.url })
    const outcome = {
      machine: 'm',
      run: 'r',
      attempt: 1,
      queuedMs: 0,
      agentMs: 0,
      text: 'forged',
      detail: '',
      seen: undefined,
      error: undefined,
      prompt: undefined,
    }
    const forge = async (ticket: Buffer, by: string) =>
      jetstream(nc).publish(
        `doorward.done.${receiverId}`,
        writeDone({ id, outcome, ticket }, [Buffer.from(by, 'base64')]),
      )
    await forge(randomBytes(200), key)
    await forge(randomBytes(200), newKey())
    await nc.close()
    await start('worker', { agents: '' })
    const after = await receiver.untilOver(await receiver.accept('echo', 'real'))
    assert.equal(after.resultPreview, 'real')
    assert.notEqual(receiver.memory.events.record(id)?.resultPreview, 'forged')
  })

  it('do not give a prompt for a program to a model', async () => {
    const receiver = await start('receiver', { agents: '  other: { kind: echo }\n' })
    await start('worker', { agents: '  other: { kind: claude }\n' })
    const { state, code, detail } = await receiver.untilOver(
      await receiver.accept('other', 'do it'),
    )
    assert.deepEqual([state, code], ['failed', 'agent-failed'])
    assert.match(detail ?? '', /no language model/)
  })

  it('say who they are and what they run', async () => {
    const receiver = await start('receiver')
    const worker = await start('worker')
    await untilTrue(() => receiver.queue.machines?.().machines?.length === 2)
    const { name } = await readIdentity(worker.home)
    const seen = receiver.queue.machines?.().machines?.find((one) => one.name === name)
    assert.equal(seen?.role, 'worker')
    assert.deepEqual(
      seen?.agents.find((agent) => agent.name === 'echo'),
      { name: 'echo', running: 0, free: 2 },
    )
  })

  it('call a receiver `door` on the way, as machines of older versions do', async () => {
    const receiver = await start('receiver')
    const nc = await connect({ servers: broker.url })
    const keys = [Buffer.from(key, 'base64')]
    const notes: unknown[] = []
    nc.subscribe('doorward.machines', {
      callback: (_, { data }) => void notes.push(readNote('machine', data, keys)?.value),
    })
    await nc.flush()
    const self = { name: 'old', role: 'door', version: '0.1.0', sentAt: Date.now(), agents: [] }
    nc.publish('doorward.machines', writeNote('machine', 'f'.repeat(16), self, keys))
    // A machine introduces itself to one that it has not heard of.
    await untilTrue(() => notes.length > 1)
    await nc.close()
    const { name } = await readIdentity(receiver.home)
    assert.deepEqual(
      notes.map((note) => (note as Record<string, unknown>)['role']),
      ['door', 'door'],
    )
    const roles = receiver.queue.machines?.().machines?.map((one) => [one.name, one.role])
    assert.deepEqual(
      roles,
      [
        [name, 'receiver'],
        ['old', 'receiver'],
      ].toSorted(([a = ''], [b = '']) => a.localeCompare(b)),
    )
  })

  it('show no prompt and no answer to the broker', async () => {
    const receiver = await start('receiver')
    await start('worker')
    const id = await receiver.accept('echo', 'canary-7f3a')
    assert.equal((await receiver.untilOver(id)).resultPreview, 'canary-7f3a')
    assert.match(broker.log(), new RegExp(id))
    assert.doesNotMatch(broker.log(), /canary-7f3a/)
    assert.ok(!(await broker.hasOnDisk('canary-7f3a')))
  })
})
