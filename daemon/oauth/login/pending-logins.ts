import { randomBytes } from 'node:crypto'
import type { Account, Login } from '../../../shared/api/api.ts'
import { constantTimeEqual } from '../../../shared/constant-time.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { longTimeout, waitToBeCalled } from '../../util/concurrency.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { toRegisterHint, LoginError, type LoginOptions } from '../providers/errors.ts'
import type { Provider } from '../providers/providers.ts'

/** The input of a login. */
export type LoginRequest = {
  readonly provider: Provider
  readonly client: Client
  /** Options that the next login needs again if this one fails. */
  readonly clientOptions: LoginOptions
  readonly endpoints: Endpoints
  /** True where the scopes are not the provider's default. */
  readonly areScopesChosen: boolean
}

/** A login of either kind. */
type StartedLogin = LoginRequest & {
  readonly loginId: string
  readonly scopes: readonly string[]
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** Aborted when the login ends, for any reason. */
  readonly control: AbortController
}

/** A login that waits for a browser. Its callback is found by `state`, which the login id does not reveal. */
export type CodeAttempt = StartedLogin & {
  readonly kind: 'code'
  readonly state: string
  readonly codeVerifier: string
  /** Set if the scopes include openid. */
  readonly nonce?: string
  readonly redirectUri: string
  /** Until when the page can be opened, where the provider limits that. Milliseconds since 1970. */
  readonly openBefore?: number
}

/** A login that waits until its code is entered at the provider (RFC 8628). */
export type DeviceAttempt = StartedLogin & { readonly kind: 'device' }

export type Attempt = CodeAttempt | DeviceAttempt

export type Authorized = {
  readonly status: 'authorized'
  readonly account: Account | null
  /** The account whose login was replaced, if it is another one. */
  readonly replaced?: Account
  /** Another login of the same account. */
  readonly sameAccountAs?: string
  /** Scopes that were requested and not granted; undefined when nothing is missing. */
  readonly missingScopes?: string[]
}

/** How a login ended. */
export type Outcome =
  | Authorized
  | { readonly status: 'failed' | 'expired' | 'cancelled'; readonly error: DoorwardError }

/** A login that is being saved can no longer be cancelled. */
type Phase = 'waiting' | 'exchanging' | 'saving'

type Entry = {
  readonly attempt: Attempt
  phase: Phase
  outcome: Outcome | undefined
  timer: NodeJS.Timeout | undefined
  readonly waiters: Set<() => void>
}

const keepFinishedMs = 10 * 60 * 1000
const maxFinished = 100
const maxPending = 20

/** 256 random bits, as text that fits a URL. */
export const randomText = (): string => randomBytes(32).toString('base64url')

type Listeners = {
  /** Called once for each login. */
  readonly onBegin: (attempt: Attempt) => void
  /** Called once for each login, however it ends. */
  readonly onEnd: (attempt: Attempt, outcome: Outcome) => void
}

/** The pending logins, and for ten minutes those that have ended. */
export class PendingLogins {
  readonly #entries = new Map<string, Entry>()
  readonly #listeners: Listeners

  constructor(listeners: Listeners) {
    this.#listeners = listeners
  }

