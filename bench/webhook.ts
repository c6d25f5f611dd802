import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { connect } from '../shared/client.ts'
import { homeAt, prepareHome } from '../shared/home.ts'
import { packageFolder } from '../shared/version.ts'
import { daemonMain } from '../shared/spawn-daemon.ts'
import { type Delivery, load, serverCore } from './wrk.ts'

const secret = 'bench-secret-0123456789abcdef'
const seconds = Number(process.env['BENCH_SECONDS'] ?? 3)
const rounds = Number(process.env['BENCH_ROUNDS'] ?? 3)

const pinned = (args: string[], env: NodeJS.ProcessEnv = {}) =>
  spawn('taskset', ['-c', serverCore, process.execPath, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_SECRET: secret, ...env },
  })

const peer = async (name: string) => {
  const child = pinned([fileURLToPath(new URL(`dist/bench/peers/${name}.js`, packageFolder))])
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return { url: `http://127.0.0.1:${String(line).trim()}/webhook/github`, child }
}

const root = await mkdtemp(join(tmpdir(), 'doorward-bench-'))
const home = homeAt(root)
await prepareHome(home)
await mkdir(home.config, { recursive: true, mode: 0o700 })
await writeFile(
  join(home.config, 'webhooks.yaml'),
  `webhooks:
  - path: /webhook/github
    agent: echo
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: |
      Pull request #{{event.number}}: {{event.pull_request.title}}
      {{event.pull_request.body}}
    filter: { action: opened }
  - path: /webhook/filtered
    agent: echo
    signature_scheme: github
    secret_env: BENCH_SECRET
    prompt_template: "{{event.number}}"
    filter: { action: closed }
`,
)
await writeFile(
  join(home.config, 'agents.yaml'),
  'agents:\n  echo: { kind: echo, concurrency: 4 }\n',
)
await writeFile(join(home.config, 'gateway.yaml'), 'server: { port: 0 }\n')
const child: ChildProcess = pinned([
  ...(process.env['PROF'] ? ['--cpu-prof', '--cpu-prof-dir=/tmp/prof'] : []),
  daemonMain,
  '--home',
  root,
])
let client
for (;;) {
  try {
    client = await connect(home)
    break
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const origin = client.daemon.url
client.close()
const bare = await peer('bare')
const koa = await peer('koa')
const big = await readFile(new URL('assets/samples/github/pull_request.opened.json', packageFolder))
const body = Buffer.from(JSON.stringify(JSON.parse(String(big)).payload ?? JSON.parse(String(big))))
console.log('body', body.length)
const delivery: Delivery = { body, secret, event: 'pull_request' }
const servers = [
  ['bare', bare.url],
  ['koa', koa.url],
  ['accepted', `${origin}/webhook/github`],
  ['filtered', `${origin}/webhook/filtered`],
].filter(([n]) => !process.env['ONLY'] || process.env['ONLY'] === n) as [string, string][]
const rss = async (pid: number | undefined) =>
  /VmRSS:\s+(\d+)/.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
const cpu = async (pid: number | undefined) => {
  const f = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(' ')
  return (Number(f[13]) + Number(f[14])) * 10
}
const kids = { bare: bare.child.pid, koa: koa.child.pid, accepted: child.pid, filtered: child.pid }
for (let round = 0; round < rounds; round += 1)
  for (const callers of [16, 64])
    for (const [name, url] of servers) {
      const before = await cpu(kids[name as 'bare'])
      const r = await load(url, delivery, { callers, seconds })
      const used = (await cpu(kids[name as 'bare'])) - before
      console.log(
        name.padEnd(9),
        callers,
        r.perSecond.toFixed(0).padStart(6),
        'p50',
        r.p50,
        'p99',
        r.p99,
        'µs cpu',
        ((used * 1000) / (r.perSecond * seconds)).toFixed(0),
        'rss',
        await rss(kids[name as 'bare']),
        JSON.stringify(r.answers),
      )
    }
for (const c of [child, bare.child, koa.child]) c.kill('SIGTERM')
await once(child, 'exit')
await rm(root, { recursive: true, force: true })
