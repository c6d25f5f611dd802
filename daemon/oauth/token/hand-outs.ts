import type { OAuthEvent } from '../dependencies.ts'

const windowMs = 60_000
const maxPairs = 500
const maxLines = 20

/**
 * Tells of tokens that were given away: who asked, as far as that is known, and for which provider. The
 * same asker is told of once a minute, and 20 askers of a provider: what came in between is counted in
 * the next line.
 */
export const createHandOuts = (
  announce: (event: OAuthEvent) => void,
  now: () => number = Date.now,
) => {
  const pairs = new Map<string, { readonly toldAt: number; since: number }>()
  const windows = new Map<string, { readonly from: number; lines: number; untold: number }>()

  // A clock that was set back silences nobody.
  const isOver = (start: number): boolean => Math.abs(now() - start) >= windowMs

  const beginWindow = (provider: string) => {
    const window = { from: now(), lines: 0, untold: 0 }
    windows.set(provider, window)
    return window
  }

  return {
    /** `asker` is one line of plain text. */
    note: (provider: string, asker: string): void => {
      const key = `${provider} ${asker}`
      const pair = pairs.get(key)
      if (pair && !isOver(pair.toldAt)) {
        pair.since += 1
        return
      }
      const before = windows.get(provider)
      const window = before && !isOver(before.from) ? before : beginWindow(provider)
      if (window.lines >= maxLines) {
        window.untold += 1
        return
      }
      window.lines += 1
      pairs.delete(key)
      pairs.set(key, { toldAt: now(), since: 0 })
      const [oldest] = pairs.keys()
      if (pairs.size > maxPairs && oldest !== undefined) pairs.delete(oldest)
      const more = pair && pair.since > 0 ? `, and ${pair.since} more since the last such line` : ''
      const untold = window === before ? 0 : (before?.untold ?? 0)
      const others = untold > 0 ? `; before that ${untold} more, not told of one by one` : ''
      announce({
        what: 'token',
        provider,
        state: 'done',
        detail: `token given to ${asker}${more}${others}`,
      })
    },
  }
}
