import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { DoctorDocument } from '../../../cli/commands/doctor/doctor.ts'
import type { Check } from '../../../shared/api/checks.ts'
import type { Home } from '../../../shared/home/home.ts'
import { type CliResult, run } from '../../cli/support/cli.ts'

export type Examined = CliResult & {
  readonly document: DoctorDocument
  /** The checks of a group; with a name, those of that name. */
  readonly of: (group: Check['group'], name?: string) => Check[]
}

/** What the built `doorward doctor --json` finds in a home. */
export const examined = async (
  home: Home,
  env: Readonly<Record<string, string | undefined>> = {},
  ...args: string[]
): Promise<Examined> => {
  const result = await run(['doctor', '--json', ...args], { home, env })
  const document = JSON.parse(result.stdout) as DoctorDocument
  return {
    ...result,
    document,
    of: (group, name) =>
      document.checks.filter(
        (check) => check.group === group && (name === undefined || check.name === name),
      ),
  }
}

/** A program of its own that holds a port of this machine and says nothing there. */
export const holdPort = async () => {
  const script = `require('node:net').createServer().listen(0, '127.0.0.1', function () {
    console.log(this.address().port)
  })`
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  return {
    port: Number(line.toString()),
    pid: child.pid,
    end: async () => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    },
  }
}
