import assert from 'node:assert/strict'
import type { EventRecord } from '../../../shared/api/api.ts'
import { type RunningDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { type Followed, followEvents } from '../../support/daemon/events.ts'
import { newQueueKey, startMachine } from '../../support/daemon/machines.ts'
import { type Report, type Reports, startReports } from '../../support/daemon/reports.ts'
import { send } from '../../support/servers/http.ts'
import { type Broker, startBroker } from '../../support/servers/nats.ts'

describe('a machine or a connection that is lost', () => {
  const key = newQueueKey()
  let broker: Broker
  let reports: Reports
  let receiver: RunningDaemon
  let followed: Followed
  const workers = new Map<string, RunningDaemon>()

  const agents = (command: string) =>
    `agents:\n  slow: { kind: command, command: ${command}, concurrency: 2 }\n`
  const startWorker = async (name: string) => {
    const worker = await startMachine({
      servers: broker.url,
      key,
      lostAfter: '2s',
      role: 'worker',
      agents: agents(reports.named(name)),
    })
    workers.set(name, worker)
    return worker
  }
  const endWorker = async (name: string): Promise<void> => {
    const worker = workers.get(name)
    workers.delete(name)
    worker?.process.kill('SIGCONT')
    worker?.process.kill('SIGKILL')
    await worker?.stop()
  }
  before(async () => {
    broker = await startBroker()
    reports = await startReports()
    receiver = await startMachine({
      servers: broker.url,
      key,
      lostAfter: '2s',
      role: 'receiver',
      agents: agents('["false"]'),
      webhooks: `
webhooks:
  - { path: /slow, agent: slow, prompt_template: "{{event.name}}" }
  - { path: /newest, agent: slow, prompt_template: x, coalesce: { key: all, quiet: 1h } }
`,
    })
    followed = await followEvents(receiver)
  })
  after(async () => {
    followed.close()
    for (const worker of workers.values()) await worker.stop()
    assert.equal(await receiver.stop(), 0)
    await broker.stop()
    reports.close()
  })
  afterEach(async () => {
    for (const name of workers.keys()) await endWorker(name)
  })

  const post = async (name: string, path = '/slow') => {
    const headers = {
      'content-type': 'application/json',
      'x-github-delivery': name,
    }
    return send(`${receiver.url}${path}`, {
      headers,
      body: JSON.stringify({ name }),
    })
  }
  const accepted = async (name: string): Promise<string> => {
    const reply = await post(name)
    assert.equal(reply.status, 202, reply.text)
    return String(reply.json()['id'])
  }
  const finished = async (id: string) => {
    const { state, result } = await untilFinished(receiver, id)
    return [state, result]
  }
  const isMarked = ({ state, attempts, detail }: EventRecord): boolean =>
    state === 'running' && attempts === 2 && /may have run before/.test(detail ?? '')
  /** A run of this worker; others of that name are released. */
  const runOf = async (name: string): Promise<Report> => {
    const report = await reports.next()
    assert.equal(report.name, name)
    return report
  }

  it('leaves a run that takes longer than that with its worker', async () => {
    await startWorker('first')
    const id = await accepted('long')
    const report = await runOf('first')
    // At a third of the time each.
    const extensions = () => broker.log().split('"+WPI"').length - 1
    const before = extensions()
    while (extensions() < before + 4) await new Promise((resolve) => setTimeout(resolve, 50))
    report.release()
    const { state, attempts, machine } = await untilFinished(receiver, id)
    assert.deepEqual([state, attempts, reports.unread()], ['done', 1, 0])
    assert.ok(machine)
  })

  it('runs again elsewhere, marked, what a killed worker had', async () => {
    await startWorker('first')
    const id = await accepted('killed')
    await runOf('first')
    await endWorker('first')
    await startWorker('second')
    const again = await runOf('second')
    await followed.next((record) => record.id === id && isMarked(record))
    again.release()
    assert.deepEqual(await finished(id), ['done', 'answer to killed'])
  })

  it('runs again elsewhere, marked, what a paused worker had, and delivers one answer', async () => {
    const first = await startWorker('first')
    const id = await accepted('paused')
    const report = await runOf('first')
    first.process.kill('SIGSTOP')
    await startWorker('second')
    const again = await runOf('second')
    await followed.next((record) => record.id === id && isMarked(record))
    again.release()
    assert.deepEqual(await finished(id), ['done', 'answer to paused'])
    report.release()
    first.process.kill('SIGCONT')
    // It takes part again.
    await endWorker('second')
    const next = await accepted('after the pause')
    ;(await runOf('first')).release()
    assert.deepEqual(await finished(next), ['done', 'answer to after the pause'])
    assert.equal((await receiver.client.get<EventRecord>(`/events/${id}`)).attempts, 2)
  })

  it('is answered 503 while the broker is down, and takes what waited after its restart', async () => {
    const waiting = [await accepted('waits'), await accepted('waits too')]
    await broker.kill()
    const refused = await post('refused')
    assert.equal(refused.status, 503)
    assert.ok(Number(refused.headers['retry-after']) > 0)
    // Also for a rule with `coalesce`, whose event would wait.
    assert.equal((await post('waits for a newer one', '/newest')).status, 503)
    await broker.start()
    await startWorker('first')
    const runs = [await runOf('first'), await runOf('first')]
    assert.deepEqual(runs.map(({ prompt }) => prompt).toSorted(), ['waits', 'waits too'])
    for (const { release } of runs) release()
    for (const id of waiting) assert.equal((await untilFinished(receiver, id)).state, 'done')
    // Its sender tries again.
    const id = await accepted('refused')
    ;(await runOf('first')).release()
    assert.deepEqual(await finished(id), ['done', 'answer to refused'])
  })

  it('keeps the answer of a run that ends while the broker is down', async () => {
    await startWorker('first')
    const id = await accepted('meanwhile')
    const report = await runOf('first')
    await broker.kill()
    report.release()
    await broker.start()
    assert.deepEqual(await finished(id), ['done', 'answer to meanwhile'])
    assert.equal(reports.unread(), 0)
  })
})
