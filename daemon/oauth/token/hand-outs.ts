import type { OAuthEvent } from '../dependencies.ts'

const windowMs = 60_000
const maxPairs = 500

/**
 * Tells of tokens that were given away: who asked, as far as that is known, and for which provider. The
 * same asker is told of once a minute; what came in between is counted in the next one.
 */
export const createHandOuts = (
  announce: (event: OAuthEvent) => void,
  now: () => number = Date.now,
) => {
  const pairs = new Map<string, { readonly toldAt: number; since: number }>()

  return {
    /** `asker` is one line of plain text. */
    note: (provider: string, asker: string): void => {
      const key = `${provider} ${asker}`
      const pair = pairs.get(key)
      // A clock that was set back silences nobody.
      if (pair && Math.abs(now() - pair.toldAt) < windowMs) {
        pair.since += 1
        return
      }
      pairs.delete(key)
      pairs.set(key, { toldAt: now(), since: 0 })
      const [oldest] = pairs.keys()
      if (pairs.size > maxPairs && oldest !== undefined) pairs.delete(oldest)
      const more = pair && pair.since > 0 ? `, and ${pair.since} more since the last such line` : ''
      announce({
        what: 'token',
        provider,
        state: 'done',
        detail: `token given to ${asker}${more}`,
      })
    },
  }
}
