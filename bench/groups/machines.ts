import { setTimeout as wait } from 'node:timers/promises'
import { deliveryOf } from '../load/delivery.ts'
import { postAtPace } from '../load/pace.ts'
import { createSender } from '../load/sender.ts'
import { memoryOf, processorMs } from '../process-stat.ts'
import { quantile } from '../quantile.ts'
import type { Column, Note } from '../report/sample.ts'
import { type Doorward, startDoorward } from '../servers/doorward.ts'
import { shared, startMachines } from '../servers/machines.ts'

const row = '1,000 posts of 24 KB a second, all run'

/**
 * The same pace for a daemon with its queue in memory, and for a receiver, a broker and two workers, one after
 * the other: answers, how long after the last post everything has run, and the memory of each process.
 */
export const measureMachines = async (
  { seconds }: { readonly seconds: number },
  note: Note,
): Promise<void> => {
  const first = await deliveryOf('24 KB')
  const alone = await startDoorward({
    ...shared,
    first,
    gateway: `queue: { ${shared.queue} }\n`,
  })
  try {
    await measure('doorward', alone, seconds, note)
  } finally {
    await alone.stop()
  }
  const machines = await startMachines(first)
  try {
    const { receiver, broker, workers } = machines
    const column = 'over NATS'
    const before = [await usedBy([broker]), await usedBy(workers)] as const
    const count = await measure(column, receiver, seconds, note)
    const used = [await usedBy([broker]), await usedBy(workers)] as const
    const each = (index: 0 | 1) => ((used[index] - before[index]) * 1000) / count
    note({ row, measure: 'broker, CPU µs each', column, value: each(0) })
    note({ row, measure: 'workers, CPU µs each', column, value: each(1) })
    note({ row, measure: 'broker, peak MB', column, value: (await memoryOf(broker)).peak })
    const peaks = await Promise.all(workers.map(async (pid) => (await memoryOf(pid)).peak))
    note({ row, measure: 'worker, peak MB', column, value: Math.max(...peaks) })
  } finally {
    await machines.stop()
  }
}

const usedBy = async (pids: readonly number[]): Promise<number> =>
  (await Promise.all(pids.map(processorMs))).reduce((sum, ms) => sum + ms, 0)

/** Resolves with how many were posted. */
const measure = async (
  column: Column,
  { origin, authorized, pid }: Doorward,
  seconds: number,
  note: Note,
): Promise<number> => {
  const sender = createSender(`${origin}/webhook/machines`, await deliveryOf('24 KB'))
  // Connections are there, and the code is compiled, before the time counts.
  const warm = await postAtPace(sender, { perSecond: 200, seconds: 1 })
  const before = await processorMs(pid)
  const answers = await postAtPace(sender, { perSecond: 1000, seconds })
  const sentAt = performance.now()
  const accepted = await untilAllDone(origin, authorized)
  const lateMs = performance.now() - sentAt
  sender.close()
  const times = answers.map(({ ms }) => ms)
  const bad = answers.filter(({ status }) => status !== 202).length
  note({ row, measure: 'p50 ms', column, value: quantile(times, 0.5) })
  note({ row, measure: 'p99 ms', column, value: quantile(times, 0.99) })
  note({ row, measure: 'other answers %', column, value: (bad / answers.length) * 100 })
  note({ row, measure: 'accepted and not done', column, value: accepted })
  note({ row, measure: 'ms until all have run', column, value: lateMs })
  const used = (await processorMs(pid)) - before
  note({ row, measure: 'receiver, CPU µs each', column, value: (used * 1000) / answers.length })
  note({ row, measure: 'receiver, peak MB', column, value: (await memoryOf(pid)).peak })
  return warm.length + answers.length
}

type Webhooks = {
  readonly webhooks: readonly {
    readonly path: string
    readonly counts: { readonly accepted: number; readonly done: number }
  }[]
}

/** Waits until every accepted event is done; returns how many are not after 30 seconds. */
const untilAllDone = async (
  origin: string,
  headers: Readonly<Record<string, string>>,
): Promise<number> => {
  for (const start = performance.now(); ;) {
    const response = await fetch(`${origin}/webhooks`, { headers })
    const { webhooks } = (await response.json()) as Webhooks
    const counts = webhooks.find(({ path }) => path === '/webhook/machines')?.counts
    const left = counts ? counts.accepted - counts.done : 0
    if (left === 0 || performance.now() - start > 30_000) return left
    await wait(20)
  }
}
