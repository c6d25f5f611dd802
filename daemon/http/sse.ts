import type { IncomingMessage, ServerResponse } from 'node:http'
import { type EventBuffer, type Session, createEventBuffer, createSession } from 'better-sse'
import type { EventChange } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'

/** Server-Sent Events of every change (HTML standard, section 9.2). */
export type EventStream = {
  readonly open: (
    request: IncomingMessage,
    response: ServerResponse,
    hintAs?: Hint,
  ) => Promise<void>
  /** The number of clients. */
  readonly followers: () => number
  /** Whether one of them is a tray, by its User-Agent: others show no notification. */
  readonly hasTray: () => boolean
  /** While silent, nothing is sent; a client that reconnects with its last id misses nothing. */
  readonly silence: (isSilent: boolean) => void
  /** Notifies clients of a change of `/status` that is not an event. */
  readonly hint: () => void
  /** Closes every stream, so that the server can close. */
  readonly close: () => void
}

/** By a comment, or by an event `status`, as scripts of a browser see no comments. */
type Hint = 'comment' | 'event'

const heartbeatMs = 15_000
/** A comment, so that both sides notice a dead connection. */
const heartbeat = createEventBuffer().comment().dispatch()
const hints = {
  comment: createEventBuffer().comment('status').dispatch(),
  event: createEventBuffer().push({}, 'status').dispatch(),
}
const maxUnreadBytes = 4 * 1024 * 1024

/**
 * Ids are `<era>-<number>`; an era is that of an event store, and survives a restart. A client that
 * reconnects with an id of this era gets what it missed; with an id of an earlier era it gets everything,
 * as all of it is new.
 */
export const createEventStream = (events: EventStore): EventStream => {
  let isSilent = false
  const open = new Map<ServerResponse, { readonly session: Session; readonly hintAs: Hint }>()
  const trays = new Set<ServerResponse>()
  let last: { readonly change: EventChange; readonly message: EventBuffer } | undefined
  /** The same text for all clients, made once. */
  const messageOf = (change: EventChange): EventBuffer => {
    if (last?.change === change) return last.message
    const { sequence, record } = change
    const message = createEventBuffer().push(record, 'event', `${events.era()}-${sequence}`)
    last = { change, message }
    return message
  }
  return {
    open: async (request, response, hintAs = 'comment') => {
      const session = await createSession(request, response, {
        // A session whose client disconnects before it begins would send for ever.
        keepAlive: null,
        retry: 1000,
        statusCode: 200,
        headers: { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' },
      })
      // No event follows for a client that has disconnected already.
      if (response.destroyed) return
      const push = (change: EventChange) => {
        if (isSilent) return
        // A client that does not read must not fill the memory.
        if (response.writableLength > maxUnreadBytes) response.destroy()
        else if (session.isConnected) {
          gather(response)
          void session.batch(messageOf(change))
        }
      }
      events.keepChanges()
      const after = sequenceAfter(session.lastId, events.era())
      if (after !== undefined) for (const change of events.since(after)) push(change)
      open.set(response, { session, hintAs })
      if (request.headers['user-agent']?.startsWith('doorward-tray/')) trays.add(response)
      const unfollow = events.follow(push)
      const beating = setInterval(() => void session.batch(heartbeat), heartbeatMs)
      response.once('close', () => {
        clearInterval(beating)
        unfollow()
        open.delete(response)
        trays.delete(response)
      })
    },
    followers: () => open.size,
    hasTray: () => trays.size > 0,
    silence: (now) => {
      isSilent = now
    },
    hint: () => {
      for (const { session, hintAs } of open.values()) void session.batch(hints[hintAs])
    },
    close: () => {
      for (const response of open.keys()) response.end()
    },
  }
}

const gathering = new WeakSet<ServerResponse>()

/** Writes all changes of one turn together: the event of a quick agent goes through all its states in two turns. */
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
