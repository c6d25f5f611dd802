import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { type Delivery, deliveryOf } from '../load/delivery.ts'
import { ask } from '../load/ask.ts'
import { postAtOnce, postAtPace } from '../load/pace.ts'
import { createSender } from '../load/sender.ts'
import { memoryOf, processorMs } from '../process-stat.ts'
import { median, quantile } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import { type Doorward, type DoorwardOptions, startDoorward } from '../servers/doorward.ts'
import { untilIdle } from './load.ts'

/*
 * What grows with what is configured, kept and followed: one daemon for each state, at the same
 * pace of posts, so that a state that costs more shows as processor time and not as fewer posts.
 */

type State = {
  readonly name: string
  readonly options: Omit<DoorwardOptions, 'first'>
  /** Events that are there before anything is measured. */
  readonly events?: number
  readonly listeners?: number
}

const pace = { perSecond: 200, seconds: 3 }

const states: readonly State[] = [
  ...[1, 100, 5000].map((count) => ({
    name: `${count.toLocaleString('en')} webhook definitions`,
    options: { webhooks: definitions(count) },
  })),
  ...[200, 20_000].map((count) => ({
    name: `${count.toLocaleString('en')} events kept`,
    options: { gateway: `events: { keep: ${count} }\n` },
    events: count,
  })),
  ...[1, 64].map((count) => ({
    name: count === 1 ? '1 SSE listener' : `${count} SSE listeners`,
    options: {},
    listeners: count,
  })),
]

/** Two are there anyway. */
function definitions(count: number): string {
  return Array.from(
    { length: count - 1 },
    (_, index) => `  - path: /webhook/more/${index}
    agent: echo
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "Issue {{event.issue.number}}: {{event.issue.title}}"
    filter: { action: [opened, reopened] }
`,
  ).join('')
}

export const measureGrowth = async (note: Note): Promise<void> => {
  const delivery = await deliveryOf('24 KB')
  for (const state of states) await measureState(state, delivery, note)
}

const measureState = async (
  { name: row, options, events = 0, listeners = 0 }: State,
  delivery: Delivery,
  note: Note,
): Promise<void> => {
  const server = await startDoorward({ ...options, first: await deliveryOf('1 KB') })
  const streams = Array.from({ length: listeners }, () => listen(server))
  const write = (measure: string, value: number): void =>
    note({ row, measure, column: 'doorward', value })
  try {
    write('start ms', server.startMs)
    if (events > 0) await fill(server, events)
    await wait(1000)
    write('idle MB', (await memoryOf(server.pid)).now)
    const sender = createSender(server.url, delivery)
    await postAtOnce(sender, { posts: 500, callers: 4 })
    await untilIdle(server.pid)
    const before = await processorMs(server.pid)
    const answers = await postAtPace(sender, pace)
    await untilIdle(server.pid)
    const used = (await processorMs(server.pid)) - before
    sender.close()
    write('CPU µs a post', (used * 1000) / answers.length)
    write(
      'p99 ms',
      quantile(
        answers.map(({ ms }) => ms),
        0.99,
      ),
    )
    const asked: number[] = []
    const beforeStatus = await processorMs(server.pid)
    while (asked.length < 50) asked.push(await timeOf(server, '/status'))
    write('status ms', median(asked))
    write('status CPU ms', ((await processorMs(server.pid)) - beforeStatus) / asked.length)
    write('MB after', (await memoryOf(server.pid)).now)
  } finally {
    for (const stream of streams) stream.destroy()
    await server.stop()
  }
}

const fill = async ({ url }: Doorward, events: number): Promise<void> => {
  const sender = createSender(url, await deliveryOf('24 KB'))
  await postAtOnce(sender, { posts: events, callers: 8 })
  sender.close()
}

/** Follows the events and reads all that comes. */
const listen = ({ origin, authorized }: Doorward) => {
  const { hostname, port, host } = new URL(origin)
  const socket = connect(Number(port), hostname)
  const headers = Object.entries(authorized).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET /events/stream HTTP/1.1\r\nHost: ${host}\r\n${headers.join('')}\r\n`)
  socket.on('error', () => undefined)
  return socket.resume()
}

const timeOf = async ({ origin, authorized }: Doorward, path: string): Promise<number> => {
  const start = performance.now()
  await ask(`${origin}${path}`, authorized)
  return performance.now() - start
}
