import type { StartedDeviceLogin } from '../../../shared/api/api.ts'
import type { DoorwardError } from '../../../shared/errors.ts'
import { trackPending } from '../../util/concurrency.ts'
import type { Wait } from '../dependencies.ts'
import type { Grant } from '../tokens/token-record.ts'
import { askForGrant, requestDeviceCode } from './device-authorization.ts'
import {
  type Attempt,
  type DeviceAttempt,
  type LoginRequest,
  type Outcome,
  type PendingLogins,
  randomText,
} from './pending-logins.ts'

type DeviceServices = {
  readonly pending: PendingLogins
  readonly saveGrant: (attempt: Attempt, grant: Grant, signal: AbortSignal) => Promise<Outcome>
  /** Throws `stopping` once no new login is accepted. */
  readonly refuseWhenStopping: () => void
  /** Aborted when the daemon stops. */
  readonly stopping: AbortSignal
  /** How long a login may be pending, in milliseconds. */
  readonly loginTimeoutMs: number
  readonly toKnownError: (attempt: Attempt, error: unknown) => DoorwardError
  readonly wait: Wait
}

/** For a provider that names no interval (RFC 8628 section 3.2). */
const defaultSeconds = 5
const slowDownMs = 5000
const shortestMs = 1000
/** An approval is noticed within this time, whatever a provider says. */
const longestMs = 60_000

/** How long a stop waits for an answer of the token endpoint: it may contain the tokens. */
const closeLimitMs = 2000

/**
 * Logins by device code (RFC 8628), which need no listener. The provider issues one code for the user and
 * one for the daemon; the user enters theirs in any browser. The daemon polls the token endpoint, no faster
 * than the provider allows, until it gets a grant or the login ends.
 */
export class DeviceLogins {
  readonly #services: DeviceServices
  readonly #requests = new AbortController()
  readonly #running = trackPending()

  constructor(services: DeviceServices) {
    this.#services = services
  }

  async start(login: LoginRequest, scopes: readonly string[]): Promise<StartedDeviceLogin> {
    const { pending, refuseWhenStopping, stopping, loginTimeoutMs } = this.#services
    refuseWhenStopping()
    const authorization = await requestDeviceCode(login, scopes, stopping)
    refuseWhenStopping()
    const now = Date.now()
    const lifetimeMs = (authorization.lifetimeSeconds ?? Infinity) * 1000
    const attempt: DeviceAttempt = {
      kind: 'device',
      loginId: randomText(),
      ...login,
      scopes,
      expiresAt: now + Math.min(lifetimeMs, loginTimeoutMs),
      control: new AbortController(),
    }
    pending.add(attempt, now)
    const { deviceCode, intervalSeconds } = authorization
    void this.#running.track(this.#finish(attempt, deviceCode, intervalSeconds))
    const { userCode, verificationUrl, verificationUrlComplete } = authorization
    return {
      loginId: attempt.loginId,
      provider: login.provider.name,
      verificationUrl,
      ...(verificationUrlComplete !== undefined && { verificationUrlComplete }),
      userCode,
      scopes: [...scopes],
      expiresAt: new Date(attempt.expiresAt).toISOString(),
    }
  }

  /** Waits for running requests to providers; to be called when all logins have ended. */
  async close(): Promise<void> {
    await this.#running.settled(closeLimitMs)
    this.#requests.abort()
    await this.#running.settled(closeLimitMs)
  }

  /** Never throws. */
  async #finish(
    attempt: DeviceAttempt,
    deviceCode: string,
    intervalSeconds: number | undefined,
  ): Promise<void> {
    const { pending, saveGrant, stopping, toKnownError } = this.#services
    const { signal } = attempt.control
    let outcome: Outcome
    try {
      const grant = await this.#poll(attempt, deviceCode, intervalSeconds)
      if (!grant) return
      if (!signal.aborted) pending.consume(attempt)
      outcome = await saveGrant(attempt, grant, AbortSignal.any([signal, stopping]))
    } catch (error) {
      const known = toKnownError(attempt, error)
      outcome = { status: known.code === 'login-expired' ? 'expired' : 'failed', error: known }
    }
    if (!signal.aborted) pending.settle(attempt, outcome)
  }

  /**
   * The grant, or undefined when the login ended first. A running request is not aborted by that. Polls 5 s
   * slower each time the provider asks for that, and waits twice as long after each poll that gets no answer,
   * until one does (RFC 8628 section 3.5).
   */
  async #poll(
    attempt: DeviceAttempt,
    deviceCode: string,
    intervalSeconds = defaultSeconds,
  ): Promise<Grant | undefined> {
    const { signal } = attempt.control
    let intervalMs = Math.min(Math.max(intervalSeconds * 1000, shortestMs), longestMs)
    for (let failures = 0; ;) {
      const backoffMs = Math.min(intervalMs * 2 ** failures, longestMs)
      await this.#services.wait(Math.max(intervalMs, backoffMs), signal)
      if (signal.aborted) return undefined
      const answer = await askForGrant(attempt, deviceCode, this.#requests.signal)
      if (typeof answer !== 'string') return answer
      failures = answer === 'unreachable' ? failures + 1 : 0
      if (answer === 'slow_down') intervalMs += slowDownMs
    }
  }
}
