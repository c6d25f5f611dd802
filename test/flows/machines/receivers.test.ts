import assert from 'node:assert/strict'
import type { EventDetail, EventRecord } from '../../../shared/api/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { newQueueKey, startMachine } from '../../support/daemon/machines.ts'
import { type Reports, startReports } from '../../support/daemon/reports.ts'
import { stopHome, untilExit } from '../../support/daemon/restart.ts'
import { send } from '../../support/servers/http.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'
import { startTargetServer, type TargetServer } from '../../support/servers/target-server.ts'

describe('a receiver that is killed, and one beside another', () => {
  const key = newQueueKey()
  let broker: Broker
  let reports: Reports
  let target: TargetServer
  let worker: RunningDaemon
  const receivers: RunningDaemon[] = []

  const agents = (command: string) => `
agents:
  echo: { kind: echo }
  slow: { kind: command, command: ${command}, concurrency: 4 }
`
  const startReceiver = async (home?: RunningDaemon['home']): Promise<RunningDaemon> => {
    const receiver = await startMachine({
      servers: broker.url,
      key,
      role: 'receiver',
      ...(home && { home }),
      env: `BACK_SECRET=whsec_${Buffer.alloc(32, 7).toString('base64')}\n`,
      gateway: `targets: { http: { back: { url: "${target.origin}", secret_env: BACK_SECRET } } }\n`,
      agents: agents('["false"]'),
      webhooks: `
webhooks:
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}", deliver_to: "http:back" }
  - { path: /a, agent: echo, prompt_template: "{{event.name}}", deliver_to: "http:back" }
  - path: /newest
    agent: echo
    prompt_template: "{{event.name}}"
    deliver_to: "http:back"
    coalesce: { key: all, quiet: 3s }
`,
    })
    receivers.push(receiver)
    return receiver
  }
  before(async () => {
    broker = await startBroker()
    reports = await startReports()
    target = await startTargetServer()
    worker = await startMachine({
      servers: broker.url,
      key,
      role: 'worker',
      agents: agents(reports.command),
    })
  })
  afterEach(async () => {
    for (const { home, client } of receivers.splice(0)) {
      client.close()
      await stopHome(home).catch(() => undefined)
    }
    target.requests.splice(0)
  })
  after(async () => {
    assert.equal(await worker.stop(), 0)
    await broker.stop()
    reports.close()
    target.close()
  })

  const accepted = async (url: string, path: string, name: string): Promise<string> => {
    const headers = {
      'content-type': 'application/json',
      'x-github-delivery': name,
    }
    const reply = await send(`${url}${path}`, {
      headers,
      body: JSON.stringify({ name }),
    })
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const delivered = () => target.requests.map(({ text }) => text)
  const startAgain = async ({ home }: RunningDaemon) => {
    const daemon = await startDaemon({
      home,
      variables: { NATS_URL: broker.url, DOORWARD_QUEUE_KEY: key },
    })
    receivers.push(daemon)
    return daemon
  }

  it('delivers, after kill -9 and another start, what it had accepted', async () => {
    const old = await startReceiver()
    const running = await accepted(old.url, '/slow', 'ran at the kill')
    const report = await reports.next()
    old.process.kill('SIGKILL')
    await untilExit(old)
    const now = await startAgain(old)
    const followed = await followEvents(now)
    report.release()
    const record = await followed.next(({ id, state }) => id === running && state === 'done')
    followed.close()
    assert.equal(record.webhook, '/slow')
    const { result } = await now.client.get<EventDetail>(`/events/${running}`)
    assert.equal(result, 'answer to ran at the kill')
    assert.equal(delivered().length, 1)
    assert.match(delivered()[0] ?? '', /answer to ran at the kill/)
  })

  it('has again, after kill -9 and another start, what waited for a newer event', async () => {
    const old = await startReceiver()
    await accepted(old.url, '/newest', 'first')
    const second = await accepted(old.url, '/newest', 'second')
    old.process.kill('SIGKILL')
    await untilExit(old)
    const now = await startAgain(old)
    const third = await accepted(now.url, '/newest', 'third')
    const { state, code, detail } = await now.client.get<EventDetail>(`/events/${second}`)
    assert.deepEqual([state, code], ['filtered', 'superseded'])
    assert.match(detail ?? '', new RegExp(`: ${third}$`))
    assert.equal((await untilFinished(now, third)).result, 'third')
    assert.equal(delivered().length, 1)
    assert.match(delivered()[0] ?? '', /third/)
  })

  it('delivers what was answered while it was down', async () => {
    const old = await startReceiver()
    const id = await accepted(old.url, '/slow', 'answered meanwhile')
    const report = await reports.next()
    old.process.kill('SIGKILL')
    await untilExit(old)
    const ended = await followEvents(worker)
    report.release()
    await ended.next(({ state }) => state === 'done')
    ended.close()
    const now = await startAgain(old)
    const event = await untilKnown(now, id)
    assert.equal(event.state, 'done')
    assert.equal(delivered().length, 1)
  })

  it('has the answers of its own events alone, with another receiver at its side', async () => {
    const [one, other] = [await startReceiver(), await startReceiver()]
    const ids = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const receiver = n % 2 === 0 ? one : other
        return {
          receiver,
          name: `number ${n}`,
          id: await accepted(receiver.url, '/a', `number ${n}`),
        }
      }),
    )
    for (const { receiver, id, name } of ids) {
      const { state, result } = await untilFinished(receiver, id)
      assert.deepEqual([state, result], ['done', name])
    }
    assert.equal(delivered().length, 20)
    for (const receiver of [one, other]) {
      const { events } = await receiver.client.get<{ events: EventRecord[] }>('/events?webhook=/a')
      assert.equal(events.length, 10)
    }
  })
})

/** The end of an event that a receiver does not know yet. */
const untilKnown = async (daemon: RunningDaemon, id: string): Promise<EventRecord> => {
  const followed = await followEvents(daemon)
  try {
    const now = await daemon.client.get<EventRecord>(`/events/${id}`).catch(() => undefined)
    if (now?.state === 'done') return now
    return await followed.next((record) => record.id === id && record.state === 'done')
  } finally {
    followed.close()
  }
}
