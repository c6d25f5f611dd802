import type { IncomingMessage } from 'node:http'
import { connect as netConnect, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import { createParser } from 'eventsource-parser'
import type { DaemonFile, EventRecord, Status } from '../shared/api.ts'
import { type Client, connect } from '../shared/client/client.ts'
import { foreignDaemonError, readDaemonFile } from '../shared/client/discovery.ts'
import { readText } from '../shared/client/transport.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { bareHost } from '../shared/net.ts'
import { getUserAgent } from '../shared/version.ts'
import { readEvent, readStatus } from './parse-status.ts'

/** How far the stream was read; without an id, nothing has come yet from this run of the daemon. */
export type StreamPosition = { readonly startedAt: string; readonly lastEventId?: string }

type ConnectionListener = {
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

/** One connection to the daemon, from hello to its end. Throws why it ended. */
export const followOnce = async (
  home: Home,
  signal: AbortSignal,
  last: StreamPosition | undefined,
  listener: ConnectionListener,
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
    await listen(client, stream, connection, listener)
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

/** Reads the stream, asks for the status after each event, and checks that the daemon answers. */
const listen = async (
  client: Client,
  stream: IncomingMessage,
  signal: AbortSignal,
  { onStatus, onEvent, onPosition, onSilent }: ConnectionListener,
): Promise<void> => {
  const { url, pid, startedAt } = client.daemon
  const reportSilence = () =>
    onSilent(new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`))
  const status = pollStatus(client, signal, { onStatus, onLate: reportSilence })
  const heartbeat = new Heartbeat(url, { onSilent: reportSilence, onRecovered: status.refresh })
  const parser = createParser({
    maxBufferSize: maxMessageCharacters,
    onEvent: ({ id, data }) => {
      if (id) onPosition({ startedAt, lastEventId: id })
      const event = readEvent(data)
      if (event) onEvent(event)
      status.refresh()
    },
    // A comment with text hints at a change of the status; the heartbeat is an empty comment.
    onComment: (text) => text !== '' && status.refresh(),
  })
  const read = async (): Promise<never> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      heartbeat.beat()
      parser.feed(decoder.decode(chunk, { stream: true }))
    }
    throw new DoorwardError('daemon-unreachable', 'the daemon closed the event stream')
  }
  status.refresh()
  try {
    await Promise.race([read(), status.failed])
  } finally {
    heartbeat.stop()
  }
}

type StatusPoller = {
  /** Asks for the status, now or as soon as the pause between two requests is over. */
  readonly refresh: () => void
  /** Rejects when a status request fails. */
  readonly failed: Promise<never>
}

type StatusListener = {
  readonly onStatus: (status: Status) => void
  /** The answer is late, but may still come. */
  readonly onLate: () => void
}

const pauseMs = 250
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
  let fail: (error: unknown) => void = () => undefined
  const failed = new Promise<never>((_, reject) => {
    fail = reject
  })
  failed.catch(() => undefined)
  const run = async (): Promise<void> => {
    while (isWanted && !signal.aborted) {
      isWanted = false
      const askedAt = performance.now()
      const late = setTimeout(onLate, statusLateMs)
      try {
        onStatus(await requestStatus(client, signal))
      } finally {
        clearTimeout(late)
      }
      await delay(Math.max(pauseMs, 4 * (performance.now() - askedAt)), undefined, { signal })
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

/*
 * A hanging daemon keeps its connections open, and the heartbeat of its stream comes only every 15 s. So
 * the tray asks for /health all the time, over one raw connection, because `node:http` costs four times
 * as much. No token goes there; of the answer, only its arrival counts.
 */

type HeartbeatListener = {
  /** Nothing came for about 1.8 s although the daemon was asked. */
  readonly onSilent: () => void
  /** Something came again after `onSilent`. */
  readonly onRecovered: () => void
}

/** Between two requests, and the time for an answer: silence is reported after at most twice as long. */
const beatMs = 900
/** A tick that is later than this shows that this process or the whole machine was suspended. */
const tickLateMs = 200
const maxAnswerBytes = 64 * 1024

/** Checks that the daemon at an address answers, until it is stopped. */
class Heartbeat {
  readonly #address: { readonly host: string; readonly port: number }
  readonly #request: string
  readonly #listener: HeartbeatListener
  readonly #timer = setInterval(() => this.#tick(), beatMs)
  #socket: Socket | undefined
  #answerBytes = 0
  #lastTick = performance.now()
  #isWaiting = false
  #isSilent = false

  constructor(url: string, listener: HeartbeatListener) {
    const { hostname, port, host } = new URL(url)
    this.#address = { host: bareHost(hostname), port: Number(port) }
    this.#request = `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
    this.#listener = listener
  }

  /** Something came from the daemon, here or on another connection. */
  beat(): void {
    this.#isWaiting = false
    if (!this.#isSilent) return
    this.#isSilent = false
    this.#listener.onRecovered()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #tick(): void {
    const now = performance.now()
    const isLate = now - this.#lastTick > beatMs + tickLateMs
    this.#lastTick = now
    if (!this.#isWaiting) {
      this.#isWaiting = true
      return this.#ask()
    }
    // The connection was refused, or closed before the answer.
    if (!this.#socket) return this.#ask()
    // After a late tick there may be an answer that was not read yet.
    if (this.#isSilent || isLate) return
    this.#isSilent = true
    this.#listener.onSilent()
  }

  #ask(): void {
    this.#answerBytes = 0
    this.#socket ??= this.#open()
    this.#socket.write(this.#request)
  }

  #open(): Socket {
    const socket = netConnect(this.#address)
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      this.beat()
      this.#answerBytes += chunk.length
      if (this.#answerBytes > maxAnswerBytes) socket.destroy()
    })
    socket.on('error', () => undefined)
    socket.once('close', () => {
      if (this.#socket === socket) this.#socket = undefined
    })
    return socket
  }
}
