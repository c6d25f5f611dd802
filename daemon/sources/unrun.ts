import type { EventStore } from '../events/event-store.ts'

/** The events of a webhook that no agent has taken yet. */
export type Unrun = {
  readonly count: () => number
  readonly stop: () => void
}

/** Counts the events of a webhook that wait, from now on. */
export const countUnrun = (events: Pick<EventStore, 'follow'>, path: string): Unrun => {
  const waiting = new Set<string>()
  const stop = events.follow(({ record: { id, webhook, state } }) => {
    if (state !== 'accepted' && state !== 'queued') waiting.delete(id)
    else if (webhook === path) waiting.add(id)
  })
  return { count: () => waiting.size, stop }
}
