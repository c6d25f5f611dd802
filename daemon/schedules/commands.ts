import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { systemReason } from '../../shared/home/home.ts'
import { toPlainLine } from '../../shared/text.ts'
import { cleanEnvironment } from '../agents/environment.ts'
import type { RunProcess } from '../agents/orphans.ts'

/*
 * The programs of a schedule: the owner's own, so without a sandbox, but with the clean environment of an agent.
 */

export type CommandParts = {
  readonly run: RunProcess
  /** The daemon's own. */
  readonly env: NodeJS.ProcessEnv
  readonly homeFolder: string
  readonly signal: AbortSignal
  /** They are in its environment: `DOORWARD_SCHEDULE_DUE_AT`. */
  readonly schedule: {
    readonly name: string
    readonly due_at: string
    readonly previous_at: string
  }
}

const skipTimeoutMs = 60_000
const contextTimeoutMs = 120_000
const contextBytes = 2 * 1024 * 1024

/** True where `skip_if` exits with 0. Throws `schedule-failed` where it cannot start, or does not end. */
export const isSkipped = async (argv: readonly string[], parts: CommandParts): Promise<boolean> => {
  const { exitCode } = await runCommand('skip_if', argv, skipTimeoutMs, parts)
  return exitCode === 0
}

/** Reads the standard output of `context_command`. Throws `schedule-failed` where it does not exit with 0. */
export const readCommandContext = async (
  argv: readonly string[],
  parts: CommandParts,
): Promise<string> => {
  const { exitCode, exitSignal, stdout, stderr, cut } = await runCommand(
    'context_command',
    argv,
    contextTimeoutMs,
    parts,
  )
  if (exitCode === 0) return `${stdout.toString('utf8')}${cut ? '\n[cut: 2 MB]' : ''}`
  const [last = ''] = stderr.toString('utf8').trimEnd().split('\n').slice(-1)
  const how = exitCode === null ? `was ended by ${exitSignal}` : `exited with ${exitCode}`
  throw failed(`context_command ${how}${last === '' ? '' : `: ${toPlainLine(last)}`}`)
}

const runCommand = async (
  key: string,
  argv: readonly string[],
  timeoutMs: number,
  { run, env, homeFolder, signal, schedule }: CommandParts,
) => {
  try {
    const result = await run({
      argv,
      cwd: homeFolder,
      env: cleanEnvironment(env, {}, new Map(), {
        set: {
          DOORWARD_SCHEDULE: schedule.name,
          DOORWARD_SCHEDULE_DUE_AT: schedule.due_at,
          DOORWARD_SCHEDULE_PREVIOUS_AT: schedule.previous_at,
        },
      }),
      input: '',
      timeoutMs,
      outputLimitBytes: contextBytes,
      signal,
    })
    if (result.reason === 'timeout') throw failed(`${key} did not end within ${timeoutMs / 1000} s`)
    if (result.reason === 'stopped') throw failed(`${key} was stopped with the daemon`)
    return result
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    const why = systemCode(error) === 'ENOENT' ? 'there is no such program' : systemReason(error)
    throw failed(`${key} cannot start ${argv[0]}: ${why}`)
  }
}

const failed = (message: string) =>
  new DoorwardError('schedule-failed', message, { hint: 'doorward config edit schedules' })
