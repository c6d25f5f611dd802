import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { packageFolder } from '../../shared/version.ts'
import { median } from '../quantile.ts'
import type { Note } from '../report/sample.ts'
import type { Doorward } from '../servers/doorward.ts'

/* A whole process of the command line, beside a Node that does nothing. */

const run = promisify(execFile)
const times = 5

export const measureProcesses = async ({ home }: Doorward, note: Note): Promise<void> => {
  const text = await readFile(new URL('package.json', packageFolder), 'utf8')
  const { bin } = JSON.parse(text) as { bin: { doorward: string } }
  const cli = fileURLToPath(new URL(bin.doorward, packageFolder))
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
  const start = performance.now()
  await run(process.execPath, [...args])
  return performance.now() - start
}
