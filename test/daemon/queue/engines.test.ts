import assert from 'node:assert/strict'
import { DoorwardError } from '../../../shared/errors.ts'
import { cancelEvent } from '../../../daemon/webhook/events/control.ts'
import type { Coalesced } from '../../../daemon/webhook/rules/groups.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../support/queue/engines.ts'

/** A door, and what runs its agents: itself, or a worker. */
const engines = {
  memory: async (options: TestMachineOptions) => ({
    door: await startTestMachine(options),
    worker: undefined,
  }),
  nats: async (options: TestMachineOptions, broker: Broker) => {
    const shared = { ...options, servers: broker.url, key: newKey() }
    const door = await startTestMachine({ ...shared, role: 'door' })
    const worker = await startTestMachine({ ...shared, role: 'worker' })
    await untilTrue(() => door.isConnected() && worker.isConnected())
    return { door, worker }
  },
}

for (const name of ['memory', 'nats'] as const)
  describe(`a queue (${name})`, () => {
    let broker: Broker | undefined
    let machines: TestMachine[] = []

    const start = async (options: TestMachineOptions = {}): Promise<TestMachine> => {
      broker = name === 'nats' ? await startBroker() : undefined
      const { door, worker } = broker
        ? await engines.nats(options, broker)
        : await engines.memory(options)
      machines = worker ? [door, worker] : [door]
      return door
    }
    const cancel = (door: TestMachine, id: string) => {
      const { events } = door.memory
      return cancelEvent(id, {
        events,
        queue: door.queue,
        cancelRemote: () => assert.fail('not here'),
      })
    }
    afterEach(async () => {
      await Promise.all(machines.map(async (machine) => machine.stop()))
      await broker?.stop()
    })

    it('runs the agent of an event, and delivers its answer', async () => {
      const door = await start()
      const id = await door.accept('echo', 'hello')
      assert.equal(door.memory.events.get(id)?.prompt, 'hello')
      const record = await door.untilOver(id)
      const { state, attempts, resultPreview, targets, durations } = record
      assert.deepEqual([state, attempts, resultPreview], ['done', 1, 'hello'])
      assert.equal(targets[0]?.state, 'done')
      assert.deepEqual(Object.keys(durations).toSorted(), ['agentMs', 'deliverMs', 'queuedMs'])
      assert.match(await door.answers(), /hello/)
      assert.equal(door.kept.get(id), undefined)
    })

    it('gives the agent the payload in a file', async () => {
      const door = await start({
        agents:
          '  reads: { kind: command, command: [sh, -c, \'cat "$DOORWARD_EVENT_FILE"\'], event_file: true }\n',
      })
      const id = await door.accept('reads', 'look', { payload: Buffer.from('{"a":"ü"}') })
      assert.equal((await door.untilOver(id)).resultPreview, '{"a":"ü"}')
    })

    it('runs no more of an agent at once than it allows, in their order', async () => {
      const door = await start()
      const [first, second] = [door.newGate('first'), door.newGate('second')]
      const one = await door.accept('waits', `${first.path}\n`)
      await door.untilState(one, 'running')
      const two = await door.accept('waits', `${second.path}\n`)
      await second.open('second')
      assert.equal((await door.untilOver(await door.accept('echo', 'beside'))).state, 'done')
      assert.equal(door.memory.events.record(two)?.state, 'queued')
      await first.open('first')
      await door.untilOver(two)
      assert.match(await door.answers(), /first[^]*second/)
    })

    it('refuses with queue-full, and takes more when there is room', async () => {
      const door = await start({ maxEvents: 2 })
      const gate = door.newGate('gate')
      const ids = [await door.accept('waits', `${gate.path}\n`)]
      await door.untilState(ids[0] ?? '', 'running')
      await assert.rejects(
        async () => {
          for (let more = 0; more < 3; more += 1)
            ids.push(await door.accept('waits', `${gate.path}\n`))
        },
        (error) => error instanceof DoorwardError && error.code === 'queue-full',
      )
      await gate.open('now')
      for (const id of ids) assert.equal((await door.untilOver(id)).state, 'done')
      assert.equal((await door.untilOver(await door.accept('echo', 'again'))).state, 'done')
    })

    it('drops an event that is cancelled while it waits', async () => {
      const door = await start()
      const gate = door.newGate('gate')
      const one = await door.accept('waits', `${gate.path}\n`)
      await door.untilState(one, 'running')
      const two = await door.accept('waits', `${gate.path}\n`)
      const { state, code, attempts } = cancel(door, two)
      assert.deepEqual([state, code, attempts], ['dropped', 'event-cancelled', 0])
      await gate.open('only once')
      await door.untilOver(one)
      await door.untilOver(await door.accept('waits', `${gate.path}\n`))
      assert.equal((await door.answers()).match(/only once/g)?.length, 2)
    })

    it('stops the agent of an event that is cancelled while it runs', async () => {
      const door = await start()
      const id = await door.accept('waits', `${door.newGate('never').path}\n`)
      await door.untilState(id, 'running')
      cancel(door, id)
      const { state, stage, code } = await door.untilOver(id)
      assert.deepEqual([state, stage, code], ['failed', 'agent', 'event-cancelled'])
      const gate = door.newGate('next')
      await gate.open('the agent is free')
      assert.equal(
        (await door.untilOver(await door.accept('waits', `${gate.path}\n`))).state,
        'done',
      )
    })

    it('says why an agent has no answer, and runs it again', async () => {
      const door = await start()
      const delivery = { webhook: '/a', hash: 'h' }
      const id = await door.accept('fails', 'try', { delivery })
      const failed = await door.untilOver(id)
      assert.deepEqual(
        [failed.state, failed.stage, failed.code],
        ['failed', 'agent', 'agent-failed'],
      )
      assert.match(failed.detail ?? '', /it broke/)
      assert.equal(door.deliveries.eventFor(delivery, performance.now()), undefined)
      const event = door.kept.get(id)
      assert.ok(event)
      const agent = door.engine.config.agents.get('echo')
      assert.ok(agent)
      const webhook = { ...event.webhook, agentName: 'echo', agent }
      door.engine.runEvent.again(id, { ...event, webhook })
      const again = await door.until(id, ({ state }) => state === 'done')
      assert.deepEqual([again.attempts, again.resultPreview], [2, 'try'])
    })

    it('accepts a delivery again whose event has failed', async () => {
      const door = await start()
      const delivery = { webhook: '/a', hash: 'same' }
      await door.untilOver(await door.accept('fails', 'one', { delivery }))
      const id = await door.accept('echo', 'two', { delivery })
      assert.equal((await door.untilOver(id)).state, 'done')
    })

    it('replaces what waits by the newer event with its key', async () => {
      const door = await start()
      const coalesced: Coalesced = {
        group: 'g',
        since: Date.now(),
        quietMs: 0,
        atMostMs: 60_000,
        running: 'finish',
        rule: { path: '/a', name: undefined, maxRuns: undefined },
      }
      const gate = door.newGate('gate')
      const first = await door.accept('waits', `${gate.path}\n`, { coalesced })
      await door.untilState(first, 'running')
      const second = await door.accept('waits', `${gate.path}\n`, { coalesced })
      const third = await door.accept('waits', `${gate.path}\n`, { coalesced })
      const { state, code } = await door.untilOver(second)
      assert.deepEqual([state, code], ['filtered', 'superseded'])
      await gate.open('done')
      assert.equal((await door.untilOver(third)).state, 'done')
      assert.equal((await door.answers()).match(/done/g)?.length, 2)
    })

    it('cancels the run that a newer event replaces', async () => {
      const door = await start()
      const coalesced: Coalesced = {
        group: 'g',
        since: Date.now(),
        quietMs: 0,
        atMostMs: 60_000,
        running: 'cancel',
        rule: { path: '/a', name: undefined, maxRuns: undefined },
      }
      const first = await door.accept('waits', `${door.newGate('never').path}\n`, { coalesced })
      await door.untilState(first, 'running')
      const gate = door.newGate('gate')
      await gate.open('newer')
      const second = await door.accept('waits', `${gate.path}\n`, { coalesced })
      const { state, code } = await door.untilOver(first)
      assert.deepEqual([state, code], ['filtered', 'superseded'])
      assert.equal((await door.untilOver(second)).resultPreview, 'newer')
    })
  })
