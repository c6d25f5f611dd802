import assert from 'node:assert/strict'
import { createByteBudget } from '../../../daemon/util/byte-budget.ts'
import { EventQueue } from '../../../daemon/queue/event-queue.ts'
import type { Job } from '../../../daemon/queue/queue.ts'

type Limits = Partial<ConstructorParameters<typeof EventQueue>[0]> & { maxBytes?: number }

/** A queue whose jobs run until they are told to end; `log` says what happened in which order. */
const setUp = (limits: Limits = {}) => {
  const { maxEvents = 100, concurrency = 4, maxBytes = 1000, lastWaitMs = 10_000 } = limits
  const { withoutAgentMs = 60_000 } = limits
  const budget = createByteBudget(maxBytes)
  const queue = new EventQueue({
    maxEvents,
    concurrency,
    budget,
    lastWaitMs,
    withoutAgentMs,
  })
  const log: string[] = []
  const ends = new Map<string, () => void>()
  const job = (name: string, more: Partial<Job> = {}): Job => ({
    id: name,
    onlyDelivers: false,
    agentName: 'a',
    agentConcurrency: 1,
    bytes: 10,
    run: (signal) =>
      new Promise<void>((resolve) => {
        log.push(`run ${name}`)
        const end = () => {
          log.push(`end ${name}`)
          resolve()
        }
        ends.set(name, end)
        if (signal.aborted) end()
        signal.addEventListener('abort', () => {
          log.push(`stop ${name}`)
          end()
        })
      }),
    drop: () => log.push(`drop ${name}`),
    fail: () => log.push(`fail ${name}`),
    ...more,
  })
  const end = async (name: string) => {
    ends.get(name)?.()
    await turn()
  }
  return { budget, queue, log, job, end }
}

/** The queue starts jobs in a later turn, as the answer to the sender goes first. */
const turn = () => new Promise<void>((resolve) => void setImmediate(() => setImmediate(resolve)))

