import assert from 'node:assert/strict'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { DoorwardError } from '../../../../shared/errors.ts'
import { cancelEvent } from '../../../../daemon/webhook/events/control.ts'
import type { Coalesced } from '../../../../daemon/webhook/rules/groups.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../../support/queue/engines.ts'
import { type Broker, startBroker } from '../../../support/servers/nats.ts'

describe('events that wait for a newer one with their key, with NATS', () => {
  let broker: Broker
  let key: string
  const machines: TestMachine[] = []

  const start = async (
    role: 'receiver' | 'worker',
    options: TestMachineOptions = {},
  ): Promise<TestMachine> => {
    const machine = await startTestMachine({ servers: broker.url, key, role, ...options })
    machines.push(machine)
    await untilTrue(machine.isConnected)
    return machine
  }
  /** As kill -9 and a new start. */
  const startAgain = async (machine: TestMachine): Promise<TestMachine> => {
    machines.splice(machines.indexOf(machine), 1)
    await machine.vanish()
    return start('receiver', { home: machine.home })
  }
  const withKey = (group: string, quietMs: number): { readonly coalesced: Coalesced } => ({
    coalesced: {
      group,
      since: Date.now(),
      quietMs,
      atMostMs: 3_600_000,
      running: 'finish',
      rule: { path: '/a', name: undefined, maxRuns: undefined },
    },
  })
  const long = 3_600_000
  const state = (machine: TestMachine, id: string) => machine.memory.events.record(id)?.state
  const held = async (): Promise<number> => {
    const nc = await connect({ servers: broker.url })
    const { state: found } = await (await jetstreamManager(nc)).streams.info('doorward-held')
    await nc.close()
    return found.messages
  }
  const untilHeld = async (count: number): Promise<void> => {
    while ((await held()) !== count) await new Promise((resolve) => setTimeout(resolve, 20))
  }
  beforeEach(async () => {
    broker = await startBroker()
    key = newKey()
  })
  afterEach(async () => {
    await Promise.all(machines.splice(0).map(async (machine) => machine.stop()))
    await broker.stop()
  })

  it('are accepted only by the broker', async () => {
    const receiver = await start('receiver')
    await broker.kill()
    await untilTrue(() => !receiver.isConnected())
    await assert.rejects(
      async () => receiver.accept('echo', 'lost', withKey('g', long)),
      (error) => error instanceof DoorwardError && error.code === 'unavailable',
    )
    assert.deepEqual(receiver.memory.events.list({ limit: 10, kind: 'webhook' }), [])
  })

  it('are there again after a kill, and the newest of the key wins', async () => {
    const old = await start('receiver')
    const delivery = { webhook: '/a', hash: 'held' }
    const first = await old.accept('echo', 'first', withKey('g', long))
    const second = await old.accept('echo', 'second', { ...withKey('g', long), delivery })
    const other = await old.accept('echo', 'other', withKey('other', long))
    assert.equal(state(old, first), 'filtered')
    await untilHeld(2)
    const next = await startAgain(old)
    await next.untilState(second, 'queued')
    await next.untilState(other, 'queued')
    assert.equal(state(next, first), undefined)
    assert.equal(next.memory.events.get(second)?.prompt, 'second')
    assert.equal(next.deliveries.eventFor(delivery, performance.now()), second)
    await start('worker')
    const third = await next.accept('echo', 'third', withKey('g', 0))
    const { code, detail } = await next.untilOver(second)
    assert.deepEqual(
      [code, detail],
      ['superseded', `a newer event replaced it before its turn came: ${third}`],
    )
    assert.equal((await next.untilOver(third)).resultPreview, 'third')
    assert.equal(state(next, other), 'queued')
    await untilHeld(1)
  })

  it('run once: what was published, cancelled or is over is not there after a kill', async () => {
    const old = await start('receiver')
    await start('worker')
    const ran = await old.accept('echo', 'ran', withKey('a', 0))
    assert.equal((await old.untilOver(ran)).state, 'done')
    const gone = await old.accept('echo', 'gone', withKey('b', long))
    cancelEvent(gone, {
      events: old.memory.events,
      queue: old.queue,
      approvals: { cancel: () => false },
    })
    await untilHeld(0)
    const next = await startAgain(old)
    const last = await next.accept('echo', 'last', withKey('c', 0))
    await next.untilOver(last)
    assert.deepEqual([state(next, ran), state(next, gone)], [undefined, undefined])
    assert.equal((await next.answers()).match(/ran|gone/g)?.length, 1)
  })

  it('go to the broker again when it has lost them', async () => {
    const old = await start('receiver')
    const id = await old.accept('echo', 'again', withKey('g', long))
    await broker.kill()
    await untilTrue(() => !old.isConnected())
    await broker.start()
    await untilTrue(old.isConnected)
    await untilHeld(1)
    const next = await startAgain(old)
    await next.untilState(id, 'queued')
  })

  it('stay at the broker when the receiver stops while an older one runs', async () => {
    const old = await start('receiver')
    await start('worker')
    const gate = old.newGate('gate')
    const older = await old.accept('waits', `${gate.path}\n`, withKey('g', 0))
    await old.untilState(older, 'running')
    const newer = await old.accept('echo', 'newer', withKey('g', 0))
    machines.splice(machines.indexOf(old), 1)
    await old.stop()
    assert.equal(state(old, newer), 'queued')
    await gate.open('older')
    const next = await start('receiver', { home: old.home })
    assert.equal(
      (await next.until(newer, ({ state: now }) => now === 'done')).resultPreview,
      'newer',
    )
    await next.until(older, ({ state: now }) => now === 'done')
  })

  it("are the receiver's own, and no one else can read them", async () => {
    const receiver = await start('receiver')
    await receiver.accept('echo', 'canary-51c2', withKey('g', long))
    const other = await start('receiver')
    await start('worker')
    await other.untilOver(await other.accept('echo', 'beside'))
    assert.equal(other.memory.events.list({ limit: 10, kind: 'webhook' }).length, 1)
    assert.doesNotMatch(broker.log(), /canary-51c2/)
    assert.ok(!(await broker.hasOnDisk('canary-51c2')))
  })

  it('are not replaced by an older one that the broker confirms later', async () => {
    const receiver = await start('receiver')
    const { coalesced } = withKey('g', long)
    // Both were decided on before either was confirmed.
    const [newer, older] = await Promise.all([
      receiver.accept('echo', 'newer', { coalesced: { ...coalesced, order: 2 } }),
      receiver.accept('echo', 'older', { coalesced: { ...coalesced, order: 1 } }),
    ])
    const { code, detail } = await receiver.untilOver(older)
    assert.deepEqual(
      [code, detail],
      ['superseded', 'a newer event overtook it before its turn came'],
    )
    assert.equal(state(receiver, newer), 'queued')
    await untilHeld(1)
  })
})
