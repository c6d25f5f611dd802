import type { IncomingMessage, ServerResponse } from 'node:http'
import { type EventBuffer, type Session, createEventBuffer, createSession } from 'better-sse'
import type { EventChange } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'

/** Server-Sent Events of every change (HTML standard, section 9.2). */
export type EventStream = {
  readonly open: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /** How many follow it now. */
  readonly followers: () => number
  /** While it is silent nothing is sent; who comes back with its last id misses nothing. */
  readonly silence: (isSilent: boolean) => void
  /** Tells who follows that `/status` says something new which is no event: a comment, which others pass over. */
  readonly hint: () => void
  /** Ends every open stream, so that the server can close. */
  readonly close: () => void
}

const heartbeatMs = 15_000
/** A comment, by which both sides learn of a connection that is dead. */
const heartbeat = createEventBuffer().comment().dispatch()
const hint = createEventBuffer().comment('status').dispatch()
const maxUnreadBytes = 4 * 1024 * 1024

/**
 * Ids are `<era>-<number>`; an era is that of a store, and lives on over a restart. A client that comes back
 * with one of this era gets what it missed; one with an id of an earlier era gets all that is known,
 * since nothing of it can be old.
 */
export const createEventStream = (events: EventStore): EventStream => {
  let isSilent = false
  const open = new Map<ServerResponse, Session>()
  let last: { readonly change: EventChange; readonly message: EventBuffer } | undefined
  /** The same for all who follow: written once. */
  const messageOf = (change: EventChange): EventBuffer => {
    if (last?.change === change) return last.message
    const { sequence, record } = change
    const message = createEventBuffer().push(record, 'event', `${events.era()}-${sequence}`)
    last = { change, message }
    return message
  }
  return {
    open: async (request, response) => {
      const session = await createSession(request, response, {
        // A session whose client goes before it begins would say so for ever, to nobody.
        keepAlive: null,
        retry: 1000,
        statusCode: 200,
        headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
      })
      // Gone already: nothing will tell us of that any more.
      if (response.destroyed) return
      const push = (change: EventChange) => {
        if (isSilent) return
        // A client that does not read must not fill our memory.
        if (response.writableLength > maxUnreadBytes) response.destroy()
        else if (session.isConnected) {
          gather(response)
          void session.batch(messageOf(change))
        }
      }
      events.keepChanges()
      const after = sequenceAfter(session.lastId, events.era())
      if (after !== undefined) for (const change of events.since(after)) push(change)
      open.set(response, session)
      const unfollow = events.follow(push)
      const beating = setInterval(() => void session.batch(heartbeat), heartbeatMs)
      response.once('close', () => {
        clearInterval(beating)
        unfollow()
        open.delete(response)
      })
    },
    followers: () => open.size,
    silence: (now) => {
      isSilent = now
    },
    hint: () => {
      for (const session of open.values()) void session.batch(hint)
    },
    close: () => {
      for (const response of open.keys()) response.end()
    },
  }
}

const gathering = new WeakSet<ServerResponse>()

/** What changes in one turn is written at once: an event of a quick agent goes through all its states in two. */
const gather = (response: ServerResponse): void => {
  if (gathering.has(response)) return
  gathering.add(response)
  response.cork()
  setImmediate(() => {
    gathering.delete(response)
    response.uncork()
  })
}

const sequenceAfter = (lastId: string, era: string): number | undefined => {
  if (lastId === '') return undefined
  const [, ofEra, sequence] = /^([0-9a-f]+)-(\d+)$/.exec(lastId) ?? []
  return ofEra === era ? Number(sequence) : 0
}
