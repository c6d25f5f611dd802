import type { EventRecord, WebhookSummary } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import type { Context } from './context.ts'
import type { EventFilter } from './event-filter.ts'
import { isFinished } from './event-line.ts'
import { openEventStream } from './event-stream.ts'
import { findDaemon } from './find-daemon.ts'
import { type FollowView, createFollowView } from './follow-view.ts'
import { interruptSignal, pause } from './interrupt.ts'
import { reachDaemon } from './reach-daemon.ts'

const firstPauseMs = 500
const longestPauseMs = 10_000
/** An id of no stream: the daemon then sends all the changes that it knows. */
const fromTheBeginning = '0-0'

/**
 * Prints what becomes of events from now on; with `--json` JSON lines. Comes back after a restart of the
 * daemon, without starting one itself then, and goes on where it was. Ends by `interrupted`.
 */
export const followEvents = async (
  context: Context,
  choose: (client: Client) => Promise<EventFilter>,
): Promise<void> => {
  const { terminal } = context
  const signal = interruptSignal()
  let client = await reachDaemon(context)
  let lastId: string | undefined
  let view: FollowView | undefined
  let said: string | undefined = 'following; Ctrl-C ends it'
  let isSeen: (record: EventRecord) => boolean = () => false
  try {
    const filter = await choose(client)
    for (;;) {
      try {
        const stream = await openEventStream(client, signal, lastId)
        const { events: known } = await client.get<{ events: EventRecord[] }>('/events?limit=1000')
        if (view) view.replace(known)
        else {
          view = createFollowView(terminal, {
            filter,
            known,
            names: await namesOf(client, terminal.isLive),
          })
          isSeen = seenBefore(known)
        }
        if (said !== undefined) view.say(said)
        said = undefined
        const isReplay = lastId === fromTheBeginning
        for await (const { id, record } of stream) {
          lastId = id ?? lastId
          if (!isReplay || !isSeen(record)) view.change(record)
        }
      } catch (error) {
        if (!signal.aborted && !isGone(error)) throw error
      }
      client.close()
      if (signal.aborted) throw new DoorwardError('interrupted', 'interrupted')
      lastId ??= fromTheBeginning
      const { startedAt } = client.daemon
      ;({ client, said } = await untilBack(context, startedAt, signal, view?.say ?? terminal.say))
    }
  } finally {
    view?.end()
    client.close()
  }
}

/** One that takes over at once, or one that is waited for; `said` is what a person is to know of it. */
const untilBack = async (
  context: Context,
  startedAt: string,
  signal: AbortSignal,
  say: (text: string) => void,
): Promise<{ client: Client; said: string }> => {
  const successor = await foundNow(context)
  if (successor && successor.daemon.startedAt !== startedAt)
    return { client: successor, said: 'the daemon was restarted; following the new one' }
  successor?.close()
  say('the daemon has gone; waiting for it')
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
    await pause(pauseMs, signal)
    const client = await foundNow(context)
    if (client) return { client, said: 'the daemon is back' }
  }
}

const foundNow = async (context: Context): Promise<Client | undefined> => {
  try {
    return await findDaemon(context)
  } catch (error) {
    if (isGone(error) || isNotYet(error)) return undefined
    throw error
  }
}

/** Whatever breaks a stream that was open means that its daemon has gone. */
const isGone = (error: unknown): boolean =>
  !(error instanceof DoorwardError) ||
  error.code === 'daemon-unreachable' ||
  error.code === 'stopping'

/** Between two daemons another program may have the port, and one that has just begun may be slow. */
const isNotYet = (error: unknown): boolean =>
  error instanceof DoorwardError &&
  (error.code === 'daemon-foreign' || error.code === 'daemon-silent')

/**
 * Of a stream that nothing had come over there is no place to go on from, and a daemon that took the
 * events over tells all of them again: up to where each finished one stood in the beginning, that is old.
 */
const seenBefore = (known: readonly EventRecord[]): ((record: EventRecord) => boolean) => {
  const old = new Map(known.filter(({ state }) => isFinished(state)).map((one) => [one.id, one]))
  return (record) => {
    const last = old.get(record.id)
    if (!last) return false
    if (record.state === last.state && record.attempts === last.attempts) old.delete(record.id)
    return true
  }
}

const namesOf = async (
  client: Client,
  isLive: boolean,
): Promise<{ path: string; agent: string }[]> =>
  isLive ? (await client.get<{ webhooks: WebhookSummary[] }>('/webhooks')).webhooks : []
