import { type Delivery, deliveryOf } from '../load/delivery.ts'
import { postAtPace } from '../load/pace.ts'
import { type Answer, createSender } from '../load/sender.ts'
import { quantile } from '../quantile.ts'
import type { Column, Note } from '../report/sample.ts'
import type { Server } from '../servers/server.ts'
import { type Standing, untilIdle } from './load.ts'

/*
 * Posts at a fixed pace. The daemon also runs four other programs at a time, 200 ms each: each start of a
 * program blocks it.
 */

export const sleepers = {
  webhook: `  - path: /webhook/sleeper
    agent: sleeper
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "{{event.number}}"
`,
  agent: '  sleeper: { kind: command, command: [sleep, "0.2"], concurrency: 4 }\n',
  perSecond: 20,
}

export const measurePaces = async (
  { bare, koa, adnanh, doorward }: Standing,
  { seconds, isShort }: { readonly seconds: number; readonly isShort: boolean },
  note: Note,
): Promise<void> => {
  const delivery = await deliveryOf('24 KB')
  const targets: readonly (readonly [Column, Server | undefined])[] = [
    ['bare', bare],
    ['koa', isShort ? undefined : koa],
    // It runs a program for each post, and responds before that exits.
    ['adnanh, runs', isShort ? undefined : adnanh],
    ['doorward', doorward],
  ]
  for (const perSecond of [200, 1000])
    for (const [column, server] of targets) {
      if (server === undefined) continue
      const { pid, url } = server
      const otherUrl = column === 'doorward' ? `${doorward.origin}/webhook/sleeper` : undefined
      const answers = await paced(url, delivery, { perSecond, seconds }, otherUrl)
      await untilIdle(pid)
      const row = `posts of 24 KB, ${perSecond} a second`
      const times = answers.map(({ ms }) => ms)
      const bad = answers.filter(({ status }) => status !== 202).length
      note({ row, measure: 'p50 ms', column, value: quantile(times, 0.5) })
      note({ row, measure: 'p99 ms', column, value: quantile(times, 0.99) })
      note({ row, measure: 'other answers %', column, value: (bad / answers.length) * 100 })
    }
}

const paced = async (
  url: string,
  delivery: Delivery,
  pace: { readonly perSecond: number; readonly seconds: number },
  otherUrl: string | undefined,
): Promise<Answer[]> => {
  const sender = createSender(url, delivery)
  const other = otherUrl === undefined ? undefined : createSender(otherUrl, delivery)
  // Connections are there, and the first program runs, before the time counts.
  await Promise.all(Array.from({ length: 16 }, async () => sender.post()))
  await other?.post()
  const { perSecond } = sleepers
  const more = other && postAtPace(other, { perSecond, seconds: pace.seconds })
  const answers = await postAtPace(sender, pace)
  await more
  sender.close()
  other?.close()
  return answers
}
