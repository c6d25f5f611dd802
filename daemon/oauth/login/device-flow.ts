import type { StartedDeviceLogin } from '../../../shared/api.ts'
import type { DoorwardError } from '../../../shared/errors.ts'
import type { Grant } from '../tokens/token-record.ts'
import {
  askForGrant,
  type DeviceClient,
  nextPace,
  toPace,
  requestDeviceCode,
  getWaitMs,
} from './device-authorization.ts'
import {
  type Attempt,
  type DeviceAttempt,
  type Outcome,
  type PendingLogins,
  randomText,
} from './pending-logins.ts'
import type { Wait } from '../dependencies.ts'

export type DeviceLogins = {
  readonly start: (
    who: DeviceClient & Pick<Attempt, 'typedClient' | 'areScopesChosen'>,
    scopes: readonly string[],
  ) => Promise<StartedDeviceLogin>
  /** Resolves when no provider is being asked any more; to be called when all logins have ended. */
  readonly close: () => Promise<void>
}

type Dependencies = {
  readonly pending: PendingLogins
  readonly saveGrant: (attempt: Attempt, grant: Grant, signal: AbortSignal) => Promise<Outcome>
  /** Throws `stopping` once no new login is taken. */
  readonly refuseWhenStopping: () => void
  /** Aborted when the daemon stops. */
  readonly stopping: AbortSignal
  /** How long a login may wait for its person, in milliseconds. */
  readonly loginTimeoutMs: () => number
  readonly toldError: (error: unknown) => DoorwardError
  readonly wait: Wait
}

/** What an answer that is on its way when the daemon stops still gets. */
const graceMs = 2000

/*
 * One login by device code (RFC 8628), for which no port is opened. start: the provider gives a code for
 * the person and one for us. The person enters theirs in any browser. Meanwhile the token endpoint is
 * asked, no faster than the provider wants it, until there is a grant or the login has ended: by the
 * provider's word, by the clock, or cancelled. A request that is under way is not broken off by that,
 * since its answer may be the tokens.
 */
export const createDeviceLogins = ({
  pending,
  saveGrant,
  refuseWhenStopping,
  stopping,
  loginTimeoutMs,
  toldError,
  wait,
}: Dependencies): DeviceLogins => {
  const requests = new AbortController()
  const running = new Set<Promise<void>>()

  const start: DeviceLogins['start'] = async (who, scopes) => {
    refuseWhenStopping()
    const authorization = await requestDeviceCode(who, scopes, stopping)
    refuseWhenStopping()
    const now = Date.now()
    const lifetimeMs = (authorization.lifetimeSeconds ?? Infinity) * 1000
    const attempt: DeviceAttempt = {
      kind: 'device',
      loginId: randomText(),
      ...who,
      scopes,
      expiresAt: now + Math.min(lifetimeMs, loginTimeoutMs()),
      control: new AbortController(),
    }
    pending.add(attempt, now)
    const run = finish(attempt, authorization.deviceCode, authorization.intervalSeconds)
    running.add(run)
    void run.finally(() => running.delete(run))
    const { userCode, verificationUrl, verificationUrlComplete } = authorization
    return {
      loginId: attempt.loginId,
      provider: who.provider.name,
      verificationUrl,
      ...(verificationUrlComplete !== undefined && { verificationUrlComplete }),
      userCode,
      scopes: [...scopes],
      expiresAt: new Date(attempt.expiresAt).toISOString(),
    }
  }

  /** Never throws. */
  const finish = async (
    attempt: DeviceAttempt,
    deviceCode: string,
    intervalSeconds: number | undefined,
  ): Promise<void> => {
    const { signal } = attempt.control
    let outcome: Outcome
    try {
      const grant = await untilGranted(attempt, deviceCode, intervalSeconds)
      if (!grant) return
      if (!signal.aborted) pending.consume(attempt)
      outcome = await saveGrant(attempt, grant, AbortSignal.any([signal, stopping]))
    } catch (error) {
      const known = toldError(error)
      outcome = { status: known.code === 'login-expired' ? 'expired' : 'failed', error: known }
    }
    if (!signal.aborted) pending.settle(attempt, outcome)
  }

  /** The grant, or undefined when the login ended before there was one. */
  const untilGranted = async (
    attempt: DeviceAttempt,
    deviceCode: string,
    intervalSeconds: number | undefined,
  ): Promise<Grant | undefined> => {
    const { signal } = attempt.control
    let pace = toPace(intervalSeconds)
    for (;;) {
      await wait(getWaitMs(pace), signal)
      if (signal.aborted) return undefined
      const answer = await askForGrant(attempt, deviceCode, requests.signal)
      if (typeof answer !== 'string') return answer
      pace = nextPace(pace, answer)
    }
  }

  return {
    start,
    close: async () => {
      const timer = setTimeout(() => requests.abort(), graceMs)
      await Promise.all(running)
      clearTimeout(timer)
    },
  }
}
