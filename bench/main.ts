import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { packageFolder } from '../shared/version.ts'
import { measureGrowth } from './groups/growth.ts'
import { type Standing, measureLoads, warmUp } from './groups/load.ts'
import { measureOpenclaw } from './groups/openclaw.ts'
import { measureMachines } from './groups/machines.ts'
import { measurePaces, sleepers } from './groups/pace.ts'
import { measureProcesses } from './groups/process.ts'
import { measureSessions } from './groups/sessions.ts'
import { measureStarts } from './groups/start.ts'
import { logins, measureTokens } from './groups/token.ts'
import { measureClone } from './groups/clone.ts'
import { measureWaits } from './groups/waits.ts'
import { measureWorkspaces } from './groups/workspace.ts'
import { deliveryOf } from './load/delivery.ts'
import { describeMachine, hasProgram, moveToLoadCore } from './machine.ts'
import { versionsOfOpenclaw } from './openclaw-folder.ts'
import { type Options, groupNames, readOptions } from './options.ts'
import { results } from './report/results.ts'
import { rowsOf } from './report/rows.ts'
import type { Note, Sample } from './report/sample.ts'
import { asText, goalsTable, growthTable } from './report/table.ts'
import { startDoorward } from './servers/doorward.ts'
import { type HangingProvider, startHangingProvider } from './servers/hanging-provider.ts'
import { startOidcAgent } from './servers/oidc-agent.ts'
import { startAdnanh, startPeer } from './servers/peers.ts'

/*
 * The story of a measurement: start all servers -> in each round, give each of them the same load ->
 * medians over the rounds, compared with the goals -> the table, JSON lines, and bench/RESULTS.md.
 */

const main = async (): Promise<void> => {
  const options = readOptions(process.argv.slice(2))
  const missing = await warnMissingPrograms()
  if (missing !== undefined) return console.log(`bench: not measured: ${missing}`)
  moveToLoadCore()
  const folder = await mkdtemp(join(tmpdir(), 'doorward-bench-'))
  const provider = await startHangingProvider()
  const standing = await startAll(folder, provider, options)
  const samples: Sample[] = []
  const growth: Sample[] = []
  try {
    await warmUp(standing, options)
    for (let round = 0; round < options.rounds; round += 1) {
      const into =
        (samples: Sample[]): Note =>
        (sample) =>
          void samples.push({ ...sample, round })
      await measureRound({ standing, provider, folder, options, round }, into(samples))
      if (options.groups.includes('growth')) await measureGrowth(into(growth))
      console.error(`round ${round + 1} of ${options.rounds}`)
    }
  } finally {
    provider.close()
    const { bare, koa, adnanh, doorward, oidcAgent } = standing
    await Promise.all(
      [bare, koa, adnanh, doorward, oidcAgent].map(async (server) => server?.stop()),
    )
    await rm(folder, { recursive: true, force: true })
  }
  await report(samples, growth, options)
}

const warnMissingPrograms = async (): Promise<string | undefined> => {
  if (process.platform !== 'linux') return 'it reads /proc and pins processes to cores: Linux only'
  for (const name of ['wrk', 'taskset'])
    if (!(await hasProgram(name))) return `${name} is not installed`
  return undefined
}

/** Measured where installed: name, program, package. */
const peers = [
  ['adnanh/webhook', 'webhook', 'webhook'],
  ['gh', 'gh', 'gh'],
  ['oidc-agent', 'oidc-agent', 'oidc-agent-cli'],
] as const

const startAll = async (
  folder: string,
  { origin }: HangingProvider,
  { profile }: Options,
): Promise<Standing> => {
  const first = await deliveryOf('1 KB')
  const { gateway, tokens } = logins(origin)
  const isThere = await hasProgram('webhook')
  for (const [name, program, debian] of peers)
    if (!(await hasProgram(program)))
      console.error(`${name} is left out: not installed (Debian: ${debian})`)
  if (!versionsOfOpenclaw()) console.error('openclaw is left out: see bench/README.md')
  return {
    bare: await startPeer('bare', first),
    koa: await startPeer('koa', first),
    adnanh: isThere ? await startAdnanh(folder, ['true'], first) : undefined,
    doorward: await startDoorward({
      first,
      webhooks: sleepers.webhook,
      agents: sleepers.agent,
      gateway: `queue: { concurrency: 8 }\n${gateway}`,
      tokens,
      profile,
    }),
    oidcAgent: await startOidcAgent(origin),
  }
}

type Round = {
  readonly standing: Standing
  readonly provider: HangingProvider
  readonly folder: string
  readonly options: Options
  readonly round: number
}

const measureRound = async (
  { standing, provider, folder, options, round }: Round,
  note: Note,
): Promise<void> => {
  const { groups, seconds, isShort } = options
  if (groups.includes('load')) await measureLoads(standing, { seconds, round, isShort }, note)
  if (groups.includes('load') && !isShort && versionsOfOpenclaw())
    await measureOpenclaw(folder, { seconds }, note)
  if (groups.includes('pace')) await measurePaces(standing, { seconds, isShort }, note)
  if (groups.includes('token')) await measureTokens(standing, { seconds, provider }, note)
  if (groups.includes('start'))
    await measureStarts(folder, { hasAdnanh: standing.adnanh !== undefined, isShort }, note)
  if (groups.includes('process')) await measureProcesses(standing, folder, note)
  if (groups.includes('workspace') && (await hasProgram('git')))
    await measureWorkspaces(folder, note)
  if (groups.includes('waits')) {
    await measureWaits(folder, { hasAdnanh: standing.adnanh !== undefined, isShort }, note)
    if (!isShort && round === 0) await measureClone(folder, note)
  }
  if (groups.includes('machines') && !isShort && (await hasProgram('nats-server')))
    await measureMachines({ seconds }, note)
  if (groups.includes('sessions') && round === 0) await measureSessions(folder, note)
}

const report = async (
  samples: readonly Sample[],
  growth: readonly Sample[],
  { rounds, seconds, isShort, groups }: Options,
): Promise<void> => {
  const rows = rowsOf(samples)
  const machine = await describeMachine()
  const how = `medians of ${rounds} ${rounds === 1 ? 'round' : 'rounds'} in turn, ${seconds} s for each load`
  console.log([...machine, how, '', asText(goalsTable(rows))].join('\n'))
  if (growth.length > 0) console.log(`\n${asText(growthTable(growth))}`)
  console.log('')
  for (const row of rows) console.log(JSON.stringify(row))
  if (growth.length > 0) for (const row of rowsOf(growth)) console.log(JSON.stringify(row))
  // Only a complete run is written to the file.
  if (isShort || groups.length < groupNames.length) return
  const file = new URL('bench/RESULTS.md', packageFolder)
  await writeFile(file, results({ machine: [...machine, how], rows, growth, date: new Date() }))
  console.log('\nwrote bench/RESULTS.md')
}

await main()
