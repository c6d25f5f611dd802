import { randomBytes } from 'node:crypto'
import type { Account, Login } from '../../../shared/api.ts'
import { isEqualInConstantTime } from '../../../shared/client/identity.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { type LongTimeout, longTimeout } from '../../util/abort.ts'
import type { Client } from '../providers/client-store.ts'
import type { Endpoints } from '../providers/discovery.ts'
import { registerHint } from '../providers/errors.ts'
import type { Provider } from '../providers/providers.ts'

/** What every login was started with, whichever way the person approves it. */
type LoginStart = {
  readonly loginId: string
  readonly provider: Provider
  readonly client: Client
  /** Options that name the client, as far as the next login would need them again. */
  readonly typedClient: string
  readonly endpoints: Endpoints
  readonly scopes: readonly string[]
  /** True where those are not the provider's own. */
  readonly areScopesChosen: boolean
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** Aborted when the login has ended, however it did: ends what is still asked for it. */
  readonly control: AbortController
}

/** A login that waits for a browser. Its state finds it; its id reveals nothing of the state. */
export type CodeAttempt = LoginStart & {
  readonly kind: 'code'
  readonly state: string
  readonly codeVerifier: string
  readonly redirectUri: string
}

/** A login that waits for its code to be entered at the provider (RFC 8628). */
export type DeviceAttempt = LoginStart & { readonly kind: 'device' }

export type Attempt = CodeAttempt | DeviceAttempt

export type Authorized = {
  readonly status: 'authorized'
  readonly account: Account | null
  /** Whose login this one took the place of, where that is another account. */
  readonly replaced?: Account
  /** What was asked for and not granted; left out when nothing is missing. */
  readonly missingScopes?: string[]
}

/** How a login ended. */
export type Outcome =
  | Authorized
  | { readonly status: 'failed' | 'expired' | 'cancelled'; readonly error: DoorwardError }

/** Waiting for the browser; exchanging its code; writing the tokens, when it is too late to cancel. */
type Phase = 'waiting' | 'exchanging' | 'saving'

type Entry = {
  readonly attempt: Attempt
  phase: Phase
  outcome: Outcome | undefined
  timer: LongTimeout | undefined
  readonly waiters: Set<() => void>
}

export type PendingLogins = ReturnType<typeof createPendingLogins>

const keepFinishedMs = 10 * 60 * 1000
const maxFinished = 100
const maxPending = 20

/** 256 random bits, as text that fits a URL. */
export const randomText = (): string => randomBytes(32).toString('base64url')

/**
 * The logins that wait for their callback, and for ten minutes those that ended. `onBegin` and `onEnd` are
 * called once for each, however it ends.
 */
