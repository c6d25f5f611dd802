import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from '../shared/client.ts'
import { homeAt, readSecretFile } from '../shared/home.ts'
import { spawnDaemon } from '../shared/spawn-daemon.ts'
import { writeHomeWithTokens } from './home-with-token.ts'

/*
 * What a token costs. A cached one over HTTP at 1 and 32 callers, beside a bare node:http server that
 * checks the same bearer token and answers as many bytes; and the same while the refresh of another
 * provider hangs. All in one run, in turn. What one costs by the command line: bench/cli.ts.
 */

const rounds = 7
const readsPerRound = 2000

type Sample = { readonly what: string; readonly unit: 'ms' | 'per second'; readonly value: number }

const main = async (): Promise<void> => {
  const home = homeAt(await mkdtemp(join(tmpdir(), 'doorward-bench-')))
  const provider = await startHangingProvider()
  await writeHomeWithTokens(home, provider.origin, { cached: 3_600_000, hanging: 30_000 })
  const child = spawnDaemon(home)
  await once(child, 'message')
  child.disconnect()
  const daemon = await connect(home)
  const token = (await readSecretFile(home.apiToken))?.trim() ?? ''
  const bare = await startBareServer(token)
  const samples: Sample[] = []
  try {
    const ours = `${daemon.daemon.url}/oauth/tokens/cached/access`
    for (let round = 0; round < rounds; round += 1) {
      for (const [who, url] of [
        ['bare node:http', bare.url],
        ['doorward', ours],
      ] as const)
        for (const callers of [1, 32])
          samples.push(...(await measure(`${who}, ${callers} callers`, url, token, callers)))
      samples.push(...(await besideHanging(daemon.daemon.url, token, provider)))
    }
    report(samples)
  } finally {
    daemon.close()
    bare.close()
    provider.close()
    if (child.pid !== undefined) process.kill(child.pid, 'SIGTERM')
    await once(child, 'exit')
    await rm(home.root, { recursive: true, force: true })
  }
}

const startServer = async (server: ReturnType<typeof createServer>) => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const close = (): void => {
    server.close()
    server.closeAllConnections()
  }
  return { url, close }
}

/** The least that a server could do for a token. */
const startBareServer = (token: string) => {
  const body = JSON.stringify({
    provider: 'cached',
    accessToken: 'x'.repeat(200),
    tokenType: 'Bearer',
    expiresAt: new Date().toISOString(),
    scopes: ['a', 'b'],
  })
  return startServer(
    createServer((request, response) => {
      const isOurs = request.headers.authorization === `Bearer ${token}`
      response.writeHead(isOurs ? 200 : 401, { 'content-type': 'application/json' })
      response.end(isOurs ? body : '')
    }),
  )
}

/** Its token endpoint takes 2 s for every answer, and then has none. */
const startHangingProvider = async () => {
  let asked = (): void => undefined
  const server = await startServer(
    createServer((_, response) => {
      asked()
      setTimeout(() => response.writeHead(503).end(), 2000)
    }),
  )
  return {
    ...server,
    origin: server.url,
    untilAsked: () =>
      new Promise<void>((resolve) => {
        asked = resolve
      }),
  }
}

const read = (url: string, token: string, agent: Agent): Promise<number> =>
  new Promise((resolve, reject) => {
    const start = performance.now()
    const request = httpRequest(
      url,
      { agent, headers: { authorization: `Bearer ${token}`, 'user-agent': 'bench' } },
      (response) => {
        if (response.statusCode !== 200) reject(new Error(`answered ${response.statusCode}`))
        response.resume().once('end', () => resolve(performance.now() - start))
      },
    )
    request.once('error', reject)
    request.end()
  })

const measure = async (
  what: string,
  url: string,
  token: string,
  callers: number,
): Promise<Sample[]> => {
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  const times: number[] = []
  const start = performance.now()
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (times.length < readsPerRound) times.push(await read(url, token, agent))
    }),
  )
  const seconds = (performance.now() - start) / 1000
  agent.destroy()
  const sorted = times.toSorted((a, b) => a - b)
  return [
    { what: `${what}: p50`, unit: 'ms', value: sorted[Math.floor(sorted.length * 0.5)] ?? 0 },
    { what: `${what}: p99`, unit: 'ms', value: sorted[Math.floor(sorted.length * 0.99)] ?? 0 },
    { what: `${what}: reads`, unit: 'per second', value: times.length / seconds },
  ]
}

const besideHanging = async (
  url: string,
  token: string,
  provider: { readonly untilAsked: () => Promise<void> },
): Promise<Sample[]> => {
  const agent = new Agent({ keepAlive: true })
  const cached = `${url}/oauth/tokens/cached/access`
  await read(cached, token, agent)
  const idle = await read(cached, token, agent)
  const asked = provider.untilAsked()
  const hanging = read(`${url}/oauth/tokens/hanging/access?min_validity=3600`, token, agent)
  await asked
  const busy = await read(cached, token, agent)
  await hanging.catch(() => undefined)
  agent.destroy()
  return [
    { what: 'above an idle read while another refresh hangs', unit: 'ms', value: busy - idle },
  ]
}

const report = (samples: readonly Sample[]): void => {
  const values = new Map<string, { readonly unit: string; readonly all: number[] }>()
  for (const { what, unit, value } of samples) {
    const entry = values.get(what) ?? { unit, all: [] }
    entry.all.push(value)
    values.set(what, entry)
  }
  console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`)
  console.log(`${rounds} rounds in turn: median (least to most)\n`)
  for (const [what, { unit, all }] of values) {
    const sorted = all.toSorted((a, b) => a - b)
    const at = (part: number) => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(2)
    console.log(`${what.padEnd(50)} ${at(0.5).padStart(10)} ${unit}  (${at(0)} to ${at(1)})`)
    console.log(JSON.stringify({ what, unit, median: Number(at(0.5)) }))
  }
}

await main()
