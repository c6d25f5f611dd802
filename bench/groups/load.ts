import { setTimeout as wait } from 'node:timers/promises'
import { type Delivery, deliveryOf, type Size } from '../load/delivery.ts'
import { postAll } from '../load/wrk.ts'
import { childCount, memoryOf, processorMs, tickMs } from '../process-stat.ts'
import type { Column, Note } from '../report/sample.ts'
import type { Doorward } from '../servers/doorward.ts'
import type { OidcAgent } from '../servers/oidc-agent.ts'
import type { Server } from '../servers/server.ts'

/* As many deliveries as each server accepts: responses per second, their times, processor time of each. */

export type Standing = {
  readonly bare: Server
  readonly koa: Server
  readonly adnanh: Server | undefined
  readonly doorward: Doorward
  /** For tokens only. */
  readonly oidcAgent: OidcAgent | undefined
}

export type Target = { readonly column: Column; readonly server: Server; readonly url: string }

export const cases: readonly (readonly [size: Size, callers: number, isInShort: boolean])[] = [
  ['24 KB', 16, true],
  ['24 KB', 64, false],
  ['1 KB', 64, true],
  ['1 MB', 64, true],
]

/** Runs the code of each server until it is compiled. */
export const warmUp = async (standing: Standing, { isShort }: { isShort: boolean }) => {
  for (const { url } of targetsOf(standing, isShort))
    await postAll(url, await deliveryOf('24 KB'), { callers: 16, seconds: isShort ? 1 : 3 })
}

export const measureLoads = async (
  standing: Standing,
  { seconds, round, isShort }: { seconds: number; round: number; isShort: boolean },
  note: Note,
): Promise<void> => {
  const targets = targetsOf(standing, isShort)
  for (const [size, callers, isInShort] of cases) {
    if (isShort && !isInShort) continue
    const delivery = await deliveryOf(size)
    const row = `posts of ${size}, ${callers} callers`
    // Each round begins with another server, so that other work on the machine affects all of them.
    for (const target of rotated(targets, round))
      await measureOne(row, target, delivery, { callers, seconds }, note)
  }
  const { bare, koa, adnanh, doorward } = standing
  await wait(quietMs)
  for (const [column, server] of [
    ['bare', bare],
    ['koa', koa],
    ['adnanh, runs nothing', adnanh],
    ['doorward', doorward],
  ] as const)
    if (server) {
      const value = (await memoryOf(server.pid)).now
      note({ row: 'memory after the loads', measure: 'MB', column, value })
    }
}

const targetsOf = ({ bare, koa, adnanh, doorward }: Standing, isShort: boolean): Target[] => [
  { column: 'bare', server: bare, url: bare.url },
  ...(isShort ? [] : [{ column: 'koa' as const, server: koa, url: koa.url }]),
  ...(adnanh && !isShort ? adnanhTargets(adnanh) : []),
  { column: 'filtered', server: doorward, url: `${doorward.origin}/webhook/filtered` },
  { column: 'doorward', server: doorward, url: doorward.url },
]

const adnanhTargets = (server: Server): Target[] => [
  { column: 'adnanh, runs', server, url: server.url },
  { column: 'adnanh, runs nothing', server, url: server.url.replace('/run', '/nothing') },
]

const rotated = <Value>(values: readonly Value[], by: number): Value[] => {
  const start = by % values.length
  return [...values.slice(start), ...values.slice(0, start)]
}

export const measureOne = async (
  row: string,
  { column, server, url }: Target,
  delivery: Delivery,
  pressure: { readonly callers: number; readonly seconds: number },
  note: Note,
): Promise<void> => {
  const { pid } = server
  const children = await childCount(pid)
  const before = await processorMs(pid)
  const load = await postAll(url, delivery, pressure)
  // The work for accepted posts belongs to their cost.
  await untilIdle(pid, children)
  const used = (await processorMs(pid)) - before
  const good = (load.answers['202'] ?? 0) + (load.answers['200'] ?? 0)
  if (load.requests === 0) return note({ row, measure: 'answers/s', column, value: 0 })
  note({ row, measure: 'answers/s', column, value: good / load.seconds })
  note({ row, measure: 'p99 ms', column, value: load.p99 })
  note({ row, measure: 'CPU µs each', column, value: (used * 1000) / load.requests })
  note({ row, measure: 'other answers %', column, value: (1 - good / load.requests) * 100 })
}

/** How long no request comes before the memory is read, in milliseconds. */
export const quietMs = 10_000

/**
 * Waits until a process uses no processor time and has at most `children` children, as the rest of its work
 * would slow down the next server.
 */
export const untilIdle = async (pid: number, children = 0): Promise<void> => {
  for (let last = await processorMs(pid); ;) {
    await wait(200)
    const now = await processorMs(pid)
    if (now - last <= tickMs && (await childCount(pid)) <= children) return
    last = now
  }
}
