import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { resolveHome } from '../shared/home/home.ts'
import { spawnDaemon } from '../shared/client/spawn.ts'
import { cliProgram, packageFolder } from '../shared/version.ts'
import { writeHomeWithTokens } from './home-with-token.ts'
import { hasProgram } from './machine.ts'
import { writeGhConfig } from './servers/gh-config.ts'
import { startHangingProvider } from './servers/hanging-provider.ts'
import { type OidcAgent, startOidcAgent } from './servers/oidc-agent.ts'

/*
 * What a command costs: whole processes, from start to exit, one after the other, compared with the `node -e 0`
 * of the same round; `gh` and `oidc-token` where they are installed. Node reads NODE_EXTRA_CA_CERTS at every
 * start, which makes `node -e 0` slower and all ratios smaller: where it is set, all is measured with it
 * and without it.
 */

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 40)
const warmUps = 3

type Command = {
  readonly what: string
  readonly file: string
  readonly args: readonly string[]
  /** More than the environment that all get. */
  readonly env?: NodeJS.ProcessEnv
}

const inPackage = (path: string): string => fileURLToPath(new URL(path, packageFolder))

const main = async (): Promise<void> => {
  const home = resolveHome(await mkdtemp(join(tmpdir(), 'doorward-bench-')))
  await writeHomeWithTokens(home, 'http://127.0.0.1:9', { cached: 24 * 3_600_000 })
  const daemon = spawnDaemon(home)
  await once(daemon, 'message')
  daemon.disconnect()
  const provider = await startHangingProvider()
  const agent = await startOidcAgent(provider.origin)
  try {
    const commands = [...commandsFor(home.root), ...(await othersFor(home.root, agent))]
    console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`)
    console.log(`${rounds} rounds in turn; ratios are medians of those of the rounds`)
    const { NODE_EXTRA_CA_CERTS: extra, ...without } = process.env
    if (extra !== undefined) compare('with NODE_EXTRA_CA_CERTS', commands, process.env)
    compare('without NODE_EXTRA_CA_CERTS', commands, without)
  } finally {
    await agent?.stop()
    provider.close()
    daemon.kill('SIGTERM')
    await once(daemon, 'exit')
    await rm(home.root, { recursive: true, force: true })
  }
}

const commandsFor = (home: string): Command[] => {
  const node = (what: string, ...args: string[]): Command => ({
    what,
    file: process.execPath,
    args,
  })
  const cli = inPackage(cliProgram)
  const ask = ['--home', home, '--no-start']
  return [
    node('node -e 0', '-e', '0'),
    node('commander alone, not bundled', inPackage('dist/bench/servers/hello.js'), '--version'),
    node('doorward --version', cli, '--version'),
    node('doorward oauth token', cli, ...ask, 'oauth', 'token', 'cached'),
    node('doorward status', cli, ...ask, 'status'),
    node('doorward config check', cli, ...ask, 'config', 'check'),
  ]
}

/** Those of other people, logged in; one that is not installed is left out. */
const othersFor = async (folder: string, agent: OidcAgent | undefined): Promise<Command[]> => {
  const gh = { file: 'gh', env: await writeGhConfig(folder) }
  return [
    ...((await hasProgram('gh'))
      ? [
          { what: 'gh --version', ...gh, args: ['--version'] },
          { what: 'gh auth token', ...gh, args: ['auth', 'token'] },
        ]
      : []),
    ...(agent
      ? [{ what: 'oidc-token', file: 'oidc-token', args: ['cached'], env: agent.env }]
      : []),
  ]
}

const compare = (title: string, commands: readonly Command[], env: NodeJS.ProcessEnv): void => {
  const times = commands.map((): number[] => [])
  for (let round = -warmUps; round < rounds; round += 1)
    for (const [index, { what, file, args, env: more }] of commands.entries()) {
      const start = performance.now()
      const { status } = spawnSync(file, args, {
        env: { ...env, ...more },
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      if (status !== 0) throw new Error(`${what} ended with ${status}`)
      if (round >= 0) times[index]?.push(performance.now() - start)
    }
  console.log(`\n${title}`)
  for (const [index, { what }] of commands.entries()) {
    const own = times[index] ?? []
    const ratio = medianOf(own.map((ms, round) => ms / (times[0]?.[round] ?? Number.NaN)))
    const ms = medianOf(own)
    const least = Math.min(...own)
    console.log(
      `${what.padEnd(32)} ${ms.toFixed(1).padStart(7)} ms (least ${least.toFixed(1)})  ${ratio.toFixed(2)} × node -e 0`,
    )
    console.log(JSON.stringify({ what, title, unit: 'ms', median: ms, least, ratio }))
  }
}

const medianOf = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN

await main()
