import type { IncomingMessage } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import type { DaemonFile, EventRecord, Status } from '../shared/api/api.ts'
import { type Client, connect } from '../shared/client/client.ts'
import { foreignDaemonError, readDaemonFile } from '../shared/client/discovery.ts'
import { readText } from '../shared/client/transport.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { getUserAgent } from '../shared/version.ts'
import { readEvent, readStatus } from './parse-status.ts'

/** How far the stream was read; without an id, nothing has come yet from this run of the daemon. */
export type StreamPosition = { readonly startedAt: string; readonly lastEventId?: string }

export type ConnectionListener = {
  readonly onConnected: (daemon: DaemonFile) => void
  readonly onStatus: (status: Status) => void
  readonly onEvent: (event: EventRecord) => void
  readonly onPosition: (position: StreamPosition) => void
  /** The daemon does not answer. The connection stays open, and `onStatus` follows when it does. */
  readonly onSilent: (error: DoorwardError) => void
}

/** When to report that a new connection does not answer, and when to close it. */
const lateMs = 1200
const limitMs = 30_000
const maxMessageCharacters = 4 * 1024 * 1024
/** A daemon that is silent for longer is asked for its status: its heartbeat comes every 15 s. */
export const defaultSilentMs = 45_000
/** How old a status may become while nothing happens: a program or a file may have gone without an event. */
const oldMs = 110_000

/** One connection to the daemon, from hello to its end. Throws why it ended. */
export const followOnce = async (
  home: Home,
  signal: AbortSignal,
  last: StreamPosition | undefined,
  listener: ConnectionListener,
  silentMs: number,
): Promise<void> => {
  const closing = new AbortController()
  const connection = AbortSignal.any([signal, closing.signal])
  const stopTimers = watchOpening(home, listener, () => closing.abort())
  let client: Client | undefined
  try {
    client = await connect(home, { userAgent: getUserAgent('tray'), limitMs, signal: connection })
    const stream = await openStream(client, connection, last, listener)
    stopTimers()
    listener.onConnected(client.daemon)
    await listen(client, stream, connection, listener, silentMs)
  } finally {
    stopTimers()
    closing.abort()
    client?.close()
  }
}

/** Reports a daemon that does not answer while the connection opens, and calls `onLimit` after the limit. */
const watchOpening = (
  home: Home,
  listener: ConnectionListener,
  onLimit: () => void,
): (() => void) => {
  let isOpen = false
  const reportSilence = async (): Promise<void> => {
    const daemon = await readDaemonFile(home)
    const error = daemon && (await foreignDaemonError(daemon, 'silent'))
    if (error && !isOpen) listener.onSilent(error)
  }
  const late = setTimeout(() => void reportSilence().catch(() => undefined), lateMs)
  const limit = setTimeout(onLimit, limitMs + lateMs)
  return () => {
    isOpen = true
    clearTimeout(late)
    clearTimeout(limit)
  }
}

/**
 * Opens the stream of events at the last position. For a daemon that was restarted since, an unknown id
 * asks for all of its events; for the first daemon, no id asks for new events only.
 */
const openStream = async (
  client: Client,
  signal: AbortSignal,
  last: StreamPosition | undefined,
  { onPosition }: ConnectionListener,
): Promise<IncomingMessage> => {
  const { startedAt } = client.daemon
  const isRestarted = last !== undefined && last.startedAt !== startedAt
  const lastEventId = last?.lastEventId ?? (isRestarted ? '0-0' : undefined)
  const stream = await client.open('/events/stream', {
    signal,
    headers: {
      accept: 'text/event-stream',
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    },
  })
  onPosition({ startedAt, ...(lastEventId === undefined ? {} : { lastEventId }) })
  return stream
}

/**
 * Reads the stream, and asks for the status after each event, when it is old, and when the daemon is silent:
 * it may hang. While nothing happens, only the heartbeat wakes this process.
 */