export const createPendingLogins = (
  onBegin: (attempt: Attempt) => void,
  onEnd: (attempt: Attempt, outcome: Outcome) => void,
) => {
  const entries = new Map<string, Entry>()

  const entryOf = (loginId: string): Entry => {
    const entry = entries.get(loginId)
    if (entry) return entry
    throw new DoorwardError('login-not-found', 'there is no login of this id', {
      hint: 'a login is forgotten ten minutes after its end and when the daemon stops',
    })
  }

  const settle = (attempt: Attempt, ended: Outcome): Outcome => {
    const entry = entryOf(attempt.loginId)
    if (entry.outcome) return entry.outcome
    const outcome = withWayOut(attempt, ended)
    entry.outcome = outcome
    attempt.control.abort()
    entry.timer?.clear()
    entry.timer = longTimeout(() => entries.delete(attempt.loginId), keepFinishedMs).unref()
    for (const wake of entry.waiters) wake()
    forgetOldest()
    onEnd(attempt, outcome)
    return outcome
  }

  const forgetOldest = (): void => {
    const finished = [...entries.values()].filter((entry) => entry.outcome)
    for (const entry of finished.slice(0, Math.max(0, finished.length - maxFinished))) {
      entry.timer?.clear()
      entries.delete(entry.attempt.loginId)
    }
  }

  const cancelEntry = (entry: Entry, why: string): void => {
    settle(entry.attempt, { status: 'cancelled', error: new DoorwardError('login-cancelled', why) })
  }

  return {
    add(attempt: Attempt, now: number): void {
      const open = [...entries.values()].filter((entry) => !entry.outcome)
      const oldest = open.find(({ phase }) => phase !== 'saving')
      if (open.length >= maxPending && oldest)
        cancelEntry(oldest, `more than ${maxPending} logins waited, and this was the oldest`)
      const expire = () =>
        settle(attempt, {
          status: 'expired',
          error: new DoorwardError(
            'login-expired',
            `the login to ${attempt.provider.name} was not finished in time`,
            { hint: expiredHint(attempt) },
          ),
        })
      const timer = longTimeout(expire, attempt.expiresAt - now).unref()
      const entry: Entry = {
        attempt,
        phase: 'waiting',
        outcome: undefined,
        timer,
        waiters: new Set(),
      }
      entries.set(attempt.loginId, entry)
      onBegin(attempt)
    },

    /** The login that waits for this state. Compares with all, in a time that tells nothing of them. */
    findByState(state: string): CodeAttempt | undefined {
      const waiting = [...entries.values()].filter(isWaiting).map(({ attempt }) => attempt)
      const forBrowser = waiting.filter((attempt) => attempt.kind === 'code')
      return forBrowser.filter((attempt) => isEqualInConstantTime(attempt.state, state))[0]
    },

    /** The login of this id if it still waits for its person, else throws `login-not-pending`. */
    waitingAttempt(loginId: string): Attempt {
      const entry = entryOf(loginId)
      if (isWaiting(entry)) return entry.attempt
      throw new DoorwardError('login-not-pending', `this login is ${describeEntry(entry)}`)
    },

    /** Uses up the state: from here on no other request can be the callback of this login. */
    consume(attempt: Attempt): void {
      const entry = entryOf(attempt.loginId)
      entry.phase = 'exchanging'
      // The exchange has a time limit of its own; tokens that came in time are not thrown away.
      entry.timer?.clear()
    },

    /** From here on a login cannot be cancelled. Throws `login-cancelled` if it was. */
    beginSaving(attempt: Attempt): void {
      const entry = entryOf(attempt.loginId)
      if (entry.outcome) throw new DoorwardError('login-cancelled', 'the login was cancelled')
      entry.phase = 'saving'
    },

    /** Ends a login and returns how it ended: as told, or as something else had ended it before. */
    settle,

    /** Cancels a login; one that was cancelled stays so. Throws `login-not-pending` for any other end. */
    cancel(loginId: string): void {
      const entry = entryOf(loginId)
      if (entry.outcome?.status === 'cancelled') return
      if (entry.outcome || entry.phase === 'saving')
        throw new DoorwardError('login-not-pending', `this login is ${describeEntry(entry)}`)
      cancelEntry(entry, 'the login was cancelled')
    },

    /** What may be told of a login. */
    view(loginId: string): Login {
      const { attempt, outcome } = entryOf(loginId)
      const view = { loginId, provider: attempt.provider.name }
      if (!outcome) return { ...view, status: 'pending' }
      if (outcome.status === 'authorized') return { ...view, ...outcome }
      const { code, message, hint } = outcome.error
      const error = { code, message, ...(hint !== undefined && { hint }) }
      return { ...view, status: outcome.status, error }
    },

    /** Resolves when the login ends, the time is over or the signal says that nobody waits any more. */
    async untilEnd(loginId: string, timeoutMs: number, signal: AbortSignal): Promise<void> {
      const entry = entryOf(loginId)
      if (entry.outcome || signal.aborted) return
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          clearTimeout(timer)
          signal.removeEventListener('abort', wake)
          entry.waiters.delete(wake)
          resolve()
        }
        const timer = setTimeout(wake, timeoutMs)
        signal.addEventListener('abort', wake)
        entry.waiters.add(wake)
      })
    },

    /** Cancels what is not being saved and leaves no timer behind. */
    close(why: string): void {
      for (const entry of entries.values()) {
        if (!entry.outcome && entry.phase !== 'saving') cancelEntry(entry, why)
        entry.timer?.clear()
      }
    },
  }
}

const withWayOut = ({ provider, typedClient: options }: Attempt, ended: Outcome): Outcome =>
  ended.status === 'authorized'
    ? ended
    : { ...ended, error: withTypedClient(ended.error, provider.name, options) }

/** A provider that does not know the redirect URI says so to the person, and nothing comes back here. */
const expiredHint = (attempt: Attempt): string => {
  const { name, title } = attempt.provider
  if (attempt.kind !== 'code') return `doorward oauth login ${name}`
  const register = registerHint(attempt.provider, attempt.redirectUri)
  return `if ${title} showed an error about the redirect URI, ${register}; then: doorward oauth login ${name}`
}

const isWaiting = (entry: Entry): boolean => !entry.outcome && entry.phase === 'waiting'

const describeEntry = (entry: Entry): string => entry.outcome?.status ?? 'being finished'

/**
 * The options of `oauth login` that a login was given its client with and that the next one would need
 * again: a client is remembered only when a login has worked. Empty when the next needs none.
 */
export const clientFlags = (client: Client, known: Client | undefined): string => {
  const isIdNew = client.clientId !== known?.clientId
  const isSecretNew =
    client.clientSecret !== undefined && (isIdNew || client.clientSecret !== known?.clientSecret)
  // What no shell could take for anything else; the id of a client is no secret.
  const id = /^[\w.:@/+-]+$/.test(client.clientId) ? client.clientId : 'ID'
  return `${isIdNew ? ` --client-id ${id}` : ''}${isSecretNew ? ' --client-secret-stdin' : ''}`
}

/** An error whose hint, where that is to log in to this provider, names such options too. */
export const withTypedClient = (
  error: DoorwardError,
  provider: string,
  options: string,
): DoorwardError => {
  if (options === '') return error
  const command = `doorward oauth login ${provider}`
  const { code, message, cause, hint = command } = error
  const at = hint.lastIndexOf(command)
  if (at < 0) return error
  const given = hint.slice(at + command.length)
  if (/^[\w-]/.test(given)) return error
  const added = options
    .split(/ (?=--)/)
    .filter((option) => option !== '' && !given.includes(option.split(' ')[0] ?? ''))
    .map((option) => ` ${option}`)
    .join('')
  const start = hint.slice(0, at + command.length)
  return new DoorwardError(code, message, { cause, hint: `${start}${added}${given}` })
}
