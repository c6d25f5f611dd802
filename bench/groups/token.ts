import { once } from 'node:events'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { secret } from '../load/delivery.ts'
import { getAll } from '../load/wrk.ts'
import { processorMs } from '../process-stat.ts'
import { median } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import type { Standing } from './load.ts'

/* A cached token over HTTP, and the same while the refresh of another provider hangs. */

const wholeSecond = 1000

export const measureTokens = async (
  { bare, doorward }: Standing,
  { seconds, provider }: { readonly seconds: number; readonly provider: HangingProvider },
  note: Note,
): Promise<void> => {
  const cached = `${doorward.origin}/oauth/tokens/cached/access`
  for (const callers of [1, 32])
    for (const [column, server, url, headers] of [
      ['bare', bare, bare.url, { authorization: `Bearer ${secret}`, 'user-agent': 'bench' }],
      ['doorward', doorward, cached, doorward.authorized],
    ] as const) {
      const before = await processorMs(server.pid)
      const load = await getAll(url, headers, { callers, seconds })
      const used = (await processorMs(server.pid)) - before
      if (load.answers['200'] !== load.requests) throw new Error('a token was refused')
      const row = `cached token, ${callers} ${callers === 1 ? 'caller' : 'callers'}`
      note({ row, measure: 'p50 ms', column, value: load.p50 })
      note({ row, measure: 'reads/s', column, value: load.requests / load.seconds })
      note({ row, measure: 'CPU µs each', column, value: (used * wholeSecond) / load.requests })
    }
  const row = 'cached token while another refresh hangs'
  const value = await aboveIdle(doorward.origin, doorward.authorized, provider)
  note({ row, measure: 'ms above an idle read', column: 'doorward', value })
}

type Headers = Readonly<Record<string, string>>

const aboveIdle = async (
  origin: string,
  headers: Headers,
  provider: HangingProvider,
): Promise<number> => {
  const agent = new Agent({ keepAlive: true })
  const cached = `${origin}/oauth/tokens/cached/access`
  const reads = async (count: number) => {
    const times: number[] = []
    while (times.length < count) times.push(await read(cached, headers, agent))
    return median(times)
  }
  await reads(20)
  const idle = await reads(20)
  const asked = provider.untilAsked()
  const hanging = read(`${origin}/oauth/tokens/hanging/access?min_validity=80000`, headers, agent)
  await asked
  const busy = await reads(20)
  await hanging.catch(() => undefined)
  agent.destroy()
  return busy - idle
}

const read = async (url: string, headers: Headers, agent: Agent): Promise<number> =>
  new Promise((resolve, reject) => {
    const start = performance.now()
    const asked = httpRequest(url, { agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`))
      response.resume().once('end', () => resolve(performance.now() - start))
    })
    asked.once('error', reject)
    asked.end()
  })

export type HangingProvider = {
  readonly origin: string
  /** Until the next request comes. */
  readonly untilAsked: () => Promise<void>
  readonly close: () => void
}

/** Its token endpoint takes 2 s for every answer, and then has none. */
export const startHangingProvider = async (): Promise<HangingProvider> => {
  let asked = (): void => undefined
  const server = createServer((_, response) => {
    asked()
    setTimeout(() => response.writeHead(503).end(), 2000)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    untilAsked: () =>
      new Promise<void>((resolve) => {
        asked = resolve
      }),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Of two providers at the hanging one: a login with a day left, and one with half a day. */
export const logins = (origin: string) => {
  const entry = `{ authorization_endpoint: "${origin}/a", token_endpoint: "${origin}/t" }`
  const now = Date.now()
  const record = (provider: string, leftMs: number) => ({
    version: 1,
    provider,
    account: null,
    scopes: ['a', 'b'],
    tokenType: 'Bearer',
    accessToken: 'x'.repeat(200),
    refreshToken: 'y',
    expiresAt: new Date(now + leftMs).toISOString(),
    obtainedAt: new Date(now).toISOString(),
    clientId: 'id',
  })
  return {
    gateway: `providers:\n  cached: ${entry}\n  hanging: ${entry}\n`,
    tokens: [record('cached', 86_400_000), record('hanging', 86_400_000 / 2)],
  }
}
