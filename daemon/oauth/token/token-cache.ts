import { lstatSync } from 'node:fs'
import type { Home } from '../../../shared/home.ts'
import { readToken, tokenPath } from './token-file.ts'
import type { TokenRecord } from './token-record.ts'

/**
 * Token records in memory. The file stays the truth: each time it is looked at, not read, so that one
 * that was changed, removed or opened to others by hand counts at once.
 */
export const createTokenCache = (home: Home) => {
  const known = new Map<string, { readonly stamp: string; readonly record: TokenRecord }>()

  return {
    /** The record of a provider as `readToken` gives it, with what that throws. */
    get: async (provider: string): Promise<TokenRecord | undefined> => {
      const before = stampOf(tokenPath(home, provider))
      const entry = known.get(provider)
      if (entry && entry.stamp === before) return entry.record
      const record = await readToken(home, provider)
      known.delete(provider)
      // A file that was replaced while it was read is read again the next time.
      if (record && before !== undefined) known.set(provider, { stamp: before, record })
      return record
    },
  }
}

export type TokenCache = ReturnType<typeof createTokenCache>

/** Looked at in this turn: the way through the pool of threads costs ten times the look itself. */
const stampOf = (path: string): string | undefined => {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    if (!stat) return undefined
    const { dev, ino, size, mtimeNs, ctimeNs, mode, uid } = stat
    return `${dev} ${ino} ${size} ${mtimeNs} ${ctimeNs} ${mode} ${uid}`
  } catch {
    return undefined
  }
}
