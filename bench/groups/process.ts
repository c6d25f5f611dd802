import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cliProgram, packageFolder } from '../../shared/version.ts'
import { hasProgram } from '../machine.ts'
import { median } from '../quantile.ts'
import type { Column, Note } from '../report/sample.ts'
import { writeGhConfig } from '../servers/gh-config.ts'
import type { Standing } from './load.ts'

/*
 * A whole process of the command line, compared with a Node that does nothing and with the programs that
 * people use for tokens today. Node reads the file of NODE_EXTRA_CA_CERTS at every start, which makes all of them
 * slower: it is left out. More: bench/cli.ts.
 */

const run = promisify(execFile)
const times = 9

type Program = {
  readonly column: Column
  readonly file: string
  readonly env: NodeJS.ProcessEnv
  readonly version: readonly string[]
  readonly token: readonly string[]
}

export const measureProcesses = async (
  { doorward, oidcAgent }: Standing,
  folder: string,
  note: Note,
): Promise<void> => {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const node = { file: process.execPath, env }
  const cli = fileURLToPath(new URL(cliProgram, packageFolder))
  const ask = ['--home', doorward.home.root, '--no-start', 'oauth', 'token', 'cached']
  const nothing = ['-e', '0']
  const programs: Program[] = [
    { column: 'bare', ...node, version: nothing, token: nothing },
    { column: 'doorward', ...node, version: [cli, '--version'], token: [cli, ...ask] },
  ]
  if (await hasProgram('gh')) {
    const env = await writeGhConfig(folder)
    const token = ['auth', 'token']
    programs.push({ column: 'gh', file: 'gh', env, version: ['--version'], token })
  }
  if (oidcAgent)
    programs.push({
      column: 'oidc-agent',
      file: 'oidc-token',
      env: oidcAgent.env,
      version: ['--version'],
      token: ['cached'],
    })
  for (const [row, command] of [
    ['doorward --version', 'version'],
    ['doorward oauth token', 'token'],
  ] as const) {
    const took = programs.map((): number[] => [])
    for (let count = 0; count < times; count += 1)
      for (const [index, program] of programs.entries())
        took[index]?.push(await timeOf(program, program[command]))
    for (const [index, { column }] of programs.entries())
      note({ row, measure: 'ms', column, value: median(took[index] ?? []) })
  }
}

const timeOf = async ({ file, env }: Program, args: readonly string[]): Promise<number> => {
  const start = performance.now()
  await run(file, args, { env })
  return performance.now() - start
}
