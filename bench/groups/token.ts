import { execFile } from 'node:child_process'
import { Agent, request as httpRequest } from 'node:http'
import { promisify } from 'node:util'
import { secret } from '../load/delivery.ts'
import { getAll } from '../load/wrk.ts'
import { processorMs } from '../process-stat.ts'
import { median } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import type { Doorward } from '../servers/doorward.ts'
import { type HangingProvider, hangMs } from '../servers/hanging-provider.ts'
import type { OidcAgent } from '../servers/oidc-agent.ts'
import type { Standing } from './load.ts'
import { providerEntry, storedToken } from '../stored-token.ts'

/* A cached token over HTTP, and the same while the refresh of another provider hangs. */

const run = promisify(execFile)
const wholeSecond = 1000

export const measureTokens = async (
  { bare, doorward, oidcAgent }: Standing,
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
  const overHttp = viaHttp(doorward)
  for (const [column, reader] of [
    ['oidc-agent', oidcAgent && viaOidcToken(oidcAgent)],
    ['doorward', overHttp],
  ] as const) {
    if (!reader) continue
    const value = await aboveIdle(reader, provider)
    if (value === undefined) continue
    note({ row, measure: 'ms above an idle read', column, value })
  }
  overHttp.end()
}

/** How a program asks for a token of each of the two logins. Each throws when it gets none. */
type Reader = {
  readonly cached: () => Promise<unknown>
  /** With more time left than it has, so that it is refreshed. */
  readonly hanging: () => Promise<unknown>
}

const moreThanLeft = '80000'

const viaHttp = ({ origin, authorized }: Doorward): Reader & { readonly end: () => void } => {
  const agent = new Agent({ keepAlive: true })
  const tokens = `${origin}/oauth/tokens`
  return {
    cached: () => read(`${tokens}/cached/access`, authorized, agent),
    hanging: () => read(`${tokens}/hanging/access?min_validity=${moreThanLeft}`, authorized, agent),
    end: () => agent.destroy(),
  }
}

/** A process for each, as people ask it: what starting it costs is in an idle read too. */
const viaOidcToken = ({ env }: OidcAgent): Reader => ({
  cached: () => run('oidc-token', ['cached'], { env }),
  hanging: () =>
    run('oidc-token', ['--time', moreThanLeft, 'hanging'], { env, timeout: 10 * hangMs }),
})

const aboveIdle = async (
  { cached, hanging }: Reader,
  provider: HangingProvider,
): Promise<number | undefined> => {
  /** One after the other; no other begins after this time. */
  const reads = async (until = Number.POSITIVE_INFINITY) => {
    const times: number[] = []
    while (times.length < 20 && performance.now() < until) {
      const start = performance.now()
      await cached()
      times.push(performance.now() - start)
    }
    return median(times)
  }
  await reads()
  const idle = await reads()
  const asked = provider.untilAsked()
  const refreshed = hanging().catch(() => undefined)
  // A program that has given up on this provider for now asks it nothing.
  const isAsked = await Promise.race([asked.then(() => true), refreshed.then(() => false)])
  if (!isAsked) return undefined
  const busy = await reads(performance.now() + hangMs / 2)
  await refreshed
  return busy - idle
}

type Headers = Readonly<Record<string, string>>

const read = async (url: string, headers: Headers, agent: Agent): Promise<void> =>
  new Promise((resolve, reject) => {
    const asked = httpRequest(url, { agent, headers }, (response) => {
      if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`))
      response.resume().once('end', resolve)
    })
    asked.once('error', reject)
    asked.end()
  })

/** Of two providers at the hanging one: a login with a day left, and one with half a day. */
export const logins = (origin: string) => {
  const entry = providerEntry(origin)
  return {
    gateway: `providers:\n  cached: ${entry}\n  hanging: ${entry}\n`,
    tokens: [storedToken('cached', 86_400_000), storedToken('hanging', 86_400_000 / 2)],
  }
}
