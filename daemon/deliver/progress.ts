import { createHash } from 'node:crypto'
import type { Answered } from './answered.ts'

/** How far an answer of several messages has come at one target. */
export type Reached = {
  /** Parts that have arrived. */
  readonly parts: number
  /** The next one may have arrived too. */
  readonly mayHaveArrived: boolean
}

export type Progress = {
  readonly of: (answered: Answered, target: string) => Reached
  readonly note: (answered: Answered, target: string, now: Reached) => void
  readonly forget: (answered: Answered, target: string) => void
  readonly entries: () => readonly (readonly [key: string, reached: Reached])[]
  /** Notes it under the key that another one has it under; undefined forgets it. */
  readonly put: (key: string, reached: Reached | undefined) => void
  /** Calls back at each change from now on, until the returned function is called. */
  readonly follow: (listener: (key: string, reached: Reached | undefined) => void) => () => void
}

const most = 1000
const none: Reached = { parts: 0, mayHaveArrived: false }

/**
 * Remembers where deliveries broke off, so that a retry by hand goes on there and repeats nothing. By a
 * hash of the answer: another answer to the same event begins anew.
 */
export const createProgress = (): Progress => {
  const reached = new Map<string, Reached>()
  const listeners = new Set<Parameters<Progress['follow']>[0]>()
  const keyOf = ({ eventId, text }: Answered, target: string): string =>
    createHash('sha256').update(`${eventId}\n${target}\n${text}`).digest('base64')
  const put = (key: string, now: Reached | undefined): void => {
    reached.delete(key)
    if (now && (now.parts > 0 || now.mayHaveArrived)) reached.set(key, now)
    const [oldest] = reached.keys()
    if (reached.size > most && oldest !== undefined) reached.delete(oldest)
    for (const listener of listeners) listener(key, now)
  }

  return {
    of: (answered, target) => reached.get(keyOf(answered, target)) ?? none,
    note: (answered, target, now) => put(keyOf(answered, target), now),
    forget: (answered, target) => put(keyOf(answered, target), undefined),
    entries: () => [...reached],
    put,
    follow: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
