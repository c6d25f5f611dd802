import type { EventChange } from './event-record.ts'

/** The newest changes of events, each as it was then. */
export type RecentChanges = {
  /** From now on they are kept, behind these. Nobody can have missed one before anybody followed. */
  readonly keep: (before: readonly EventChange[]) => void
  readonly isKeeping: () => boolean
  readonly add: (change: EventChange) => void
  /** Those that are kept of the ones after this number. */
  readonly since: (sequence: number) => readonly EventChange[]
  readonly all: () => readonly EventChange[]
}

const maxChanges = 1000

/** Keeps none until it is told to: five records of each event live longer than all the rest of it. */
export const createRecentChanges = (): RecentChanges => {
  const changes: EventChange[] = []
  let isKeeping = false
  return {
    keep: (before) => {
      isKeeping = true
      changes.push(...before)
    },
    isKeeping: () => isKeeping,
    add: (change) => {
      if (!isKeeping) return
      changes.push(change)
      if (changes.length > maxChanges) changes.splice(0, changes.length - maxChanges / 2)
    },
    since: (sequence) => changes.filter((change) => change.sequence > sequence),
    all: () => [...changes],
  }
}
