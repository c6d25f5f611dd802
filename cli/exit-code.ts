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

/** The exit code of every error code; a new code does not compile without one. */
const exitCodes: Readonly<Record<ErrorCode, number>> = {
  'home-unusable': exitFailed,
  'home-insecure': exitFailed,
  'config-invalid': exitFailed,
  'already-running': exitFailed,
  'port-in-use': exitFailed,
  'restart-failed': exitFailed,
  'daemon-unreachable': exitUnreachable,
  'daemon-silent': exitUnreachable,
  'daemon-foreign': exitUnreachable,
  'peer-forbidden': exitFailed,
  'host-forbidden': exitFailed,
  'forwarded-forbidden': exitFailed,
  'origin-forbidden': exitFailed,
  unauthorized: exitFailed,
  'not-found': exitFailed,
  'method-not-allowed': exitFailed,
  'request-invalid': exitFailed,
  'request-timeout': exitFailed,
  'headers-too-large': exitFailed,
  'webhook-not-found': exitFailed,
  'signature-invalid': exitFailed,
  unavailable: exitFailed,
  'rate-limited': exitFailed,
  'queue-full': exitFailed,
  stopping: exitFailed,
  'payload-not-json': exitFailed,
  'media-type-unsupported': exitFailed,
  'body-too-large': exitFailed,
  'template-failed': exitFailed,
  'body-timeout': exitFailed,
  'body-aborted': exitFailed,
  'event-not-found': exitFailed,
  'event-dropped': exitFailed,
  'event-cancelled': exitFailed,
  'over-budget': exitFailed,
  superseded: exitFailed,
  'event-not-cancellable': exitFailed,
  'event-not-retryable': exitFailed,
  'workspace-invalid': exitFailed,
  'workspace-ref-not-found': exitFailed,
  'workspace-refused': exitFailed,
  'workspace-git-missing': exitFailed,
  'workspace-failed': exitFailed,
  'agent-not-found': exitFailed,
  'sandbox-unavailable': exitFailed,
  'agent-failed': exitFailed,
  'agent-timeout': exitFailed,
  'agent-stopped': exitFailed,
  'target-invalid': exitFailed,
  'delivery-failed': exitFailed,
  'source-failed': exitFailed,
  'scope-missing': exitLoginNeeded,
  'hook-foreign': exitFailed,
  'tunnel-failed': exitFailed,
  'tunnel-down': exitFailed,
  'provider-unknown': exitFailed,
  'provider-misconfigured': exitFailed,
  'client-unknown': exitFailed,
  'callback-port-in-use': exitFailed,
  'callback-invalid': exitFailed,
  'login-not-found': exitFailed,
  'login-not-pending': exitFailed,
  'login-denied': exitFailed,
  'login-cancelled': exitFailed,
  'login-expired': exitFailed,
  'issuer-mismatch': exitFailed,
  'provider-refused': exitFailed,
  'provider-unavailable': exitFailed,
  'not-logged-in': exitLoginNeeded,
  'needs-login': exitLoginNeeded,
  'token-file-damaged': exitLoginNeeded,
  'token-file-insecure': exitFailed,
  'keychain-unavailable': exitFailed,
  'tray-library-missing': exitFailed,
  'tray-no-display': exitFailed,
  'tray-no-host': exitFailed,
  'tray-not-runnable': exitFailed,
  'tray-wrong-processor': exitFailed,
  'tray-failed': exitFailed,
  'login-item-foreign': exitFailed,
  'login-item-failed': exitFailed,
  usage: exitUsage,
  'command-not-found': exitNotFound,
  'command-not-runnable': exitNotRunnable,
  interrupted: exitInterrupted,
  internal: exitFailed,
}

/** What the process ends with after this error; 1 for anything unknown. */
export const toExitCode = (error: unknown): number => {
  if (!(error instanceof DoorwardError)) return exitFailed
  // An error that says so itself; and a newer daemon may send a code that this table does not have.
  if ('exitCode' in error && typeof error.exitCode === 'number') return error.exitCode
  return exitCodes[error.code] ?? exitFailed
}
