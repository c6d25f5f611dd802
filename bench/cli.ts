import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { homeAt } from '../shared/home.ts'
import { spawnDaemon } from '../shared/spawn-daemon.ts'
import { cliProgram, packageFolder } from '../shared/version.ts'
import { writeHomeWithTokens } from './home-with-token.ts'

/*
 * What a command costs: whole processes, from the start to the end, in turn, each beside the `node -e 0`
 * of its round. `gh` where it is installed, and `oidc-token` where OIDC_AGENT_ACCOUNT names an account
 * that oidc-agent has loaded. Node reads NODE_EXTRA_CA_CERTS at every start, which makes `node -e 0`
 * slower and all ratios smaller: where it is set, all is measured with it and without it.
 */

const rounds = Number(process.env['BENCH_ROUNDS'] ?? 40)
const warmUps = 3

type Command = { readonly what: string; readonly file: string; readonly args: readonly string[] }

const inPackage = (path: string): string => fileURLToPath(new URL(path, packageFolder))

const main = async (): Promise<void> => {
  const home = homeAt(await mkdtemp(join(tmpdir(), 'doorward-bench-')))
  await writeHomeWithTokens(home, 'http://127.0.0.1:9', { cached: 24 * 3_600_000 })
  const daemon = spawnDaemon(home)
  await once(daemon, 'message')
  daemon.disconnect()
  try {
    console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown'}`)
    console.log(`${rounds} rounds in turn; ratios are medians of those of the rounds`)
    const { NODE_EXTRA_CA_CERTS: extra, ...without } = process.env
    if (extra !== undefined)
      compare('with NODE_EXTRA_CA_CERTS', commandsFor(home.root), process.env)
    compare('without NODE_EXTRA_CA_CERTS', commandsFor(home.root), without)
  } finally {
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
  const account = process.env['OIDC_AGENT_ACCOUNT']
  const others: Command[] = [
    { what: 'gh --version', file: 'gh', args: ['--version'] },
    { what: 'gh auth token', file: 'gh', args: ['auth', 'token'] },
    ...(account === undefined ? [] : [{ what: 'oidc-token', file: 'oidc-token', args: [account] }]),
  ]
  return [
    node('node -e 0', '-e', '0'),
    node('commander alone, not bundled', inPackage('dist/bench/peers/hello.js'), '--version'),
    node('doorward --version', cli, '--version'),
    node('doorward oauth token', cli, ...ask, 'oauth', 'token', 'cached'),
    node('doorward status', cli, ...ask, 'status'),
    node('doorward config check', cli, ...ask, 'config', 'check'),
    // One that is not installed, or not logged in, is left out.
    ...others.filter(({ file, args }) => spawnSync(file, args).status === 0),
  ]
}

const compare = (title: string, commands: readonly Command[], env: NodeJS.ProcessEnv): void => {
  const times = commands.map((): number[] => [])
  for (let round = -warmUps; round < rounds; round += 1)
    for (const [index, { what, file, args }] of commands.entries()) {
      const start = performance.now()
      const { status } = spawnSync(file, args, { env, stdio: ['ignore', 'pipe', 'pipe'] })
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
