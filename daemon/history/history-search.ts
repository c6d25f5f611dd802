import { setImmediate } from 'node:timers/promises'
import type { EventRecord, PastEvent } from '../../shared/api/api.ts'
import { type HistoryFiles, idOf, linesOf, timeOf } from './history-files.ts'
import { type HistoryLine, parseLine, toPastEvent } from './history-line.ts'
import type { SealKey } from '../oauth/tokens/sealed-file.ts'

/** Which events; all of what is given has to be true. */
export type HistoryQuery = {
  /** Events received from then on. */
  readonly since?: Date
  /** Events received before. */
  readonly until?: Date
  readonly webhook?: string
  readonly rule?: string
  readonly state?: string
  /** Part of a name, a code, an id, a title, a detail or the beginning of an answer; in any case. */
  readonly text?: string
  readonly limit: number
  /** That of the list before: goes on where it ended. */
  readonly cursor?: string
}

export type HistoryList = {
  /** The newest first, by the time when they were received. An event that ran again is there once. */
  readonly events: PastEvent[]
  /** Missing when there are no more. A search that takes long ends early with one, and may have found nothing. */
  readonly cursor?: string
  /** Lines that could not be read. */
  readonly damaged: number
}

/** How long a search goes on, in milliseconds, before it answers with what it has. */
const patienceMs = 400
/** Lines between two turns of the event loop. */
const turnLines = 500

/** The place of an event in a list: `2026-11-28T20:07:46.123Z_evt_…`. */
export const toCursor = ({ receivedAt, id }: Pick<EventRecord, 'receivedAt' | 'id'>): string =>
  `${receivedAt}_${id}`

export const isCursor = (text: string): boolean =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z_evt_\w+$/.test(text)

/** The newest first, by their cursors. */
export const byNewest = (
  a: Pick<EventRecord, 'receivedAt' | 'id'>,
  b: Pick<EventRecord, 'receivedAt' | 'id'>,
): number => {
  if (a.receivedAt !== b.receivedAt) return a.receivedAt < b.receivedAt ? 1 : -1
  return a.id < b.id ? 1 : -1
}

export type Matched = Pick<HistoryQuery, 'since' | 'until' | 'webhook' | 'rule' | 'state' | 'text'>

export const matches = (event: PastEvent, query: Matched): boolean =>
  isOf(event, query) &&
  (query.since === undefined || event.receivedAt >= query.since.toISOString()) &&
  (query.until === undefined || event.receivedAt < query.until.toISOString()) &&
  (query.text === undefined || hasText(event, query.text.toLowerCase()))

const isOf = (
  event: Pick<HistoryLine, 'webhook' | 'rule' | 'state'>,
  { webhook, rule, state }: Matched,
): boolean =>
  (webhook === undefined || event.webhook === webhook) &&
  (rule === undefined || event.rule === rule) &&
  (state === undefined || event.state === state)

const hasText = (event: PastEvent, text: string): boolean => {
  const { id, webhook, rule, state, code, agent, machine, subject, detail, resultPreview } = event
  const kind = subject?.kind ?? event.past?.subjectKind
  const names = [id, webhook, rule, state, code, agent, machine, kind]
  const texts = [subject?.key, subject?.title, detail, resultPreview]
  return names.concat(texts).some((part) => part?.toLowerCase().includes(text))
}

type Row = { readonly id: string; readonly receivedAt: string; readonly text: string }

type SearchParts = {
  readonly files: HistoryFiles
  readonly key: SealKey | undefined
  /** Events that are left out. */
  readonly isLeftOut: (id: string) => boolean
}

