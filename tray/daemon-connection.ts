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

/** How far the stream was read; without an id, nothing came yet from this run of the daemon. */
export type Place = { readonly startedAt: string; readonly lastEventId?: string }

type Hearer = {
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
    client = await connect(home, { userAgent: getUserAgent('tray'), limitMs, signal: connection })
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
      const error = daemon && (await foreignDaemonError(daemon, 'silent'))
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

type StatusAsker = {
  /** Something has changed: asks, now or as soon as it may. */
  readonly soon: () => void
  /** Rejects with why no status came. */
  readonly failed: Promise<never>
}

type StatusHearer = {
  readonly onStatus: (status: Status) => void
  /** The answer is late; it may still come. */
  readonly onLate: () => void
}

const pauseMs = 250
const statusLateMs = 3000
const statusLimitMs = 10_000
const maxBytes = 4 * 1024 * 1024

/**
 * Asks for the status, one question at a time and at most four in a second, however much happens; a
 * status that takes long to send and to read is asked for less often, so that it costs a fifth of a
 * processor at the most.
 */
const askStatus = (
  client: Client,
  signal: AbortSignal,
  { onStatus, onLate }: StatusHearer,
): StatusAsker => {
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
      const askedAt = performance.now()
      const late = setTimeout(onLate, statusLateMs)
      try {
        onStatus(await ask(client, signal))
      } finally {
        clearTimeout(late)
      }
      await delay(Math.max(pauseMs, 4 * (performance.now() - askedAt)), undefined, { signal })
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

/** Throws `daemon-silent` when the whole answer does not come in time, though bytes of it may. */
const ask = async (client: Client, signal: AbortSignal): Promise<Status> => {
  const control = new AbortController()
  const stop = () => control.abort()
  signal.addEventListener('abort', stop)
  const limit = setTimeout(stop, statusLimitMs)
  try {
    const answer = await client.open('/status', { signal: control.signal })
    const status = readStatus(json(await readBody(answer)))
    if (status) return status
  } catch (error) {
    if (signal.aborted || !control.signal.aborted) throw error
    throw new DoorwardError('daemon-silent', 'the daemon does not answer', { cause: error })
  } finally {
    clearTimeout(limit)
    signal.removeEventListener('abort', stop)
  }
  throw unreadable('the daemon answers what the tray cannot read')
}

const readBody = async (answer: IncomingMessage): Promise<string> => {
  try {
    return await readText(answer, maxBytes)
  } catch (error) {
    if (error instanceof DoorwardError && error.code === 'internal')
      throw unreadable('the daemon answers more than the tray can read')
    throw error
  }
}

const json = (text: string): unknown => {
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
 * A daemon that hangs keeps all its connections open, and the heartbeat of its stream comes every 15 s
 * only. So it is asked for a sign of life all the time: by hand over one connection of its own, as
 * `node:http` costs four times as much. Neither the token nor anything else goes there, and of the answer
 * counts only that it comes.
 */

type Life = {
  /** Something came from the daemon. */
  readonly sign: () => void
  readonly end: () => void
}

type LifeWatcher = {
  /** Nothing came for about 1.8 s, though it was asked. */
  readonly onSilent: () => void
  /** After that, something came again. */
  readonly onSign: () => void
}

/** Between two questions, and the time for an answer: so silence is told within twice as long. */
const askEveryMs = 900
/** A turn that comes this much too late says that we, or the whole machine, were held up. */
const lifeLateMs = 200
const maxAnswerBytes = 64 * 1024

/** Watches over the life of the daemon at an address until it is ended. */
const watchLife = (url: string, watcher: LifeWatcher): Life => {
  const { hostname, port, host } = new URL(url)
  const question = `GET /health HTTP/1.1\r\nhost: ${host}\r\n\r\n`
  let socket: Socket | undefined
  let answered = 0
  let lastTurn = performance.now()
  let isWaiting = false
  let isSilent = false

  const ask = (): void => {
    answered = 0
    socket ??= open()
    socket.write(question)
  }
  const open = (): Socket => {
    const opened = netConnect({ host: bareHost(hostname), port: Number(port) })
    opened.setNoDelay(true)
    opened.on('data', (chunk: Buffer) => {
      sign()
      answered += chunk.length
      if (answered > maxAnswerBytes) opened.destroy()
    })
    opened.on('error', () => undefined)
    opened.once('close', () => {
      if (socket === opened) socket = undefined
    })
    return opened
  }
  const turn = (): void => {
    const now = performance.now()
    const wasHeldUp = now - lastTurn > askEveryMs + lifeLateMs
    lastTurn = now
    if (!isWaiting) {
      isWaiting = true
      return ask()
    }
    // The connection has ended without an answer: at its end of life, or refused.
    if (!socket) return ask()
    // What came while we were held up has not been read yet.
    if (isSilent || wasHeldUp) return
    isSilent = true
    watcher.onSilent()
  }
  const sign = (): void => {
    isWaiting = false
    if (!isSilent) return
    isSilent = false
    watcher.onSign()
  }
  const timer = setInterval(turn, askEveryMs)

  return {
    sign,
    end: () => {
      clearInterval(timer)
      socket?.destroy()
      socket = undefined
    },
  }
}
