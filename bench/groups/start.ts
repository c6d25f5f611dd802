import { setTimeout as wait } from 'node:timers/promises'
import type { Status } from '../../shared/api/api.ts'
import { deliveryOf } from '../load/delivery.ts'
import { ask } from '../load/ask.ts'
import { postAtOnce } from '../load/pace.ts'
import { type Answer, createSender } from '../load/sender.ts'
import { childCount, memoryOf } from '../process-stat.ts'
import { quantile } from '../quantile.ts'
import type { Column, Note } from '../report/sample.ts'
import { type Doorward, startDoorward } from '../servers/doorward.ts'
import { startAdnanh, startPeer } from '../servers/peers.ts'
import type { Server } from '../servers/server.ts'

/*
 * The life of a new server: start to the first good response, memory while it is idle, then 5,000 posts from 256
 * callers, each with 200 ms of work for an agent; the peak of memory and of programs, and the result of each
 * post.
 */

const flood = { posts: 5000, callers: 256 }
const agents = 32

export const measureStarts = async (
  folder: string,
  { hasAdnanh, isShort }: { readonly hasAdnanh: boolean; readonly isShort: boolean },
  note: Note,
): Promise<void> => {
  const first = await deliveryOf('1 KB')
  for (const name of isShort ? (['bare'] as const) : (['bare', 'koa'] as const))
    await liveThrough(name, await startPeer(name, first), note, isShort)
  if (hasAdnanh && !isShort) {
    const server = await startAdnanh(folder, ['sleep', '0.2'], first)
    await liveThrough('adnanh, runs', server, note)
  }
  await liveThrough('doorward', await startWith(1000), note)
  if (!isShort)
    await liveThrough('doorward', await startWith(flood.posts), note, false, ', room for all')
}

const startWith = async (maxEvents: number): Promise<Doorward> =>
  startDoorward({
    first: await deliveryOf('1 KB'),
    webhooks: `  - path: /webhook/agent
    agent: busy
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "{{event.pull_request.body}}"
`,
    agents: `  busy: { kind: command, command: [sleep, "0.2"], concurrency: ${agents} }\n`,
    gateway: `queue: { max_events: ${maxEvents}, concurrency: ${agents} }\n`,
  })

const liveThrough = async (
  column: Column,
  server: Server,
  note: Note,
  isFloodLeftOut = false,
  remark = '',
): Promise<void> => {
  const { pid } = server
  try {
    if (remark === '') {
      const row = 'start to the first good answer'
      note({ row, measure: 'ms', column, value: server.startMs })
      await wait(1000)
      const value = (await memoryOf(pid)).now
      note({ row: 'memory of an idle server', measure: 'MB', column, value })
    }
    if (isFloodLeftOut) return
    const ended = new AbortController()
    const watched = mostChildren(pid, ended.signal)
    const url = 'origin' in server ? `${(server as Doorward).origin}/webhook/agent` : server.url
    const sender = createSender(url, await deliveryOf('24 KB'))
    const answers = await postAtOnce(sender, flood)
    sender.close()
    const row = `5,000 posts at once, 256 callers${remark}`
    const count = (wanted: (status: number) => boolean) =>
      answers.filter(({ status }) => wanted(status)).length
    const accepted = count((status) => status === 202 || status === 200)
    if ('origin' in server) await noteLost(server as Doorward, accepted, row, note)
    else await wait(1000)
    ended.abort()
    note({ row, measure: 'accepted', column, value: accepted })
    note({ row, measure: 'answered 503', column, value: count((status) => status === 503) })
    const others = flood.posts - accepted - count((status) => status === 503)
    note({ row, measure: 'neither', column, value: others })
    note({ row, measure: 'p99 ms', column, value: quantile(times(answers), 0.99) })
    note({ row, measure: 'peak MB', column, value: (await memoryOf(pid)).peak })
    note({ row, measure: 'processes at once', column, value: await watched })
  } finally {
    await server.stop()
  }
}

const times = (answers: readonly Answer[]): number[] => answers.map(({ ms }) => ms)

/** Waits until the queue is empty; every accepted event is then done, or it is lost. */
const noteLost = async (
  doorward: Doorward,
  accepted: number,
  row: string,
  note: Note,
): Promise<void> => {
  for (;;) {
    const { queue, webhooks } = await statusOf(doorward)
    const done = webhooks.find(({ path }) => path === '/webhook/agent')?.counts.done ?? 0
    if (queue.waiting + queue.running === 0) {
      note({ row, measure: 'accepted and not done', column: 'doorward', value: accepted - done })
      return
    }
    await wait(200)
  }
}

const statusOf = async ({ origin, authorized }: Doorward): Promise<Status> =>
  JSON.parse(await ask(`${origin}/status`, authorized)) as Status

const mostChildren = async (pid: number, signal: AbortSignal): Promise<number> => {
  let most = 0
  while (!signal.aborted) {
    most = Math.max(most, await childCount(pid))
    await wait(20)
  }
  return most
}
