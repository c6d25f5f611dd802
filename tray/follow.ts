import { type FSWatcher, watch } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import { type EventRecord, type Status, eventSchema, statusSchema } from '../shared/api.ts'
import { type Client, connect } from '../shared/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'
import { userAgentOf } from '../shared/user-agent.ts'

export type Follower = {
  /** The daemon answers; called again after every change. */
  readonly onStatus: (status: Status) => void
  /** One record, as the daemon sent it; the same may come twice after a reconnect. */
  readonly onEvent: (event: EventRecord) => void
  /** No connection, with why. Called after every failed attempt. */
  readonly onLost: (error: unknown) => void
}

const firstWaitMs = 500
const longestWaitMs = 30_000
/** The daemon sends a heartbeat every 15 s; this long without a byte means that it hangs. */
const silenceMs = 40_000
const maxMessageCharacters = 4 * 1024 * 1024

/** Follows the daemon of a home until the signal: connects, reads, and connects again for ever. */
export const follow = async (
  home: Home,
  follower: Follower,
  signal: AbortSignal,
): Promise<void> => {
  let waitMs = firstWaitMs
  let last: Place | undefined
  while (!signal.aborted) {
    try {
      await followOnce(home, signal, last, {
        ...follower,
        onStatus: (status) => {
          waitMs = firstWaitMs
          follower.onStatus(status)
        },
        onPlace: (place) => {
          last = place
        },
      })
    } catch (error) {
      if (signal.aborted) return
      follower.onLost(error)
    }
    const started = await daemonStarts(home, waitMs * (0.75 + Math.random() / 2), signal)
    waitMs = started ? firstWaitMs : Math.min(waitMs * 2, longestWaitMs)
  }
}

/** How far the stream was read; without an id, nothing came yet from this run of the daemon. */
type Place = { readonly startedAt: string; readonly lastEventId?: string }

/** One connection, from hello to its end. Throws why it ended. */
const followOnce = async (
  home: Home,
  signal: AbortSignal,
  last: Place | undefined,
  follower: Follower & { readonly onPlace: (place: Place) => void },
): Promise<void> => {
  const client = await connect(home, { userAgent: userAgentOf('tray') })
  const ended = new AbortController()
  const connection = AbortSignal.any([signal, ended.signal])
  try {
    const { startedAt } = client.daemon
    // To a daemon that was started since, any foreign id means: send all you have. To the one that is
    // met first, none means: send only what is new.
    const isNew = last !== undefined && last.startedAt !== startedAt
    const after = last?.lastEventId ?? (isNew ? '0-0' : undefined)
    const stream = await client.open('/events/stream', {
      signal: connection,
      timeoutMs: silenceMs,
      headers: {
        accept: 'text/event-stream',
        ...(after === undefined ? {} : { 'last-event-id': after }),
      },
    })
    follower.onPlace({ startedAt, ...(after === undefined ? {} : { lastEventId: after }) })
    const refresh = refresher(client, connection, follower.onStatus)
    const parser = createParser({
      maxBufferSize: maxMessageCharacters,
      onEvent: ({ id, data }) => {
        if (id) follower.onPlace({ startedAt, lastEventId: id })
        const event = readEvent(data)
        if (event) follower.onEvent(event)
        refresh.soon()
      },
    })
    refresh.soon()
    const reading = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of stream as AsyncIterable<Buffer>)
        parser.feed(decoder.decode(chunk, { stream: true }))
      throw new DoorwardError('daemon-unreachable', 'the daemon ended the event stream')
    })()
    await Promise.race([reading, refresh.failed])
  } finally {
    ended.abort()
    client.close()
  }
}

/** A record that is not one is passed over: the status that is asked for next is what counts. */
const readEvent = (data: string): EventRecord | undefined => {
  try {
    return eventSchema.safeParse(JSON.parse(data)).data
  } catch {
    return undefined
  }
}

/** Asks for the status, one question at a time and at most ten in a second. */
const refresher = (
  client: Client,
  signal: AbortSignal,
  onStatus: (status: Status) => void,
): { readonly soon: () => void; readonly failed: Promise<never> } => {
  let wanted = false
  let busy = false
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const run = async (): Promise<void> => {
    while (wanted && !signal.aborted) {
      wanted = false
      onStatus(await readStatus(client, signal))
      await delay(100, undefined, { signal })
    }
  }
  return {
    soon: () => {
      wanted = true
      if (busy) return
      busy = true
      run()
        .catch(fail)
        .finally(() => {
          busy = false
        })
    },
    failed,
  }
}

const readStatus = async (client: Client, signal: AbortSignal): Promise<Status> => {
  const answer = await client.get<unknown>('/status', { signal, timeoutMs: 10_000 })
  const status = statusSchema.safeParse(answer)
  if (status.success) return status.data
  throw new DoorwardError('internal', 'the daemon answers what the tray cannot read', {
    hint: 'doorward daemon restart, then start the tray again',
  })
}

/**
 * Waits, but not longer than until a daemon writes its `run/daemon.json`: so a daemon that comes back
 * after hours is seen at once. Answers whether that was why.
 */
const daemonStarts = async (home: Home, waitMs: number, signal: AbortSignal): Promise<boolean> => {
  const woken = new AbortController()
  let watcher: FSWatcher | undefined
  try {
    watcher = watch(home.run, { persistent: false }, (_, name) => {
      if (name === 'daemon.json') woken.abort()
    })
    watcher.on('error', () => undefined)
  } catch {
    // Without a watch there is still the wait.
  }
  try {
    await delay(waitMs, undefined, { signal: AbortSignal.any([signal, woken.signal]) })
  } catch {
    // Woken or stopped.
  } finally {
    watcher?.close()
  }
  return woken.signal.aborted
}
