import { type Stats, lstatSync } from 'node:fs'
import type { Home } from '../../../shared/home/home.ts'
import { readToken, tokenPath } from './token-store.ts'
import type { TokenRecord } from './token-record.ts'

/**
 * Token records in memory. The file stays the truth: it is looked at, not read, so that one that was
 * changed, removed or opened to others by hand counts at once.
 */
export const createTokenCache = (home: Home) => {
  type Entry = { readonly path: string; readonly stamp: Stamp; readonly record: TokenRecord }
  const known = new Map<string, Entry>()
  /** Those whose files have been looked at in this turn of the loop, which many may ask in. */
  const seen = new Set<Entry>()
  const see = (entry: Entry): void => {
    if (seen.size === 0) setImmediate(() => seen.clear())
    seen.add(entry)
  }

  const knownWith = (
    entry: Entry | undefined,
    stamp: Stamp | undefined,
  ): TokenRecord | undefined =>
    entry && stamp && isSame(entry.stamp, stamp) ? entry.record : undefined

  return {
    /**
     * The record in memory while the file is what it was when this was asked first in this turn; undefined
     * says nothing.
     */
    known: (provider: string): TokenRecord | undefined => {
      const entry = known.get(provider)
      if (!entry) return undefined
      if (seen.has(entry)) return entry.record
      const record = knownWith(entry, readStamp(entry.path))
      if (record) see(entry)
      return record
    },
    /** The record of a provider as `readToken` gives it, with what that throws. */
    get: async (provider: string): Promise<TokenRecord | undefined> => {
      const path = tokenPath(home, provider)
      const before = readStamp(path)
      const unchanged = knownWith(known.get(provider), before)
      if (unchanged) return unchanged
      const record = await readToken(home, provider)
      known.delete(provider)
      // A file that was replaced while it was read is read again the next time.
      if (record && before !== undefined) known.set(provider, { path, stamp: before, record })
      return record
    },
  }
}

export type TokenCache = ReturnType<typeof createTokenCache>

/** What changes with a file: every write of ours makes another one of it. */
type Stamp = Pick<Stats, 'dev' | 'ino' | 'size' | 'mtimeMs' | 'ctimeMs' | 'mode' | 'uid'>

const isSame = (a: Stamp, b: Stamp): boolean =>
  a.ino === b.ino &&
  a.ctimeMs === b.ctimeMs &&
  a.mtimeMs === b.mtimeMs &&
  a.size === b.size &&
  a.mode === b.mode &&
  a.uid === b.uid &&
  a.dev === b.dev

/** Looked at in this turn: the way through the pool of threads costs ten times the look itself. */
const readStamp = (path: string): Stamp | undefined => {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}
