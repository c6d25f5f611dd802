import { stripVTControlCharacters } from 'node:util'
import type { EventRecord, WebhookSummary } from '../../../shared/api/api.ts'
import type { Client } from '../../../shared/client/client.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { describeOrigin } from '../../../shared/event-stages.ts'
import { measureWidth } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { findDaemon } from '../../daemon-client/connect.ts'
import { reachDaemon } from '../../daemon-client/ensure.ts'
import { openEventStream } from '../../daemon-client/event-stream.ts'
import { clock } from '../../terminal/format.ts'
import { interruptSignal, pause } from '../../terminal/spinner.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { type EventFilter, eventLines, isChosen, isFinished } from './format.ts'

const firstPauseMs = 500
const longestPauseMs = 10_000
/** An id that no stream has: the daemon then sends all the changes it knows. */
const fromTheBeginning = '0-0'

/**
 * Prints changes of events from now on, as JSON lines with `--json`. After a restart of the daemon it
 * reconnects and continues where it was; it does not start a daemon then. Throws `interrupted`.
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
            names: await fetchNames(client, terminal.isLive),
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

/** Connects to the daemon that replaced the last one, or waits for the next; `said` is what to print. */
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
  say('the daemon stopped; waiting for it to come back')
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

/** Any failure of an open stream means that its daemon stopped. */
const isGone = (error: unknown): boolean =>
  !(error instanceof DoorwardError) ||
  error.code === 'daemon-unreachable' ||
  error.code === 'stopping'

/** Between two daemons another program may have the port, and a starting daemon may be slow. */
const isNotYet = (error: unknown): boolean =>
  error instanceof DoorwardError &&
  (error.code === 'daemon-foreign' || error.code === 'daemon-silent')

/**
 * A stream that brought nothing has no position to resume from, so the new daemon sends every event
 * again. Returns a predicate that is true for changes that were known at the start.
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

const fetchNames = async (client: Client, isLive: boolean): Promise<string[]> => {
  if (!isLive) return []
  const { webhooks } = await client.get<{ webhooks: WebhookSummary[] }>('/webhooks')
  return webhooks.flatMap(({ path, rules }) => rules?.map(({ name }) => `${path} ${name}`) ?? path)
}

/** Shows changes of events as they come. */
type FollowView = {
  readonly change: (record: EventRecord) => void
  /** Prints a line on standard error. */
  readonly say: (text: string) => void
  /** Drops active events that the daemon does not know, after it replaced another. */
  readonly replace: (known: readonly EventRecord[]) => void
  readonly end: () => void
}

/** Column widths of id, time, state, what, rule, duration and cost, as lines are printed one by one. */
const usualWidths = (columns = 0) => [8, 8, 12, columns, 7, 5, 5]

type FollowOptions = {
  readonly filter: EventFilter
  /** Events known at the start; the unfinished ones are drawn. */
  readonly known: readonly EventRecord[]
  /** Rules that may appear, to reserve width for them. */
  readonly names: readonly string[]
}

/** JSON lines; or a line per change; or, on a terminal, a line per event that is redrawn until it finishes. */
const createFollowView = (
  terminal: Terminal,
  { filter, known, names }: FollowOptions,
): FollowView => {
  const widths = usualWidths(terminal.columns)
  const makeRoom = (rule: string) => (widths[4] = Math.max(widths[4] ?? 0, rule.length))
  for (const name of names) makeRoom(name)
  const toLines = (records: readonly EventRecord[], header = false): string[] => {
    const { columns, paint } = terminal
    return eventLines(records, new Date(), paint, { columns, atLeast: widths, header })
  }
  if (terminal.isLive) {
    for (const line of toLines([], true)) terminal.print(line)
    return createLiveView(terminal, { filter, known, makeRoom, toLines })
  }
  return {
    change: (record) => {
      if (!isChosen(filter, record)) return
      if (terminal.json) {
        terminal.printJsonLine(record)
        return
      }
      makeRoom(describeOrigin(record))
      for (const line of toLines([record])) terminal.print(line)
    },
    say: terminal.say,
    replace: () => undefined,
    end: () => undefined,
  }
}

