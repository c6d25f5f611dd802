import type { OAuthEvent } from '../dependencies.ts'

const windowMs = 60_000
const maxAskers = 20

/**
 * Reports who was issued a token: once a minute for each provider and asker, and at most 20 askers of a
 * provider, since an asker chooses its own name.
 */
export class AccessLog {
  readonly #announce: (event: OAuthEvent) => void
  readonly #now: () => number
  /** By provider: the askers in the order of their reports, with the times of those. */
  readonly #reported = new Map<string, Map<string, number>>()

  constructor(announce: (event: OAuthEvent) => void, now: () => number = Date.now) {
    this.#announce = announce
    this.#now = now
  }

  /** `asker` is one line of plain text. */
  add(provider: string, asker: string): void {
    const now = this.#now()
    const askers = this.#reported.get(provider) ?? new Map<string, number>()
    this.#reported.set(provider, askers)
    // A time in the future is one from before the clock was set back.
    for (const [name, time] of askers) if (Math.abs(now - time) >= windowMs) askers.delete(name)
    if (askers.has(asker) || askers.size >= maxAskers) return
    askers.set(asker, now)
    this.#announce({ what: 'token', provider, state: 'done', detail: `token issued to ${asker}` })
  }
}
