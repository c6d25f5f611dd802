import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Client, connect } from '../../shared/client/client.ts'
import type { StartFailure } from '../../shared/client/spawn.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { cliProgram, getUserAgent, packageFolder } from '../../shared/version.ts'
import { toLabel } from '../text.ts'

/** Runs `use` with a connection to the daemon of a home. Throws what `connect` and `use` throw. */
export const withDaemon = async <Value>(
  home: Home,
  use: (client: Client) => Promise<Value>,
): Promise<Value> => {
  const client = await connect(home, { userAgent: getUserAgent('tray') })
  try {
    return await use(client)
  } finally {
    client.close()
  }
}

type Output = { readonly succeeded: boolean; readonly stdout: string; readonly stderr: string }

const maxBytes = 1024 * 1024

/** Runs a command of the command line with `--json`, as a process of its own. Never rejects. */
export const runCommand = async (
  home: Home,
  words: readonly string[],
  limitMs: number,
): Promise<Output> =>
  new Promise((resolve) => {
    const cli = fileURLToPath(new URL(cliProgram, packageFolder))
    const args = [cli, ...words, '--json', '--home', home.root]
    const options = { timeout: limitMs, maxBuffer: maxBytes, windowsHide: true }
    execFile(process.execPath, args, options, (error, stdout, stderr) =>
      resolve({ succeeded: error === null, stdout, stderr }),
    )
  })

/** A daemon that is stopping may finish long work first. */
const limitMs = 30 * 60_000

/**
 * Starts the daemon as a terminal does: by the service manager where it is installed there, and after one
 * that is stopping. `restart` has a running daemon hand over to its successor. Throws the error that the
 * command prints; a running daemon goes on then.
 */
export const runDaemon = async (home: Home, how: 'start' | 'restart'): Promise<void> => {
  // The command would create it again.
  if (!existsSync(home.root))
    throw new DoorwardError('home-unusable', `the folder ${home.root} does not exist`)
  const { succeeded, stderr } = await runCommand(home, ['daemon', how], limitMs)
  if (!succeeded) throw toError(stderr)
}

const toError = (stderr: string): DoorwardError => {
  try {
    const { code, detail, hint, about } = JSON.parse(
      stderr.slice(stderr.search(/^\{/m)),
    ) as StartFailure & { readonly hint?: string }
    return new DoorwardError(code, detail, { hint, about })
  } catch {
    return new DoorwardError('daemon-unreachable', 'it cannot be run', {
      hint: 'doorward daemon start',
    })
  }
}

/** Why a daemon did not start, in one line: of a broken file the line that says where. */
export const toStartFailure = (error: unknown, home: Home): StartFailure => {
  const { code, message, about } =
    error instanceof DoorwardError ? error : new DoorwardError('internal', 'something went wrong')
  const [first = '', second = first] = message.split('\n')
  const line = about?.file === undefined ? first : second
  return {
    code,
    detail: toLabel(line.replace(`${home.root}${sep}`, ''), 200),
    ...(about && { about }),
  }
}