describe('the queue', () => {
  it('starts no job in the turn in which it was added', async () => {
    const { queue, log, job } = setUp()
    queue.add(job('1'))
    await Promise.resolve()
    assert.deepEqual([log, queue.counts()], [[], { waiting: 1, running: 0 }])
    await turn()
    assert.deepEqual([log, queue.counts()], [['run 1'], { waiting: 0, running: 1 }])
  })

  it('runs no more at once than the limit over all agents', async () => {
    const { queue, log, job, end } = setUp({ concurrency: 2 })
    for (const name of ['a', 'b', 'c']) queue.add(job(name, { agentName: name }))
    await turn()
    assert.deepEqual(log, ['run a', 'run b'])
    await end('b')
    assert.deepEqual(log, ['run a', 'run b', 'end b', 'run c'])
  })

  it('starts no idle agent before one that has waited longer', async () => {
    const { queue, log, job, end } = setUp({ concurrency: 1 })
    queue.add(job('a1'))
    await turn()
    queue.add(job('b1', { agentName: 'b' }))
    queue.add(job('a2'))
    await end('a1')
    await end('b1')
    assert.deepEqual(log, ['run a1', 'end a1', 'run b1', 'end b1', 'run a2'])
  })

  it('lets no busy agent starve another', async () => {
    const { queue, log, job, end } = setUp({ concurrency: 1 })
    for (const name of ['a1', 'a2', 'a3']) queue.add(job(name, { agentName: 'a' }))
    queue.add(job('b1', { agentName: 'b' }))
    await turn()
    await end('a1')
    assert.deepEqual(log, ['run a1', 'end a1', 'run b1'])
  })

  it('starts the next job when the agent of the first is done, and waits for both', async () => {
    const { queue, log, job } = setUp({ concurrency: 1 })
    const delivered: (() => void)[] = []
    const delivering = (name: string) =>
      job(name, {
        run: (_, agentIsDone) => {
          log.push(`run ${name}`)
          agentIsDone()
          return new Promise<void>((resolve) => void delivered.push(resolve))
        },
      })
    queue.add(delivering('1'))
    queue.add(delivering('2'))
    await turn()
    assert.deepEqual([log, queue.counts()], [['run 1', 'run 2'], { waiting: 0, running: 2 }])
    let isDrained = false
    const drained = queue.drain(60_000).then(() => (isDrained = true))
    delivered[0]?.()
    await turn()
    assert.deepEqual([isDrained, queue.counts().running], [false, 1])
    delivered[1]?.()
    await drained
  })

  it('starts nothing more while too many answers are being delivered', async () => {
    const { queue, job, end } = setUp({ concurrency: 1 })
    const ends: (() => void)[] = []
    for (let place = 0; place < 30; place += 1)
      queue.add(
        job(String(place), {
          run: (_, agentIsDone) => {
            agentIsDone()
            return new Promise<void>((resolve) => void ends.push(resolve))
          },
        }),
      )
    for (let turns = 0; turns < 40; turns += 1) await turn()
    // Sixteen without an agent, and one that keeps it.
    assert.deepEqual(queue.counts(), { waiting: 13, running: 17 })
    ends.at(-1)?.()
    await end('none')
    assert.deepEqual(queue.counts(), { waiting: 12, running: 17 })
    // One that goes on without an agent ends: the one that keeps its own lets it go instead.
    ends.shift()?.()
    await turn()
    assert.deepEqual(queue.counts(), { waiting: 11, running: 17 })
    while (queue.counts().running > 0) {
      for (const endOne of ends.splice(0)) endOne()
      await turn()
    }
  })

  it('is not blocked for long by slow deliveries', async () => {
    const { queue, job } = setUp({ concurrency: 1, withoutAgentMs: 50 })
    const ends: (() => void)[] = []
    const all = new Promise<void>((resolve) => {
      for (let place = 0; place < 60; place += 1)
        queue.add(
          job(String(place), {
            run: (_, agentIsDone) => {
              agentIsDone()
              if (place === 59) resolve()
              return new Promise<void>((done) => void ends.push(done))
            },
          }),
        )
    })
    await all
    assert.deepEqual(queue.counts(), { waiting: 0, running: 60 })
    for (const end of ends) end()
    await queue.drain()
    assert.deepEqual(queue.counts(), { waiting: 0, running: 0 })
  })

  it('refuses a job that could never fit', () => {
    const { queue, budget, job } = setUp({ maxBytes: 25 })
    assert.throws(() => queue.add(job('1', { bytes: 26 })), {
      code: 'body-too-large',
      localDetail: 'the prompt has 26 bytes, and queue.max_bytes is less',
    })
    assert.equal(budget.used(), 0)
    queue.add(job('2', { bytes: 25 }))
  })

  it('limits the bytes of waiting jobs, and frees them when a job starts', async () => {
    const { queue, budget, job } = setUp({ maxBytes: 25 })
    queue.add(job('1'))
    queue.add(job('2'))
    assert.throws(() => queue.add(job('3')), { code: 'queue-full' })
    assert.equal(budget.used(), 20)
    await turn()
    assert.equal(budget.used(), 10)
    assert.equal(queue.counts().waiting, 1)
  })

  it('drains: finishes what waits and runs, and accepts no more', async () => {
    const { queue, log, job, end, budget } = setUp()
    queue.add(job('1'))
    queue.add(job('2'))
    const drained = queue.drain(60_000)
    assert.throws(() => queue.add(job('3')), { code: 'stopping' })
    await turn()
    await end('1')
    await end('2')
    await drained
    assert.deepEqual(log, ['run 1', 'end 1', 'run 2', 'end 2'])
    assert.equal(budget.used(), 0)
  })

  it('drains immediately when it is empty', async () => {
    const { queue } = setUp()
    await queue.drain(60_000)
    assert.deepEqual(queue.counts(), { waiting: 0, running: 0 })
  })

  it('drops what waits and stops what runs when the drain takes too long', async () => {
    const { queue, log, job, budget } = setUp()
    queue.add(job('1'))
    queue.add(job('2'))
    queue.add(job('other', { agentName: 'b' }))
    await turn()
    await queue.drain(1)
    assert.deepEqual(log, [
      'run 1',
      'run other',
      'drop 2',
      'stop 1',
      'end 1',
      'stop other',
      'end other',
    ])
    assert.deepEqual([budget.used(), queue.counts()], [0, { waiting: 0, running: 0 }])
  })

  it('stops a drain when it is aborted, and drops each job once', async () => {
    const { queue, log, job } = setUp()
    queue.add(job('1'))
    queue.add(job('2'))
    await turn()
    const drained = queue.drain(60_000)
    queue.abort()
    queue.abort()
    await drained
    assert.deepEqual(log, ['run 1', 'drop 2', 'stop 1', 'end 1'])
  })

  it('finishes a drain though a job never ends', async () => {
    for (const how of ['in time', 'aborted']) {
      const { queue, job } = setUp({ lastWaitMs: 5 })
      queue.add(job('1', { run: () => new Promise(() => undefined) }))
      await turn()
      const drained = queue.drain(how === 'aborted' ? 60_000 : 1)
      if (how === 'aborted') queue.abort()
      await drained
      assert.equal(queue.counts().running, 1)
    }
  })

  it('drops a running job that does not end', async () => {
    const { queue, log, job } = setUp({ lastWaitMs: 10 })
    const never = () => new Promise<void>(() => undefined)
    queue.add(job('1', { run: never, drop: () => log.push('drop 1') }))
    await turn()
    await queue.drain(1)
    assert.deepEqual(log, ['drop 1'])
  })

  it('ends a drain whose last job is cancelled', async () => {
    const { queue, log, job } = setUp()
    queue.share({ of: () => 1, agents: () => 0, events: () => 0 })
    queue.add(job('1'))
    const drained = queue.drain()
    queue.cancel('1')
    await drained
    assert.deepEqual(log, ['drop 1'])
  })

  it('uses new limits as soon as they are set', async () => {
    const { queue, log, job } = setUp({ maxEvents: 1, concurrency: 1 })
    queue.add(job('1', { agentConcurrency: 5 }))
    await turn()
    queue.add(job('2', { agentConcurrency: 5 }))
    assert.throws(() => queue.add(job('3')), { code: 'queue-full' })
    queue.resize({ maxEvents: 3, concurrency: 2 })
    await turn()
    assert.deepEqual(log, ['run 1', 'run 2'])
    for (const name of ['3', '4', '5']) queue.add(job(name))
    queue.resize({ maxEvents: 1, concurrency: 1 })
    assert.throws(() => queue.add(job('6')), { code: 'queue-full' })
    assert.deepEqual(queue.counts(), { waiting: 3, running: 2 })
  })

  it('starts the next job after one that failed', async () => {
    const { queue, log, job } = setUp()
    queue.add(job('1', { run: async () => void log.push('bad') }))
    queue.add(job('2'))
    await turn()
    await turn()
    assert.deepEqual(log, ['bad', 'run 2'])
  })

  it('starts nothing while it is paused, and all of it afterwards', async () => {
    const { queue, log, job, end } = setUp()
    queue.add(job('1'))
    await turn()
    queue.add(job('2'))
    assert.deepEqual(
      queue.pause().map(({ id }) => id),
      ['2'],
    )
    await end('1')
    queue.add(job('3'))
    await turn()
    assert.deepEqual([log, queue.counts()], [['run 1', 'end 1'], { waiting: 2, running: 0 }])
    queue.resume()
    await turn()
    await end('2')
    assert.deepEqual(log, ['run 1', 'end 1', 'run 2', 'end 2', 'run 3'])
  })

  it('leaves to another process what it takes, and runs the rest', async () => {
    const { queue, log, job, end, budget } = setUp()
    queue.add(job('1'))
    await turn()
    queue.add(job('2'))
    queue.pause()
    queue.add(job('3'))
    queue.handOver(new Set(['2']))
    await end('1')
    await turn()
    assert.deepEqual(
      [log, queue.counts()],
      [['run 1', 'end 1', 'run 3'], { waiting: 0, running: 1 }],
    )
    const drained = queue.drain(60_000)
    await end('3')
    await drained
    assert.deepEqual([log.at(-1), budget.used()], ['end 3', 0])
  })

  it('takes what another process has accepted though it is full', async () => {
    const { queue, log, job, budget } = setUp({ maxEvents: 1, maxBytes: 15 })
    queue.add(job('1'))
    queue.addAccepted(job('2', { agentName: 'b' }))
    assert.equal(queue.counts().waiting, 2)
    await turn()
    assert.deepEqual([log, budget.used()], [['run 1', 'run 2'], 0])
  })
})
