import { createHash } from 'node:crypto'
import type { EventDetail } from '../../shared/api.ts'
import type { EventStore } from '../events/event-store.ts'

/** A short text that is another one after each change of an event. */
export const markOf = ({ prompt: _prompt, result: _result, ...record }: EventDetail): string =>
  createHash('sha256').update(JSON.stringify(record)).digest('base64url').slice(0, 16)

/** Resolves once an event is no longer as it was with this mark, has gone, or `signal` ends the wait. */
export const untilChanged = async (
  events: EventStore,
  id: string,
  mark: string,
  signal: AbortSignal,
): Promise<void> => {
  const isSame = () => {
    const event = events.get(id)
    return event !== undefined && markOf(event) === mark
  }
  await new Promise<void>((resolve) => {
    const look = () => {
      if (isSame() && !signal.aborted) return
      unfollow()
      signal.removeEventListener('abort', look)
      resolve()
    }
    const unfollow = events.follow(({ record }) => {
      if (record.id === id) look()
    })
    signal.addEventListener('abort', look)
    look()
  })
}
