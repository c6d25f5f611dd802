import type { IncomingMessage, ServerResponse } from 'node:http'
import { createSession } from 'better-sse'
import type { EventChange, EventStore } from './events.ts'

/** Server-Sent Events of every change (HTML standard, section 9.2). */
export type EventStream = {
  readonly open: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** How many follow it now. */
  readonly followers: () => number
  /** Ends every open stream, so that the server can close. */
  readonly close: () => void
}

const heartbeatMs = 15_000
const maxUnreadBytes = 4 * 1024 * 1024

/**
 * Ids are `<start>-<number>`. A client that comes back with one of this start gets what it missed; one
 * with an id of an earlier start gets all that is known, since nothing of it can be old.
 */
export const createEventStream = (events: EventStore, start: string): EventStream => {
  const open = new Set<ServerResponse>()
  return {
    open: async (request, response) => {
      const session = await createSession(request, response, {
        keepAlive: heartbeatMs,
        retry: 1000,
        statusCode: 200,
        headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
      })
      const push = ({ sequence, record }: EventChange) => {
        // A client that does not read must not fill our memory.
        if (response.writableLength > maxUnreadBytes) response.destroy()
        else if (session.isConnected) session.push(record, 'event', `${start}-${sequence}`)
      }
      const after = sequenceAfter(session.lastId, start)
      if (after !== undefined) for (const change of events.since(after)) push(change)
      open.add(response)
      const unfollow = events.follow(push)
      session.once('disconnected', () => {
        unfollow()
        open.delete(response)
      })
    },
    followers: () => open.size,
    close: () => {
      for (const response of open) response.end()
    },
  }
}

const sequenceAfter = (lastId: string, start: string): number | undefined => {
  if (lastId === '') return undefined
  const [, ofStart, sequence] = /^([0-9a-f]+)-(\d+)$/.exec(lastId) ?? []
  return ofStart === start ? Number(sequence) : 0
}
