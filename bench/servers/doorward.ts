import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Home, resolveHome, prepareHome, readSecretFile } from '../../shared/home/home.ts'
import { daemonMain, nodeOptions } from '../../shared/client/spawn.ts'
import type { Delivery } from '../load/delivery.ts'
import { type Server, freePort, startServer } from './server.ts'

export type Doorward = Server & {
  readonly home: Home
  readonly origin: string
  /** Headers of a local client. */
  readonly authorized: Readonly<Record<string, string>>
}

export type DoorwardOptions = {
  readonly first: Delivery
  /** Added to `webhooks.yaml`, a list, after /webhook/github and /webhook/filtered. */
  readonly webhooks?: string
  /** Added to `agents.yaml`, after `echo`. */
  readonly agents?: string
  /** Added to `gateway.yaml`, after `server`. */
  readonly gateway?: string
  readonly tokens?: readonly object[]
  readonly profile?: string | undefined
  readonly env?: Readonly<Record<string, string>>
}

const usual = `webhooks:
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
`

/** Starts a daemon in a temporary home, which `stop` removes. */
export const startDoorward = async (options: DoorwardOptions): Promise<Doorward> => {
  const { first, webhooks = '', agents = '', gateway = '', tokens = [], profile, env } = options
  const home = resolveHome(await mkdtemp(join(tmpdir(), 'doorward-bench-')))
  await prepareHome(home)
  await mkdir(home.config, { recursive: true, mode: 0o700 })
  const port = await freePort()
  const write = (name: string, text: string) => writeFile(join(home.config, `${name}.yaml`), text)
  await write('webhooks', usual + webhooks)
  await write('agents', `agents:\n  echo: { kind: echo, concurrency: 4 }\n${agents}`)
  await write('gateway', `server: { port: ${port} }\n${gateway}`)
  for (const token of tokens)
    await writeFile(
      join(home.tokens, `${(token as { provider: string }).provider}.json`),
      JSON.stringify(token),
      { mode: 0o600 },
    )
  const profiling = profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`]
  const origin = `http://127.0.0.1:${port}`
  const server = await startServer({
    name: 'doorward',
    argv: [process.execPath, ...nodeOptions, ...profiling, daemonMain, '--home', home.root],
    url: `${origin}/webhook/github`,
    first,
    ...(env && { env }),
  })
  const apiToken = (await readSecretFile(home.apiToken))?.trim() ?? ''
  return {
    ...server,
    home,
    origin,
    authorized: { authorization: `Bearer ${apiToken}`, 'user-agent': 'bench' },
    stop: async () => {
      await server.stop()
      await rm(home.root, { recursive: true, force: true })
    },
  }
}
