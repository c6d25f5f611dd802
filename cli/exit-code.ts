import { DoorwardError, type ErrorCode } from '../shared/errors.ts'

export const exitDone = 0
export const exitFailed = 1
export const exitUsage = 2
export const exitUnreachable = 3
export const exitLoginNeeded = 4
/** A start that fails until a person mends the configuration (EX_CONFIG of sysexits.h). */
export const exitUnusable = 78
/** The two of a command that cannot be started, as a shell and env(1) have them (POSIX, 2.8.2). */
export const exitNotRunnable = 126
export const exitNotFound = 127
export const exitInterrupted = 130

/** The error codes with an exit code other than 1. */
const exitCodes: Partial<Record<ErrorCode, number>> = {
  'daemon-unreachable': exitUnreachable,
  'daemon-silent': exitUnreachable,
  'daemon-foreign': exitUnreachable,
  'scope-missing': exitLoginNeeded,
  'not-logged-in': exitLoginNeeded,
  'needs-login': exitLoginNeeded,
  'token-file-damaged': exitLoginNeeded,
  usage: exitUsage,
  'command-not-found': exitNotFound,
  'command-not-runnable': exitNotRunnable,
  interrupted: exitInterrupted,
}

/** The exit code of the process after this error; 1 for anything unknown. */
export const toExitCode = (error: unknown): number => {
  if (!(error instanceof DoorwardError)) return exitFailed
  // Some errors name their own exit code.
  if ('exitCode' in error && typeof error.exitCode === 'number') return error.exitCode
  return exitCodes[error.code] ?? exitFailed
}
