import { STATUS_CODES } from 'node:http'
import type { ProblemDocument } from '../../shared/api.ts'
import type { ErrorCode } from '../../shared/errors.ts'
import { knownError } from '../util/assets.ts'

/** The HTTP status of every code; a new code does not compile without one. */
const statusByCode: Readonly<Record<ErrorCode, number>> = {
  'home-unusable': 500,
  'home-insecure': 500,
  'config-invalid': 422,
  'already-running': 409,
  'port-in-use': 409,
  'restart-failed': 500,
  'daemon-unreachable': 502,
  'daemon-silent': 502,
  'daemon-foreign': 502,
  'peer-forbidden': 403,
  'host-forbidden': 403,
  'forwarded-forbidden': 403,
  'origin-forbidden': 403,
  unauthorized: 401,
  'not-found': 404,
  'method-not-allowed': 405,
  'request-invalid': 400,
  'request-timeout': 408,
  'headers-too-large': 431,
  'webhook-not-found': 404,
  'signature-invalid': 401,
  unavailable: 503,
  'rate-limited': 429,
  'queue-full': 503,
  stopping: 503,
  'payload-not-json': 400,
  'media-type-unsupported': 415,
  'body-too-large': 413,
  'template-failed': 422,
  'body-timeout': 408,
  'body-aborted': 400,
  'event-not-found': 404,
  'event-dropped': 503,
  'event-cancelled': 409,
  'over-budget': 429,
  superseded: 409,
  'event-not-cancellable': 409,
  'event-not-retryable': 409,
  'workspace-invalid': 422,
  'workspace-ref-not-found': 404,
  'workspace-refused': 502,
  'workspace-git-missing': 500,
  'workspace-failed': 500,
  'agent-not-found': 500,
  'sandbox-unavailable': 500,
  'agent-failed': 502,
  'agent-timeout': 504,
  'agent-stopped': 503,
  'target-invalid': 422,
  'delivery-failed': 502,
  'provider-unknown': 404,
  'provider-misconfigured': 422,
  'client-unknown': 409,
  'callback-port-in-use': 409,
  'callback-invalid': 400,
  'login-not-found': 404,
  'login-not-pending': 409,
  'login-denied': 403,
  'login-cancelled': 409,
  'login-expired': 410,
  'issuer-mismatch': 400,
  'provider-refused': 502,
  'provider-unavailable': 502,
  'not-logged-in': 404,
  'needs-login': 409,
  'token-file-damaged': 409,
  'token-file-insecure': 409,
  'keychain-unavailable': 409,
  'tray-library-missing': 500,
  'tray-no-display': 500,
  'tray-no-host': 500,
  'tray-not-runnable': 500,
  'tray-wrong-processor': 500,
  'tray-failed': 500,
  'login-item-foreign': 409,
  'login-item-failed': 500,
  usage: 400,
  'command-not-found': 500,
  'command-not-runnable': 500,
  interrupted: 499,
  internal: 500,
}

/**
 * Turns any thrown value into an RFC 9457 document. A `DoorwardError` keeps its message; anything
 * else becomes `internal` without its message, since other errors can contain tokens.
 */
export const toProblem = (error: unknown): ProblemDocument => {
  const known = knownError(error)
  const status = statusByCode[known.code]
  return {
    type: `urn:doorward:problem:${known.code}`,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: known.message,
    code: known.code,
    ...(known.hint === undefined ? {} : { hint: known.hint }),
  }
}

export const problemMediaType = 'application/problem+json; charset=utf-8'
