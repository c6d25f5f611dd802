import type { OAuthEvent } from '../dependencies.ts'

const windowMs = 60_000
const maxPairs = 500
const maxLines = 20

/** The clock and timers of this process; tests have others. */
type Time = {
  readonly now: () => number
  /** Calls back later, unless the process has ended by then. */
  readonly later: (ms: number, then: () => void) => void
}
const usualTime: Time = {
  now: Date.now,
  later: (ms, then) => void setTimeout(then, ms).unref(),
}

type Asked = { readonly provider: string; readonly asker: string; toldAt: number; since: number }

/**
 * Tells of tokens that were given away: who asked, as far as that is known, and for which provider. The
 * same asker is told of once a minute, and 20 askers of a provider: what came in between is told with the
 * next line, or when the minute is over.
 */
export const createAccessLog = (
  announce: (event: OAuthEvent) => void,
  { now, later }: Time = usualTime,
) => {
  const pairs = new Map<string, Asked>()
  const windows = new Map<string, { readonly from: number; lines: number; untold: number }>()

  // A clock that was set back silences nobody.
  const isOver = (start: number): boolean => Math.abs(now() - start) >= windowMs
  const tell = (provider: string, detail: string) =>
    announce({ what: 'token', provider, state: 'done', detail })

  const beginWindow = (provider: string) => {
    const window = { from: now(), lines: 0, untold: 0 }
    windows.set(provider, window)
    return window
  }
  const tellRestOfPair = (pair: Asked) => {
    const { provider, asker, since } = pair
    if (since === 0) return
    pair.since = 0
    pair.toldAt = now()
    tell(provider, `token given to ${asker} ${timesMore(since)}`)
  }
  const tellRestOfWindow = (provider: string, window: { untold: number }) => {
    const { untold } = window
    if (untold === 0) return
    window.untold = 0
    tell(provider, `token given away ${timesMore(untold)}, not told of one by one`)
  }

  return {
    /** `asker` is one line of plain text. */
    note: (provider: string, asker: string): void => {
      const key = `${provider} ${asker}`
      const pair = pairs.get(key)
      if (pair && !isOver(pair.toldAt)) {
        pair.since += 1
        if (pair.since === 1) later(windowMs, () => tellRestOfPair(pair))
        return
      }
      const before = windows.get(provider)
      const window = before && !isOver(before.from) ? before : beginWindow(provider)
      if (window.lines >= maxLines) {
        window.untold += 1
        if (window.untold === 1) later(windowMs, () => tellRestOfWindow(provider, window))
        return
      }
      window.lines += 1
      pairs.delete(key)
      pairs.set(key, { provider, asker, toldAt: now(), since: 0 })
      const [oldest] = pairs.keys()
      if (pairs.size > maxPairs && oldest !== undefined) pairs.delete(oldest)
      const since = pair?.since ?? 0
      if (pair) pair.since = 0
      const untold = window === before ? 0 : (before?.untold ?? 0)
      if (before && window !== before) before.untold = 0
      const more = since > 0 ? `, and ${since} more since the last such line` : ''
      const others = untold > 0 ? `; before that ${untold} more, not told of one by one` : ''
      tell(provider, `token given to ${asker}${more}${others}`)
    },
  }
}

const timesMore = (count: number): string => (count === 1 ? 'once more' : `${count} times more`)
