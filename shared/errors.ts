/**
 * Every error code. Stable once released; kebab-case.
 * The HTTP status of a code is in `daemon/http/problem.ts`, its exit code in `cli/exit-code.ts`.
 */
export type ErrorCode =
  // home and configuration
  | 'home-unusable'
  | 'home-insecure'
  | 'config-invalid'
  | 'already-running'
  | 'port-in-use'
  | 'restart-failed'
  // between a local client and the daemon
  | 'daemon-unreachable'
  | 'daemon-silent'
  | 'daemon-foreign'
  | 'peer-forbidden'
  | 'host-forbidden'
  | 'forwarded-forbidden'
  | 'origin-forbidden'
  | 'unauthorized'
  | 'not-found'
  | 'method-not-allowed'
  | 'request-invalid'
  | 'request-timeout'
  | 'headers-too-large'
  // receiving a webhook
  | 'webhook-not-found'
  | 'signature-invalid'
  | 'unavailable'
  | 'rate-limited'
  | 'queue-full'
  | 'stopping'
  | 'payload-not-json'
  | 'media-type-unsupported'
  | 'body-too-large'
  | 'template-failed'
  | 'body-timeout'
  | 'body-aborted'
  // processing an event
  | 'event-not-found'
  | 'event-dropped'
  | 'event-cancelled'
  | 'over-budget'
  | 'superseded'
  | 'event-not-cancellable'
  | 'event-not-retryable'
  | 'workspace-invalid'
  | 'workspace-ref-not-found'
  | 'workspace-refused'
  | 'workspace-git-missing'
  | 'workspace-failed'
  | 'agent-not-found'
  | 'sandbox-unavailable'
  | 'agent-failed'
  | 'agent-timeout'
  | 'agent-stopped'
  | 'target-invalid'
  | 'delivery-failed'
  // hooks at senders
  | 'source-failed'
  | 'scope-missing'
  | 'hook-foreign'
  // the tunnel
  | 'tunnel-failed'
  | 'tunnel-down'
  // logins and tokens
  | 'provider-unknown'
  | 'provider-misconfigured'
  | 'client-unknown'
  | 'callback-port-in-use'
  | 'callback-invalid'
  | 'login-not-found'
  | 'login-not-pending'
  | 'login-denied'
  | 'login-cancelled'
  | 'login-expired'
  | 'issuer-mismatch'
  | 'provider-refused'
  | 'provider-unavailable'
  | 'not-logged-in'
  | 'needs-login'
  | 'token-file-damaged'
  | 'token-file-insecure'
  | 'keychain-unavailable'
  // the tray
  | 'tray-library-missing'
  | 'tray-no-display'
  | 'tray-no-host'
  | 'tray-not-runnable'
  | 'tray-wrong-processor'
  | 'tray-failed'
  // starting at login
  | 'login-item-foreign'
  | 'login-item-failed'
  // the command line
  | 'usage'
  | 'command-not-found'
  | 'command-not-runnable'
  | 'interrupted'
  // a bug
  | 'internal'

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
  /** What to do about it: a command to run or a setting to change. */
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

/** The document that `--json` prints on standard error, with the field names of the API. */
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
