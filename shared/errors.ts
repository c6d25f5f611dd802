/**
 * Every error code with the HTTP status of its problem document. Codes are stable once released, and in
 * kebab-case. `cli/exit-code.ts` has their exit codes.
 */
export const errorStatuses = {
  // home and configuration
  'home-unusable': 500,
  'home-insecure': 500,
  'config-invalid': 422,
  'already-running': 409,
  'port-in-use': 409,
  'restart-failed': 500,
  // between a local client and the daemon
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
  // receiving a webhook
  'webhook-not-found': 404,
  'signature-invalid': 401,
  unavailable: 503,
  'rate-limited': 429,
  'queue-full': 503,
  stopping: 503,
  'payload-not-json': 400,
  'event-mismatch': 400,
  'media-type-unsupported': 415,
  'body-too-large': 413,
  'template-failed': 422,
  'body-timeout': 408,
  'body-aborted': 400,
  // processing an event
  'event-not-found': 404,
  'prompt-not-found': 404,
  'event-dropped': 503,
  'event-cancelled': 409,
  'over-budget': 429,
  superseded: 409,
  'event-not-cancellable': 409,
  'event-not-retryable': 409,
  'schedule-not-found': 404,
  'schedule-failed': 502,
  skipped: 409,
  'event-not-waiting': 409,
  'approval-mismatch': 409,
  'event-not-finished': 409,
  'session-not-found': 404,
  'session-changed': 409,
  'workspace-invalid': 422,
  'paths-unmatched': 422,
  'not-allowed': 403,
  'workspace-ref-not-found': 404,
  'workspace-refused': 502,
  'workspace-git-missing': 500,
  'workspace-failed': 500,
  'agent-not-found': 500,
  'sandbox-unavailable': 500,
  'agent-failed': 502,
  'agent-timeout': 504,
  'budget-reached': 402,
  'limit-reached': 507,
  'answer-has-secret': 422,
  'agent-stopped': 503,
  'target-invalid': 422,
  'delivery-failed': 502,
  'branch-moved': 409,
  'push-fork': 409,
  'push-not-allowed': 403,
  // hooks at senders
  'source-failed': 502,
  'scope-missing': 409,
  'hook-foreign': 409,
  // the tunnel
  'tunnel-failed': 502,
  'tunnel-down': 502,
  // logins and tokens
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
  // bots
  'bot-exists': 409,
  'bot-not-found': 404,
  'bot-not-installed': 409,
  'bot-refused': 502,
  'repository-needed': 400,
  // the tray
  'tray-library-missing': 500,
  'tray-no-display': 500,
  'tray-no-host': 500,
  'tray-not-runnable': 500,
  'tray-wrong-processor': 500,
  'tray-failed': 500,
  // starting at login
  'login-item-foreign': 409,
  'login-item-failed': 500,
  // the command line
  usage: 400,
  'command-not-found': 500,
  'command-not-runnable': 500,
  interrupted: 499,
  // a bug
  internal: 500,
} as const

export type ErrorCode = keyof typeof errorStatuses

/** What an error or a problem is about, for programs: they never read the sentences. */
export type About = {
  /** `github`, or `github@work` for an account with a name. */
  readonly provider?: string | undefined
  /** Path of the webhook. */
  readonly webhook?: string | undefined
  /** Name of the agent. */
  readonly agent?: string | undefined
  /** `kind:name` of the target, or its kind. */
  readonly target?: string | undefined
  /** An OAuth scope that is missing. */
  readonly scope?: string | undefined
  /** Id of the event. */
  readonly event?: string | undefined
  /** The file of the home that fixes it, such as `config/agents.yaml` or `.env`. */
  readonly file?: string | undefined
  /** A TCP port that another program uses. */
  readonly port?: number | undefined
}

type ErrorDetails = {
  /** The way out: a command to run or a setting to change. */
  readonly hint?: string | undefined
  readonly about?: About | undefined
  readonly cause?: unknown
  /** How long the other side asked to wait. */
  readonly retryAfterMs?: number | undefined
  /**
   * Details for the owner of this machine: for the local event, never for a response to a sender. Contains no
   * secret.
   */
  readonly localDetail?: string
}

/**
 * The one error class of doorward. The message says what, which and why, in lower case and without
 * a period, and never holds a token, secret, MAC, code, verifier, prompt or payload.
 */
export class DoorwardError extends Error {
  override readonly name = 'DoorwardError'
  readonly code: ErrorCode
  readonly hint: string | undefined
  readonly about: About | undefined
  readonly localDetail: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.hint = details.hint
    this.about = details.about
    this.localDetail = details.localDetail
    this.retryAfterMs = details.retryAfterMs
  }
}

/** The code of a system error (`ENOENT`, `EADDRINUSE`), or undefined for any other value. */
export const systemCode = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string'
    ? error.code
    : undefined

/** One safe line for any thrown value: class and code, never the message of a foreign error. */
export const errorName = (error: unknown): string => {
  if (error instanceof DoorwardError) return `${error.code}: ${error.message}`
  if (error instanceof Error) return [error.name, systemCode(error)].filter(Boolean).join(' ')
  return typeof error
}

/** An error as a problem of `GET /status`. */
export const toStatusProblem = (
  { code, message, hint, about }: DoorwardError,
  otherHint = '',
): { code: string; detail: string; hint: string; about?: About } => ({
  code,
  detail: message,
  hint: hint ?? otherHint,
  ...(about && { about }),
})

/** The document that `--json` prints on standard error, with the field names of the API. */
type ErrorDocument = {
  readonly code: string
  readonly detail: string
  readonly hint?: string
  readonly about?: About
  readonly problems?: readonly unknown[]
}

/** Any thrown value as a document, with the text of `errorName` for a foreign error. */
export const errorDocument = (error: unknown): ErrorDocument => {
  if (!(error instanceof DoorwardError))
    return {
      code: 'internal',
      detail: `something went wrong (${errorName(error)})`,
      hint: 'run it again with DOORWARD_DEBUG=1 to see where',
    }
  return {
    code: error.code,
    detail: error.message,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.about === undefined ? {} : { about: error.about }),
    ...('problems' in error && Array.isArray(error.problems) ? { problems: error.problems } : {}),
  }
}

/** The first reason why a text is not a webhook path. */
export const pathFault = (text: string): string => {
  if (!text.startsWith('/')) return 'it does not start with /'
  const [foreign] = /[^A-Za-z0-9._~!$&'()*+,;=:@/-]/u.exec(text) ?? []
  if (foreign !== undefined)
    return `it has ${describeCharacter(foreign)} in it; only letters from a to z, digits and - . _ ~ ! $ & ' ( ) * + , ; = : @ are allowed`
  return text.includes('/.') ? 'a part of it starts with a dot' : 'a part of it is empty'
}

/** The code point of a character that is invisible or combines with the one before it. */
const describeCharacter = (character: string): string => {
  if (character === ' ') return 'a space'
  const number = character.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')
  return /[\p{C}\p{M}\p{Z}]/u.test(character) ? `the character U+${number}` : `"${character}"`
}
