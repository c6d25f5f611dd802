import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { cliProgram, packageFolder } from '../../shared/version.ts'
import { median } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import type { Doorward } from '../servers/doorward.ts'

/*
 * A whole process of the command line, beside a Node that does nothing. Node reads the file of
 * NODE_EXTRA_CA_CERTS at every start, which makes all of them slower: it is left out. More: bench/cli.ts.
 */

const run = promisify(execFile)
const times = 9

export const measureProcesses = async ({ home }: Doorward, note: Note): Promise<void> => {
  const cli = fileURLToPath(new URL(cliProgram, packageFolder))
  const token = ['--home', home.root, '--no-start', 'oauth', 'token', 'cached']
  const took: Record<'nothing' | 'version' | 'token', number[]> = {
    nothing: [],
    version: [],
    token: [],
  }
  for (let count = 0; count < times; count += 1) {
    took.nothing.push(await timeOf(['-e', '0']))
    took.version.push(await timeOf([cli, '--version']))
    took.token.push(await timeOf([cli, ...token]))
  }
  for (const [row, mine] of [
    ['doorward --version', took.version],
    ['doorward oauth token', took.token],
  ] as const) {
    note({ row, measure: 'ms', column: 'bare', value: median(took.nothing) })
    note({ row, measure: 'ms', column: 'doorward', value: median(mine) })
  }
}

const timeOf = async (args: readonly string[]): Promise<number> => {
  const { NODE_EXTRA_CA_CERTS: _, ...env } = process.env
  const start = performance.now()
  await run(process.execPath, [...args], { env })
  return performance.now() - start
}
