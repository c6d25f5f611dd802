import type { EventRecord } from '../shared/api.ts'
import { clock } from './clock.ts'
import { type EventFilter, isChosen } from './event-filter.ts'
import { eventLines, isFinished } from './event-line.ts'
import { createLiveBlock } from './live-block.ts'
import type { Terminal } from './terminal.ts'

/** Shows changes of events as they come. */
export type FollowView = {
  readonly change: (record: EventRecord) => void
  /** A line on standard error, beside what is drawn. */
  readonly say: (text: string) => void
  /** What a daemon knows that came after another: events that it does not know go on nowhere. */
  readonly replace: (known: readonly EventRecord[]) => void
  readonly end: () => void
}

/** Of id, time, state, webhook, agent and duration: lines that come one by one share no columns. */
const usualWidths = [22, 8, 12, 7, 5, 5]

export type FollowOptions = {
  readonly filter: EventFilter
  /** What there is already; of these the unfinished ones are drawn. */
  readonly known: readonly EventRecord[]
  /** Names that may come, so that lines have room for them from the beginning. */
  readonly names: readonly { readonly path: string; readonly agent: string }[]
}

/** JSON lines, a line for each change, or on a terminal one for each event that is drawn until it is finished. */
export const createFollowView = (
  terminal: Terminal,
  { filter, known, names }: FollowOptions,
): FollowView => {
  const widths = [...usualWidths]
  const makeRoom = ({ webhook, agent }: Pick<EventRecord, 'webhook' | 'agent'>) => {
    widths[3] = Math.max(widths[3] ?? 0, webhook?.length ?? 0)
    widths[4] = Math.max(widths[4] ?? 0, agent?.length ?? 0)
  }
  for (const { path, agent } of names) makeRoom({ webhook: path, agent })
  const linesOf = (records: readonly EventRecord[], header = false): string[] => {
    const { columns, paint } = terminal
    return eventLines(records, new Date(), paint, { columns, atLeast: widths, header })
  }
  if (terminal.isLive) {
    for (const line of linesOf([], true)) terminal.print(line)
    return createLiveView(terminal, { filter, known, makeRoom, linesOf })
  }
  return {
    change: (record) => {
      if (!isChosen(filter, record)) return
      if (terminal.json) {
        terminal.printJsonLine(record)
        return
      }
      makeRoom(record)
      for (const line of linesOf([record])) terminal.print(line)
    },
    say: terminal.say,
    replace: () => undefined,
    end: () => undefined,
  }
}

type LiveParts = Pick<FollowOptions, 'filter' | 'known'> & {
  readonly makeRoom: (record: EventRecord) => void
  readonly linesOf: (records: readonly EventRecord[]) => string[]
}

type Active = { readonly record: EventRecord; readonly sinceMs: number }

const createLiveView = (
  terminal: Terminal,
  { filter, known, makeRoom, linesOf }: LiveParts,
): FollowView => {
  const active = new Map<string, Active>()
  const block = createLiveBlock(terminal)
  const draw = (staying: readonly EventRecord[] = []) => {
    const nowMs = Date.now()
    const lines = [...active.values()].flatMap(({ record, sinceMs }) =>
      linesOf([{ ...record, resultPreview: progressOf(record, nowMs - sinceMs) }]),
    )
    // A block that is higher than the window could not be taken away again.
    const room = Math.max(1, terminal.rows - 2)
    const shown = lines.length > room ? [...lines.slice(0, room - 1), '…'] : lines
    block.draw(linesOf(staying), shown)
  }
  const note = (record: EventRecord, sinceMs: number) => {
    const before = active.get(record.id)
    const isSame = before?.record.state === record.state
    if (isFinished(record.state) || !isChosen(filter, record)) active.delete(record.id)
    else active.set(record.id, { record, sinceMs: isSame ? before.sinceMs : sinceMs })
    makeRoom(record)
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

/** How long an event has been in its state, and why a target of it is tried again. */
const progressOf = ({ targets }: EventRecord, ms: number): string => {
  const again = targets.find(({ state, detail }) => state === 'waiting' && detail !== undefined)
  return again ? `${clock(ms)}, try ${again.attempts}: ${again.detail}` : clock(ms)
}
