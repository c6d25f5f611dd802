import assert from 'node:assert/strict'
import type { EventDetail } from '../../../shared/api/api.ts'
import { connect } from '../../../shared/client/client.ts'
import type { RunningDaemon } from '../../support/daemon/daemon.ts'
import { newQueueKey, startMachine, type MachineOptions } from '../../support/daemon/machines.ts'
import { restart, stopHome } from '../../support/daemon/restart.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { send } from '../../support/servers/http.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'

describe('machines that are restarted', () => {
  let broker: Broker
  let reports: Reports
  let key: string
  const machines: RunningDaemon[] = []

  const start = async (
    role: MachineOptions['role'],
    command = '["false"]',
  ): Promise<RunningDaemon> => {
    const machine = await startMachine({
      servers: broker.url,
      key,
      role,
      agents: `agents:\n  slow: { kind: command, command: ${command} }\n`,
      webhooks: 'webhooks:\n  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }\n',
    })
    machines.push(machine)
    return machine
  }
  const accepted = async ({ url }: RunningDaemon, name: string): Promise<string> => {
    const headers = { 'content-type': 'application/json', 'x-github-delivery': name }
    const reply = await send(`${url}/slow`, { headers, body: JSON.stringify({ name }) })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  /** The event as soon as it is like this, from the daemon that serves. */
  const until = async (
    { home }: RunningDaemon,
    id: string,
    isIt: (event: EventDetail) => boolean,
  ): Promise<EventDetail> => {
    const client = await connect(home)
    try {
      for (;;) {
        const event = await client.get<EventDetail>(`/events/${id}`)
        if (isIt(event)) return event
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    } finally {
      client.close()
    }
  }
  const untilDone = async (machine: RunningDaemon, id: string) => {
    const { state, attempts, result } = await until(machine, id, ({ state }) =>
      ['done', 'failed', 'dropped', 'duplicate'].includes(state),
    )
    return [state, attempts, result]
  }
  beforeEach(async () => {
    broker = await startBroker()
    reports = await startReports()
    key = newQueueKey()
  })
  afterEach(async () => {
    for (const { home } of machines.splice(0)) await stopHome(home).catch(() => undefined)
    reports.close()
    await broker.stop()
  })

  for (const which of ['receiver', 'worker', 'both'] as const)
    it(`run each event once, whole, over a restart of the ${which}`, async () => {
      const receiver = await start(which === 'both' ? 'both' : 'receiver', reports.command)
      const worker = which === 'both' ? receiver : await start('worker', reports.command)
      const running = await accepted(receiver, 'running')
      const report = await reports.next()
      const waiting = await accepted(receiver, 'waiting')
      await until(receiver, running, ({ state }) => state === 'running')
      await restart((which === 'worker' ? worker : receiver).client)
      report.release()
      const second = await reports.next()
      assert.equal(second.prompt, 'waiting')
      second.release()
      assert.deepEqual(await untilDone(receiver, running), ['done', 1, 'answer to running'])
      assert.deepEqual(await untilDone(receiver, waiting), ['done', 1, 'answer to waiting'])
      assert.equal(reports.unread(), 0)
    })

  it('run what waited when the receiver is restarted while the broker is down', async () => {
    const receiver = await start('receiver')
    const id = await accepted(receiver, 'waits')
    await broker.kill()
    await restart(receiver.client)
    await broker.start()
    await start('worker', reports.command)
    ;(await reports.next()).release()
    assert.deepEqual(await untilDone(receiver, id), ['done', 1, 'answer to waits'])
  })
})
