import { createHash, randomBytes } from 'node:crypto'

/** A few values under secret keys, each for a limited time. The keys themselves are not kept. */
export type ShortLived<Value> = {
  /** Keeps a value, for its whole time from now; the oldest goes when there are too many. */
  readonly set: (key: string, value: Value) => void
  readonly get: (key: string) => Value | undefined
  readonly delete: (key: string) => void
}

type Limits = { readonly max: number; readonly lifeMs: number }

/** `now` is a clock in milliseconds that nobody can set. */
export const createShortLived = <Value>(
  { max, lifeMs }: Limits,
  now: () => number = () => performance.now(),
): ShortLived<Value> => {
  const kept = new Map<string, { readonly value: Value; readonly endsAt: number }>()
  return {
    set: (key, value) => {
      const name = hashOf(key)
      // To the end: the first one is always the oldest.
      kept.delete(name)
      kept.set(name, { value, endsAt: now() + lifeMs })
      for (const [name, { endsAt }] of kept)
        if (kept.size > max || endsAt <= now()) kept.delete(name)
        else break
    },
    get: (key) => {
      const found = kept.get(hashOf(key))
      return found && found.endsAt > now() ? found.value : undefined
    },
    delete: (key) => void kept.delete(hashOf(key)),
  }
}

/** 256 random bits, as 43 characters that need no escaping anywhere. */
export const newCode = (): string => randomBytes(32).toString('base64url')

/** Looked up by its hash, a key cannot be guessed bit by bit from the time that takes. */
const hashOf = (key: string): string => createHash('sha256').update(key).digest('base64')