type LiveViewOptions = Pick<FollowOptions, 'filter' | 'known'> & {
  readonly makeRoom: (rule: string) => void
  readonly toLines: (records: readonly EventRecord[]) => string[]
}

type Active = { readonly record: EventRecord; readonly sinceMs: number }

const createLiveView = (
  terminal: Terminal,
  { filter, known, makeRoom, toLines }: LiveViewOptions,
): FollowView => {
  const active = new Map<string, Active>()
  const block = createLiveBlock(terminal)
  const draw = (staying: readonly EventRecord[] = []) => {
    const nowMs = Date.now()
    const lines = [...active.values()].flatMap(({ record, sinceMs }) =>
      toLines([{ ...record, resultPreview: describeLiveProgress(record, nowMs - sinceMs) }]),
    )
    // A block taller than the window could not be erased.
    const room = Math.max(1, terminal.rows - 2)
    const shown = lines.length > room ? [...lines.slice(0, room - 1), '…'] : lines
    block.draw(toLines(staying), shown)
  }
  const note = (record: EventRecord, sinceMs: number) => {
    const before = active.get(record.id)
    const isSame = before?.record.state === record.state
    if (isFinished(record.state) || !isChosen(filter, record)) active.delete(record.id)
    else active.set(record.id, { record, sinceMs: isSame ? before.sinceMs : sinceMs })
    makeRoom(describeOrigin(record))
  }
  for (const record of known.toReversed()) note(record, Date.parse(record.receivedAt))
  draw()
  const timer = setInterval(() => {
    if (active.size > 0) draw()
  }, 1000)
  return {
    change: (record) => {
      note(record, Date.now())
      draw(isFinished(record.state) && isChosen(filter, record) ? [record] : [])
    },
    say: (text) => {
      block.clear()
      terminal.say(text)
      draw()
    },
    replace: (events) => {
      const ids = new Set(events.map(({ id }) => id))
      for (const id of active.keys()) if (!ids.has(id)) active.delete(id)
      draw()
    },
    end: () => clearInterval(timer),
  }
}

/** How long an event has been in its state, and why a target is retried. */
const describeLiveProgress = ({ targets }: EventRecord, ms: number): string => {
  const again = targets.find(({ state, detail }) => state === 'waiting' && detail !== undefined)
  return again ? `${clock(ms)}, try ${again.attempts}: ${again.detail}` : clock(ms)
}

/** Lines at the end of a terminal that are redrawn in place, below lines that stay. */
type LiveBlock = {
  /** Prints lines that stay, then redraws the block. */
  readonly draw: (staying: readonly string[], block: readonly string[]) => void
  /** Erases the block, so that something else can be printed. */
  readonly clear: () => void
}

export const createLiveBlock = (terminal: Pick<Terminal, 'draw' | 'columns'>): LiveBlock => {
  let drawn: readonly string[] = []
  const erasing = (): string => {
    // In a window that was made narrower a line takes several rows.
    const { columns = 80 } = terminal
    const rows = drawn.reduce(
      (sum, line) => sum + Math.max(1, Math.ceil(shownWidth(line) / columns)),
      0,
    )
    drawn = []
    // ECMA-48: cursor up, then erase to the end of the screen.
    return rows === 0 ? '' : `\u001b[${rows}A\r\u001b[J`
  }
  return {
    draw: (staying, block) => {
      const text = erasing() + [...staying, ...block].map((line) => `${line}\n`).join('')
      drawn = block
      if (text !== '') terminal.draw(text)
    },
    clear: () => {
      const text = erasing()
      if (text !== '') terminal.draw(text)
    },
  }
}

const shownWidth = (line: string): number => measureWidth(stripVTControlCharacters(line))
