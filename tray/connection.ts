import type { IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { DaemonFile, EventRecord, Status } from '../shared/api.ts'
import { type Client, connect } from '../shared/client/client.ts'
import { notOurDaemon, readDaemonFile } from '../shared/client/discovery.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { userAgentOf } from '../shared/version.ts'
import { askStatus } from './ask-status.ts'
import { readEvent } from './read-status.ts'
import { watchLife } from './watch-life.ts'

/** How far the stream was read; without an id, nothing came yet from this run of the daemon. */
export type Place = { readonly startedAt: string; readonly lastEventId?: string }

export type Hearer = {
  readonly onConnected: (daemon: DaemonFile) => void
  readonly onStatus: (status: Status) => void
  readonly onEvent: (event: EventRecord) => void
  readonly onPlace: (place: Place) => void
  /** It does not answer; the connection stays, and is good again when it goes on. */
  readonly onSilent: (error: DoorwardError) => void
}

/** After so long an answer at the start is late; after the limit it is asked anew. */
const lateMs = 1200
const limitMs = 30_000
const maxMessageCharacters = 4 * 1024 * 1024

/** One connection to the daemon, from hello to its end. Throws why it ended. */
export const followOnce = async (
  home: Home,
  signal: AbortSignal,
  last: Place | undefined,
  hearer: Hearer,
): Promise<void> => {
  const ended = new AbortController()
  const connection = AbortSignal.any([signal, ended.signal])
  const opening = watchOpening(home, hearer, () => ended.abort())
  let client: Client | undefined
  try {
    client = await connect(home, { userAgent: userAgentOf('tray'), limitMs, signal: connection })
    const stream = await openStream(client, connection, last, hearer)
    opening.end()
    hearer.onConnected(client.daemon)
    await listen(client, stream, connection, hearer)
  } finally {
    opening.end()
    ended.abort()
    client?.close()
  }
}

/** Says when the daemon does not answer the first questions, and gives up on it in the end. */
const watchOpening = (home: Home, hearer: Hearer, giveUp: () => void) => {
  let isOpen = false
  const late = setTimeout(() => {
    const tell = async (): Promise<void> => {
      const daemon = await readDaemonFile(home)
      const error = daemon && (await notOurDaemon(daemon, 'silent'))
      if (error && !isOpen) hearer.onSilent(error)
    }
    tell().catch(() => undefined)
  }, lateMs)
  const limit = setTimeout(giveUp, limitMs + lateMs)
  return {
    end: () => {
      isOpen = true
      clearTimeout(late)
      clearTimeout(limit)
    },
  }
}

/**
 * Opens the stream of events where it was left. To a daemon that was started since, any foreign id
 * means: send all you have. To the one that is met first, none means: send only what is new.
 */
const openStream = async (
  client: Client,
  signal: AbortSignal,
  last: Place | undefined,
  { onPlace }: Hearer,
): Promise<IncomingMessage> => {
  const { startedAt } = client.daemon
  const isNew = last !== undefined && last.startedAt !== startedAt
  const after = last?.lastEventId ?? (isNew ? '0-0' : undefined)
  const stream = await client.open('/events/stream', {
    signal,
    headers: {
      accept: 'text/event-stream',
      ...(after === undefined ? {} : { 'last-event-id': after }),
    },
  })
  onPlace({ startedAt, ...(after === undefined ? {} : { lastEventId: after }) })
  return stream
}

/** Reads the stream, asks for the status after each piece of news, and watches over the daemon's life. */
const listen = async (
  client: Client,
  stream: IncomingMessage,
  signal: AbortSignal,
  { onStatus, onEvent, onPlace, onSilent }: Hearer,
): Promise<void> => {
  const { url, pid, startedAt } = client.daemon
  const silent = () =>
    onSilent(new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`))
  const status = askStatus(client, signal, { onStatus, onLate: silent })
  const life = watchLife(url, { onSilent: silent, onSign: status.soon })
  const parser = createParser({
    maxBufferSize: maxMessageCharacters,
    onEvent: ({ id, data }) => {
      if (id) onPlace({ startedAt, lastEventId: id })
      const event = readEvent(data)
      if (event) onEvent(event)
      status.soon()
    },
    // One that says something is a hint that the status has changed; the heartbeat says nothing.
    onComment: (text) => text !== '' && status.soon(),
  })
  const read = async (): Promise<never> => {
    const decoder = new TextDecoder()
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      life.sign()
      parser.feed(decoder.decode(chunk, { stream: true }))
    }
    throw new DoorwardError('daemon-unreachable', 'the daemon ended the event stream')
  }
  status.soon()
  try {
    await Promise.race([read(), status.failed])
  } finally {
    life.end()
  }
}