/** Reads the newest days first, and no more of them than it needs. */
export const searchHistory = async (
  query: HistoryQuery,
  { files, key, isLeftOut }: SearchParts,
): Promise<HistoryList> => {
  const deadline = performance.now() + patienceMs
  const from = query.since?.toISOString() ?? ''
  const before = earlier(query.until?.toISOString(), query.cursor)
  const text = query.text?.toLowerCase()
  const events: PastEvent[] = []
  let [damaged, looked] = [0, 0]
  for (const day of await files.days()) {
    if (before !== undefined && day > before.slice(0, 10)) continue
    if (day < from.slice(0, 10)) break
    const found = await readDay(files, day, { ...query, from, before })
    damaged += found.damaged
    for (const row of found.rows) {
      if (events.length >= query.limit)
        return { events, cursor: toCursor(events.at(-1) ?? row), damaged }
      if (!isLeftOut(row.id)) {
        const line = parseLine(row.text)
        if (!line) damaged += 1
        else if (isOf(line, query)) {
          const event = toPastEvent(line, key)
          if (text === undefined || hasText(event, text)) events.push(event)
        }
      }
      looked += 1
      if (looked % turnLines > 0) continue
      if (performance.now() > deadline) return { events, cursor: toCursor(row), damaged }
      await setImmediate()
    }
    if (found.end !== '') return { events, cursor: found.end, damaged }
  }
  return { events, damaged }
}

const earlier = (until: string | undefined, cursor: string | undefined): string | undefined =>
  until === undefined || (cursor !== undefined && cursor < until) ? cursor : until

type DayQuery = HistoryQuery & { readonly from: string; readonly before: string | undefined }

type DayRows = {
  readonly rows: readonly Row[]
  /** The cursor of the last, where older ones of this day are left out; else empty. */
  readonly end: string
  readonly damaged: number
}

/** Lines in memory beyond the limit: a day may have 100,000. */
const spareRows = 2000

/** The lines of a day that may match, the newest first: of each event the last that was written. */
const readDay = async (files: HistoryFiles, day: string, query: DayQuery): Promise<DayRows> => {
  let rows = new Map<string, Row>()
  let floor = ''
  const mayMatch = createSieve(query)
  let damaged = 0
  await files.read(day, ({ bytes }) => {
    if (rows.size === 0 && !mayMatch(bytes.toString('utf8'))) return
    for (const { start, end, isWhole } of linesOf(bytes)) {
      if (!isWhole) {
        damaged += 1
        continue
      }
      const receivedAt = timeOf(bytes, start)
      if (receivedAt < query.from) continue
      const id = idOf(bytes, start)
      const cursor = `${receivedAt}_${id}`
      if (query.before !== undefined && cursor >= query.before) continue
      if (cursor < floor) continue
      const text = lineWithoutTexts(bytes, start, end)
      if (mayMatch(text)) rows.set(id, { id, receivedAt, text })
      // An older line of this event no longer counts.
      else rows.delete(id)
    }
    // A text may be in none of the lines that may have it.
    if (query.text !== undefined || rows.size < query.limit + spareRows) return
    const newest = [...rows.values()].toSorted(byNewest).slice(0, query.limit)
    rows = new Map(newest.map((row) => [row.id, row]))
    const last = newest.at(-1)
    if (last) floor = toCursor(last)
  })
  return { rows: [...rows.values()].toSorted(byNewest), end: floor, damaged }
}

/** Lines up to this size have no texts, or short ones. */
const shortLine = 1000
const textsKey = Buffer.from(',"texts":"')

const lineWithoutTexts = (bytes: Buffer, start: number, end: number): string => {
  const at = end - start > shortLine ? bytes.subarray(start, end).indexOf(textsKey) : -1
  return at === -1
    ? bytes.toString('utf8', start, end)
    : `${bytes.toString('utf8', start, start + at)}}`
}

/** A cheap test of one or more lines: reading JSON of those that cannot match would take most of the time. */
const createSieve = ({
  webhook,
  rule,
  state,
  text,
}: HistoryQuery): ((lines: string) => boolean) => {
  const parts = [webhook, rule, state].flatMap((value) =>
    value === undefined ? [] : [JSON.stringify(value)],
  )
  // A title is sealed, and JSON escapes some characters.
  const word = text !== undefined && /^[\w ./:-]+$/.test(text) ? text.toLowerCase() : undefined
  return (lines) =>
    parts.every((part) => lines.includes(part)) &&
    (word === undefined || lines.includes('"head":"') || lines.toLowerCase().includes(word))
}
