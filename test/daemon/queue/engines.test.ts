import assert from 'node:assert/strict'
import { DoorwardError } from '../../../shared/errors.ts'
import { cancelEvent } from '../../../daemon/webhook/events/control.ts'
import type { Coalesced } from '../../../daemon/webhook/rules/groups.ts'
import { startModelServer } from '../../support/servers/model-server.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import {
  newKey,
  startTestMachine,
  type TestMachine,
  type TestMachineOptions,
  untilTrue,
} from '../../support/queue/engines.ts'

/** A receiver, and what runs its agents: itself, or a worker. */
const engines = {
  memory: async (options: TestMachineOptions) => ({
    receiver: await startTestMachine(options),
    worker: undefined,
  }),
  nats: async (options: TestMachineOptions, broker: Broker) => {
    const shared = { ...options, servers: broker.url, key: newKey() }
    const receiver = await startTestMachine({ ...shared, role: 'receiver' })
    const worker = await startTestMachine({ ...shared, role: 'worker' })
    await untilTrue(() => receiver.isConnected() && worker.isConnected())
    return { receiver, worker }
  },
}

for (const name of ['memory', 'nats'] as const)
  describe(`a queue (${name})`, () => {
    let broker: Broker | undefined
    let machines: TestMachine[] = []

    const start = async (options: TestMachineOptions = {}): Promise<TestMachine> => {
      broker = name === 'nats' ? await startBroker() : undefined
      const { receiver, worker } = broker
        ? await engines.nats(options, broker)
        : await engines.memory(options)
      machines = worker ? [receiver, worker] : [receiver]
      return receiver
    }
    const cancel = (receiver: TestMachine, id: string) => {
      const { events } = receiver.memory
      return cancelEvent(id, {
        events,
        queue: receiver.queue,
        approvals: { cancel: () => false },
      })
    }
    afterEach(async () => {
      await Promise.all(machines.map(async (machine) => machine.stop()))
      await broker?.stop()
    })

    it('runs the agent of an event, and delivers its answer', async () => {
      const receiver = await start()
      const id = await receiver.accept('echo', 'hello')
      assert.equal(receiver.memory.events.get(id)?.prompt, 'hello')
      const record = await receiver.untilOver(id)
      const { state, attempts, resultPreview, targets, durations } = record
      assert.deepEqual([state, attempts, resultPreview], ['done', 1, 'hello'])
      assert.equal(targets[0]?.state, 'done')
      assert.deepEqual(Object.keys(durations).toSorted(), ['agentMs', 'deliverMs', 'queuedMs'])
      assert.match(await receiver.answers(), /hello/)
      assert.equal(receiver.kept.get(id), undefined)
    })

    it('gives the agent the payload in a file', async () => {
      const receiver = await start({
        agents:
          '  reads: { kind: command, command: [sh, -c, \'cat "$DOORWARD_EVENT_FILE"\'], event_file: true }\n',
      })
      const id = await receiver.accept('reads', 'look', { payload: Buffer.from('{"a":"ü"}') })
      assert.equal((await receiver.untilOver(id)).resultPreview, '{"a":"ü"}')
    })

    it('records and counts what its model used, also of a run that failed', async () => {
      const model = await startModelServer()
      const settings = `kind: openai, base_url: "${model.origin}/v1", model: a-model`
      const receiver = await start({ agents: `  asks: { ${settings} }\n` })
      const run = async (text: string) => {
        model.behave({ kind: 'answers', text })
        const { state, usage } = await receiver.untilOver(await receiver.accept('asks', 'hello'))
        return [state, usage]
      }
      const usage = { inputTokens: 1, outputTokens: 1, model: 'fake-model' }
      assert.deepEqual(await run('yes'), ['done', usage])
      assert.deepEqual(await run(''), ['failed', usage])
      // Where it was received, once.
      const counted = machines.map(({ memory }) => memory.usage.spent({ agent: 'asks' }).day)
      const sum = { runs: 2, inputTokens: 2, outputTokens: 2, cachedTokens: 0 }
      assert.deepEqual(counted[0], sum)
      assert.ok(counted.slice(1).every(({ runs }) => runs === 0))
      model.close()
    })

    it('runs no more of an agent at once than it allows, in their order', async () => {
      const receiver = await start()
      const [first, second] = [receiver.newGate('first'), receiver.newGate('second')]
      const one = await receiver.accept('waits', `${first.path}\n`)
      await receiver.untilState(one, 'running')
      const two = await receiver.accept('waits', `${second.path}\n`)
      await second.open('second')
      assert.equal(
        (await receiver.untilOver(await receiver.accept('echo', 'beside'))).state,
        'done',
      )
      assert.equal(receiver.memory.events.record(two)?.state, 'queued')
      await first.open('first')
      await receiver.untilOver(two)
      assert.match(await receiver.answers(), /first[^]*second/)
    })

    it('refuses with queue-full, and takes more when there is room', async () => {
      const receiver = await start({ maxEvents: 2 })
      const gate = receiver.newGate('gate')
      const ids = [await receiver.accept('waits', `${gate.path}\n`)]
      await receiver.untilState(ids[0] ?? '', 'running')
      await assert.rejects(
        async () => {
          for (let more = 0; more < 3; more += 1)
            ids.push(await receiver.accept('waits', `${gate.path}\n`))
        },
        (error) => error instanceof DoorwardError && error.code === 'queue-full',
      )
      await gate.open('now')
      for (const id of ids) assert.equal((await receiver.untilOver(id)).state, 'done')
      assert.equal((await receiver.untilOver(await receiver.accept('echo', 'again'))).state, 'done')
    })

    it('drops an event that is cancelled while it waits', async () => {
      const receiver = await start()
      const gate = receiver.newGate('gate')
      const one = await receiver.accept('waits', `${gate.path}\n`)
      await receiver.untilState(one, 'running')
      const two = await receiver.accept('waits', `${gate.path}\n`)
      const { state, code, attempts } = cancel(receiver, two)
      assert.deepEqual([state, code, attempts], ['dropped', 'event-cancelled', 0])
      await gate.open('only once')
      await receiver.untilOver(one)
      await receiver.untilOver(await receiver.accept('waits', `${gate.path}\n`))
      assert.equal((await receiver.answers()).match(/only once/g)?.length, 2)
    })

    it('stops the agent of an event that is cancelled while it runs', async () => {
      const receiver = await start()
      const id = await receiver.accept('waits', `${receiver.newGate('never').path}\n`)
      await receiver.untilState(id, 'running')
      cancel(receiver, id)
      const { state, stage, code } = await receiver.untilOver(id)
      assert.deepEqual([state, stage, code], ['failed', 'agent', 'event-cancelled'])
      const gate = receiver.newGate('next')
      await gate.open('the agent is free')
      assert.equal(
        (await receiver.untilOver(await receiver.accept('waits', `${gate.path}\n`))).state,
        'done',
      )
    })

    it('says why an agent has no answer, and runs it again', async () => {
      const receiver = await start()
      const delivery = { webhook: '/a', hash: 'h' }
      const id = await receiver.accept('fails', 'try', { delivery })
      const failed = await receiver.untilOver(id)
      assert.deepEqual(
        [failed.state, failed.stage, failed.code],
        ['failed', 'agent', 'agent-failed'],
      )
      assert.match(failed.detail ?? '', /it broke/)
      assert.equal(receiver.deliveries.eventFor(delivery, performance.now()), undefined)
      const event = receiver.kept.get(id)
      assert.ok(event)
      const agent = receiver.engine.config.agents.get('echo')
      assert.ok(agent)
      const webhook = { ...event.webhook, agentName: 'echo', agent }
      receiver.engine.runEvent.again(id, { ...event, webhook })
      const again = await receiver.until(id, ({ state }) => state === 'done')
      assert.deepEqual([again.attempts, again.resultPreview], [2, 'try'])
    })

    it('accepts a delivery again whose event has failed', async () => {
      const receiver = await start()
      const delivery = { webhook: '/a', hash: 'same' }
      await receiver.untilOver(await receiver.accept('fails', 'one', { delivery }))
      const id = await receiver.accept('echo', 'two', { delivery })
      assert.equal((await receiver.untilOver(id)).state, 'done')
    })

    it('replaces what waits by the newer event with its key', async () => {
      const receiver = await start()
      const coalesced: Coalesced = {
        group: 'g',
        since: Date.now(),
        quietMs: 0,
        atMostMs: 60_000,
        running: 'finish',
        rule: { path: '/a', name: undefined, maxRuns: undefined },
      }
      const gate = receiver.newGate('gate')
      const first = await receiver.accept('waits', `${gate.path}\n`, { coalesced })
      await receiver.untilState(first, 'running')
      const second = await receiver.accept('waits', `${gate.path}\n`, { coalesced })
      const third = await receiver.accept('waits', `${gate.path}\n`, { coalesced })
      const { state, code } = await receiver.untilOver(second)
      assert.deepEqual([state, code], ['filtered', 'superseded'])
      await gate.open('done')
      assert.equal((await receiver.untilOver(third)).state, 'done')
      assert.equal((await receiver.answers()).match(/done/g)?.length, 2)
    })

    it('cancels the run that a newer event replaces', async () => {
      const receiver = await start()
      const coalesced: Coalesced = {
        group: 'g',
        since: Date.now(),
        quietMs: 0,
        atMostMs: 60_000,
        running: 'cancel',
        rule: { path: '/a', name: undefined, maxRuns: undefined },
      }
      const first = await receiver.accept('waits', `${receiver.newGate('never').path}\n`, {
        coalesced,
      })
      await receiver.untilState(first, 'running')
      const gate = receiver.newGate('gate')
      await gate.open('newer')
      const second = await receiver.accept('waits', `${gate.path}\n`, { coalesced })
      const { state, code } = await receiver.untilOver(first)
      assert.deepEqual([state, code], ['filtered', 'superseded'])
      assert.equal((await receiver.untilOver(second)).resultPreview, 'newer')
    })
  })
