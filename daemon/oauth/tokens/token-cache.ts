import { type Stats, lstatSync } from 'node:fs'
import type { Home } from '../../../shared/home/home.ts'
import type { TokenRecord } from './token-record.ts'
import { readToken, tokenPath } from './token-store.ts'

/**
 * Token records in memory. The file decides: its status is checked each time, so that a file that was
 * changed, removed or opened to others by hand counts immediately.
 */
export class TokenCache {
  readonly #home: Home
  readonly #known = new Map<string, { readonly stamp: Stamp; readonly record: TokenRecord }>()

  constructor(home: Home) {
    this.#home = home
  }

  /** The record of a provider as `readToken` returns it, with what that throws. */
  async get(provider: string): Promise<TokenRecord | undefined> {
    const stamp = readStamp(tokenPath(this.#home, provider))
    const known = this.#known.get(provider)
    if (known && stamp && isSame(known.stamp, stamp)) return known.record
    const record = await readToken(this.#home, provider)
    this.#known.delete(provider)
    // A file that was replaced while it was read is read again next time.
    if (record && stamp) this.#known.set(provider, { stamp, record })
    return record
  }
}

/** What changes with a file: every write creates a new one. */
type Stamp = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs' | 'ctimeMs' | 'mode' | 'uid'>

const isSame = (a: Stamp, b: Stamp): boolean =>
  a.ino === b.ino &&
  a.ctimeMs === b.ctimeMs &&
  a.mtimeMs === b.mtimeMs &&
  a.size === b.size &&
  a.mode === b.mode &&
  a.uid === b.uid &&
  a.dev === b.dev

/** Synchronous: the thread pool costs ten times the call itself. */
const readStamp = (path: string): Stamp | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
