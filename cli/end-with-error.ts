import { endQuietlyWhenClosed } from './end-quietly.ts'
import { exitCodeOf, exitInterrupted } from './exit-code.ts'

/** Says what went wrong, and sees to the exit code; who has interrupted us knows. */
export const endWithError = async (
  error: unknown,
  json: boolean,
  exitCode = exitCodeOf(error),
): Promise<void> => {
  endQuietlyWhenClosed()
  process.exitCode = exitCode
  if (exitCode === exitInterrupted) return
  const { reportError } = await import('./report-error.ts')
  reportError(error, json)
}
