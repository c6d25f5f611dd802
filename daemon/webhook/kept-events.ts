import type { EventStore } from '../events.ts'

/** What an event needs to be run again, as long as its prompt is in memory. */
export type KeptEvents<Value> = {
  readonly keep: (id: string, value: Value) => void
  readonly get: (id: string) => Value | undefined
}

/** Keeps values by the id of an event, and lets each go with the prompt and answer of its event. */
export const createKeptEvents = <Value>(events: EventStore): KeptEvents<Value> => {
  const kept = new Map<string, Value>()
  events.onForget((id) => kept.delete(id))
  return {
    keep: (id, value) => void kept.set(id, value),
    get: (id) => kept.get(id),
  }
}