  /** `now` is in milliseconds since 1970. */
  add(attempt: Attempt, now: number): void {
    const open = [...this.#entries.values()].filter((entry) => !entry.outcome)
    const oldest = open.find(({ phase }) => phase !== 'saving')
    if (open.length >= maxPending && oldest)
      this.#cancelEntry(oldest, `more than ${maxPending} logins were pending; this was the oldest`)
    const expire = () =>
      this.settle(attempt, {
        status: 'expired',
        error: new LoginError(
          'login-expired',
          `the login to ${attempt.provider.name} was not finished in time`,
          { provider: attempt.provider.name, first: expiredHint(attempt) },
        ),
      })
    this.#entries.set(attempt.loginId, {
      attempt,
      phase: 'waiting',
      outcome: undefined,
      timer: longTimeout(expire, attempt.expiresAt - now).unref(),
      waiters: new Set(),
    })
    this.#listeners.onBegin(attempt)
  }

  /** The login that waits for this state. Compares with all of them in constant time. */
  findByState(state: string): CodeAttempt | undefined {
    const waiting = [...this.#entries.values()].filter(isWaiting).map(({ attempt }) => attempt)
    const forBrowser = waiting.filter((attempt) => attempt.kind === 'code')
    return forBrowser.filter((attempt) => constantTimeEqual(attempt.state, state))[0]
  }

  /** The login of this id if it still waits for approval. Throws `login-not-pending`. */
  waitingAttempt(loginId: string): Attempt {
    const entry = this.#getEntry(loginId)
    if (isWaiting(entry)) return entry.attempt
    throw new DoorwardError('login-not-pending', `this login is ${describeEntry(entry)}`)
  }

  /** Uses up the state: no other request can be the callback of this login. */
  consume(attempt: Attempt): void {
    const entry = this.#getEntry(attempt.loginId)
    entry.phase = 'exchanging'
    // The exchange has its own time limit; tokens that came in time are not thrown away.
    clearTimeout(entry.timer)
  }

  /** From here on a login cannot be cancelled. Throws `login-cancelled` if it has ended. */
  beginSaving(attempt: Attempt): void {
    const entry = this.#getEntry(attempt.loginId)
    if (entry.outcome) throw new DoorwardError('login-cancelled', 'the login was cancelled')
    entry.phase = 'saving'
  }

  /** Ends a login and returns its outcome: this one, or an earlier one if it had ended before. */
  settle(attempt: Attempt, ended: Outcome): Outcome {
    const entry = this.#getEntry(attempt.loginId)
    if (entry.outcome) return entry.outcome
    const outcome = withClientOptions(attempt, ended)
    entry.outcome = outcome
    attempt.control.abort()
    clearTimeout(entry.timer)
    entry.timer = longTimeout(() => this.#entries.delete(attempt.loginId), keepFinishedMs).unref()
    for (const resolve of entry.waiters) resolve()
    this.#forgetOldest()
    this.#listeners.onEnd(attempt, outcome)
    return outcome
  }

  /** Cancels a login; one that was cancelled stays so. Throws `login-not-pending` for any other end. */
  cancel(loginId: string): void {
    const entry = this.#getEntry(loginId)
    if (entry.outcome?.status === 'cancelled') return
    if (entry.outcome || entry.phase === 'saving')
      throw new DoorwardError('login-not-pending', `this login is ${describeEntry(entry)}`)
    this.#cancelEntry(entry, 'the login was cancelled')
  }

  /** A login as the local API shows it. */
  view(loginId: string): Login {
    const { attempt, outcome } = this.#getEntry(loginId)
    const view = { loginId, provider: attempt.provider.name }
    if (!outcome) return { ...view, status: 'pending' }
    if (outcome.status === 'authorized') return { ...view, ...outcome }
    const { code, message, hint } = outcome.error
    const error = { code, message, ...(hint !== undefined && { hint }) }
    return { ...view, status: outcome.status, error }
  }

  /** Resolves when the login ends, the time is over or the signal is aborted. */
  async waitForEnd(loginId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const entry = this.#getEntry(loginId)
    if (entry.outcome || signal.aborted) return
    await waitToBeCalled(entry.waiters, timeoutMs, signal)
  }

  /** Cancels every login that is not being saved and clears all timers. */
  close(why: string): void {
    for (const entry of this.#entries.values()) {
      if (!entry.outcome && entry.phase !== 'saving') this.#cancelEntry(entry, why)
      clearTimeout(entry.timer)
    }
  }

  #getEntry(loginId: string): Entry {
    const entry = this.#entries.get(loginId)
    if (entry) return entry
    throw new DoorwardError('login-not-found', 'there is no login with this id', {
      hint: 'a login is forgotten ten minutes after its end and when the daemon stops',
    })
  }

  #cancelEntry({ attempt }: Entry, why: string): void {
    this.settle(attempt, { status: 'cancelled', error: new DoorwardError('login-cancelled', why) })
  }

  #forgetOldest(): void {
    const finished = [...this.#entries.values()].filter((entry) => entry.outcome)
    for (const entry of finished.slice(0, Math.max(0, finished.length - maxFinished))) {
      clearTimeout(entry.timer)
      this.#entries.delete(entry.attempt.loginId)
    }
  }
}

/** Adds to an error what the next login needs again. */
const withClientOptions = ({ provider, clientOptions }: Attempt, ended: Outcome): Outcome => {
  if (ended.status === 'authorized') return ended
  const { error } = ended
  const { code, message, hint } = error
  if (error instanceof LoginError) return { ...ended, error: error.withOptions(clientOptions) }
  if (hint !== undefined) return ended
  const next = { provider: provider.name, options: clientOptions }
  return { ...ended, error: new LoginError(code, message, next) }
}

/** A provider that does not know the redirect URI, or a pushed request any more, shows an error and sends nothing back. */
const expiredHint = (attempt: Attempt): string | undefined => {
  if (attempt.kind !== 'code') return undefined
  const { provider, redirectUri, openBefore } = attempt
  return openBefore === undefined
    ? `if ${provider.title} showed an error about the redirect URI, ${toRegisterHint(provider, redirectUri)}`
    : `be ready to open the page of ${provider.title} right away, as its address expires soon`
}

const isWaiting = (entry: Entry): boolean => !entry.outcome && entry.phase === 'waiting'

const describeEntry = (entry: Entry): string => entry.outcome?.status ?? 'being finished'

/**
 * The options that name this client, if the next login needs them again: a client is only remembered once a
 * login has worked.
 */
export const toClientOptions = (client: Client, known: Client | undefined): LoginOptions => {
  const isIdNew = client.clientId !== known?.clientId
  const isSecretNew =
    client.clientSecret !== undefined && (isIdNew || client.clientSecret !== known?.clientSecret)
  // Safe in any shell; a client id is not a secret.
  const clientId = /^[\w.:@/+-]+$/.test(client.clientId) ? client.clientId : 'ID'
  return { ...(isIdNew && { clientId }), ...(isSecretNew && { secret: true }) }
}