const listen = async (
  client: Client,
  stream: IncomingMessage,
  signal: AbortSignal,
  { onStatus, onEvent, onPosition, onSilent }: ConnectionListener,
  silentMs: number,
): Promise<void> => {
  const { pid, startedAt } = client.daemon
  const reportSilence = () =>
    onSilent(new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`))
  const status = pollStatus(client, signal, { onStatus, onLate: reportSilence })
  const silence = setInterval(status.refresh, silentMs)
  const parser = createParser({
    maxBufferSize: maxMessageCharacters,
    onEvent: ({ id, data }) => {
      if (id) onPosition({ startedAt, lastEventId: id })
      const event = readEvent(data)
      if (event) onEvent(event)
      status.refresh()
    },
    // A comment with text hints at a change of the status; the heartbeat is an empty comment.
    onComment: (text) => (text !== '' || status.isOld()) && status.refresh(),
  })
  const read = async (): Promise<never> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      silence.refresh()
      parser.feed(decoder.decode(chunk, { stream: true }))
    }
    throw new DoorwardError('daemon-unreachable', 'the daemon closed the event stream')
  }
  status.refresh()
  try {
    await Promise.race([read(), status.failed])
  } finally {
    clearInterval(silence)
  }
}

type StatusPoller = {
  /** Asks for the status, now or as soon as the pause between two requests is over. */
  readonly refresh: () => void
  readonly isOld: () => boolean
  /** Rejects when a status request fails. */
  readonly failed: Promise<never>
}

type StatusListener = {
  readonly onStatus: (status: Status) => void
  /** The answer is late, but may still come. */
  readonly onLate: () => void
}

const pauseMs = 250
const maxPauseMs = 5000
const statusLateMs = 3000
const statusLimitMs = 10_000
const maxBytes = 4 * 1024 * 1024

/**
 * Asks for the status at most four times a second, one request at a time. The pause grows with the time
 * that a status takes, so that polling uses at most a fifth of a processor.
 */
const pollStatus = (
  client: Client,
  signal: AbortSignal,
  { onStatus, onLate }: StatusListener,
): StatusPoller => {
  let isWanted = false
  let isRunning = false
  let askedAt = 0
  let nextAt = 0
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const run = async (): Promise<void> => {
    while (isWanted && !signal.aborted) {
      const waitMs = nextAt - performance.now()
      if (waitMs > 0) await delay(waitMs, undefined, { signal })
      isWanted = false
      askedAt = performance.now()
      const late = setTimeout(onLate, statusLateMs)
      try {
        onStatus(await requestStatus(client, signal))
      } finally {
        clearTimeout(late)
      }
      const now = performance.now()
      nextAt = now + Math.min(maxPauseMs, Math.max(pauseMs, 4 * (now - askedAt)))
    }
  }
  return {
    refresh: () => {
      isWanted = true
      if (isRunning) return
      isRunning = true
      run()
        .catch(fail)
        .finally(() => {
          isRunning = false
        })
    },
    isOld: () => performance.now() - askedAt > oldMs,
    failed,
  }
}

/** Throws `daemon-silent` when the whole answer has not come within the limit. */
const requestStatus = async (client: Client, signal: AbortSignal): Promise<Status> => {
  // By hand: each `AbortSignal.any` would stay registered with a signal that lives for weeks.
  const control = new AbortController()
  const stop = () => control.abort()
  signal.addEventListener('abort', stop)
  const limit = setTimeout(stop, statusLimitMs)
  try {
    const answer = await client.open('/status', { signal: control.signal })
    const status = readStatus(parseJson(await readBody(answer)))
    if (status) return status
  } catch (error) {
    if (signal.aborted || !control.signal.aborted) throw error
    throw new DoorwardError('daemon-silent', 'the daemon does not answer', { cause: error })
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', stop)
  }
  throw unreadable('the daemon sends a status that the tray cannot read')
}

const readBody = async (answer: IncomingMessage): Promise<string> => {
  try {
    return await readText(answer, maxBytes)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'internal')
      throw unreadable('the daemon sends a status that is too long for the tray')
    throw error
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw unreadable('the daemon answered 200 with a body that is not JSON')
  }
}

const unreadable = (message: string): DoorwardError =>
  new DoorwardError('internal', message, {
    hint: 'doorward daemon restart, then start the tray again',
  })
