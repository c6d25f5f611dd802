/** How fast a token endpoint is asked whether a person has entered the code. RFC 8628 section 3.5. */
export type Pace = {
  readonly intervalMs: number
  /** Requests in a row that nobody answered. */
  readonly failures: number
}

/** What a poll that brought no tokens makes of the pace. */
export type PollSign = 'authorization_pending' | 'slow_down' | 'unreachable'

/** Of a provider that names none (RFC 8628 section 3.2). */
const defaultSeconds = 5
const slowDownMs = 5000
const shortestMs = 1000
/** Nobody waits longer than this for an approval to be noticed, whatever a provider says. */
const longestMs = 60_000

/** The pace a login starts with, from the interval in seconds that the provider named, if it did. */
export const paceOf = (seconds: number = defaultSeconds): Pace => ({
  intervalMs: Math.min(Math.max(seconds * 1000, shortestMs), longestMs),
  failures: 0,
})

/**
 * The pace after a poll: 5 s slower for good when the provider asks for that, and doubled with every
 * poll that nobody answers until one is.
 */
export const nextPace = ({ intervalMs, failures }: Pace, sign: PollSign): Pace =>
  sign === 'unreachable'
    ? { intervalMs, failures: failures + 1 }
    : { intervalMs: intervalMs + (sign === 'slow_down' ? slowDownMs : 0), failures: 0 }

/** How long to wait before the next poll, in milliseconds. */
export const waitMsOf = ({ intervalMs, failures }: Pace): number =>
  Math.max(intervalMs, Math.min(intervalMs * 2 ** failures, longestMs))
