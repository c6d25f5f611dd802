import type { EventRecord, PastEvent } from '../../shared/api/api.ts'
import { systemCode, errorName } from '../../shared/errors.ts'
import { type EventChange, isFinal } from '../events/event-record.ts'
import { eventNotFound, type EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import { createKeyedMutex } from '../util/concurrency.ts'
import { HistoryFiles, idOf, linesOf } from './history-files.ts'
import type { HistoryKey } from './history-key.ts'
import { type HistoryLine, hasLine, parseLine, toLine, toPastDetail } from './history-line.ts'
import {
  byNewest,
  type HistoryList,
  type HistoryQuery,
  matches,
  searchHistory,
  toCursor,
} from './history-search.ts'

type HistoryParts = {
  readonly folder: string
  readonly events: Pick<EventStore, 'follow' | 'get' | 'list' | 'record'>
  readonly settings: () => { readonly keep: number; readonly contents: 'none' | 'sealed' }
  readonly key: HistoryKey
  /** The home has one writer: during a restart this process waits, and afterwards the other one writes. */
  readonly isHandingOver: () => boolean
  readonly log: Pick<Log, 'warn'>
}

/** Events that became final and are not written yet, for the process after a restart. */
export type UnwrittenEvents = readonly (readonly [id: string, endedAt: number])[]

const batchMs = 500
const pruneMs = 3_600_000
/** Events that a full disk did not take. */
const maxWaiting = 10_000

/**
 * Finished events, beyond the memory. A change to a final state is noted in memory, and a batch of them is written
 * later, so that no delivery waits. A disk that is full costs a line of the log. Refused deliveries are left out: any
 * stranger could fill the disk with them.
 */
export class History {
  readonly #parts: HistoryParts
  readonly #files: HistoryFiles
  readonly #withLock = createKeyedMutex()
  readonly #waiting = new Map<string, { readonly at: Date; readonly record: EventRecord }>()
  #timer: NodeJS.Timeout | undefined
  #isUnwritable = false

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#files = new HistoryFiles(parts.folder)
    parts.events.follow((change) => this.#note(change))
  }

  /** Removes what is too old, now and each hour. */
  async start(): Promise<void> {
    setInterval(() => void this.configured(), pruneMs).unref()
    await this.configured()
  }

  /** Follows a change of the settings: removes what is no longer kept. */
  async configured(): Promise<void> {
    await this.#inOrder(async () => {
      if (this.#parts.isHandingOver()) return
      const { keep } = this.#parts.settings()
      if (keep === 0) await this.#files.removeAll()
      else await this.#files.prune(new Date(Date.now() - keep))
    })
  }

  #note({ record, before }: EventChange): void {
    if (!isFinal(record.state) || (before !== undefined && isFinal(before))) return
    if (record.kind !== 'webhook' || record.state === 'rejected' || !hasLine(record)) return
    if (this.#parts.settings().keep === 0 || this.#waiting.size >= maxWaiting) return
    this.#waiting.set(record.id, { at: new Date(), record })
    this.#writeLater()
  }

  #writeLater(): void {
    this.#timer ??= setTimeout(() => void this.settled(), batchMs).unref()
  }

  /** Resolves when everything that was noted is written, or the disk has refused it. */
  async settled(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#inOrder(() => this.#write())
    if (this.#waiting.size > 0) this.#writeLater()
  }

  /** Resolves when no write is in progress: none begins while the process hands over. */
  async paused(): Promise<void> {
    await this.#withLock('files', async () => undefined)
  }

  unwritten(): UnwrittenEvents {
    return [...this.#waiting].map(([id, { at }]) => [id, at.getTime()])
  }

  /** Writes what the process before a restart had not written. */
  restore(unwritten: UnwrittenEvents): void {
    for (const [id, endedAt] of unwritten) {
      const record = this.#parts.events.record(id)
      if (record && isFinal(record.state)) this.#waiting.set(id, { at: new Date(endedAt), record })
    }
    if (this.#waiting.size > 0) this.#writeLater()
  }

  /** Those of the history alone. Throws `home-unusable`. */
  async list(query: HistoryQuery, isLeftOut = (_id: string) => false): Promise<HistoryList> {
    await this.settled()
    const key = await this.#parts.key.find()
    return searchHistory(query, { files: this.#files, key, isLeftOut })
  }

  /** Those of the memory, which knows more of them, and of the history. Throws `home-unusable`. */
  async listAll(query: HistoryQuery): Promise<HistoryList> {
    const { events } = this.#parts
    const { cursor, limit } = query
    const inMemory = events
      .list({ limit: Infinity })
      .filter((event) => matches(event, query))
      .filter((event) => cursor === undefined || toCursor(event) < cursor)
    const past = await this.list(query, (id) => events.record(id) !== undefined)
    const end = past.cursor ?? ''
    const all = [...inMemory.filter((event) => toCursor(event) >= end), ...past.events]
    all.sort(byNewest)
    const last = all[limit - 1]
    const isMore = all.length > limit
    const next = isMore && last ? toCursor(last) : past.cursor
    return {
      events: all.slice(0, limit),
      ...(next !== undefined && { cursor: next }),
      damaged: past.damaged,
    }
  }

  /** The event with this id, or the one that begins so, with its texts. Throws `event-not-found` where several do. */
  async find(typed: string): Promise<PastEvent | undefined> {
    const line = await this.#findLine(typed)
    return line && toPastDetail(line, await this.#parts.key.find())
  }

  async #findLine(typed: string): Promise<HistoryLine | undefined> {
    const start = `evt_${typed.replace(/^evt_/, '')}`
    if (!/^evt_[0-9a-f]{4,18}$/.test(start)) return undefined
    await this.settled()
    const found = new Map<string, HistoryLine>()
    for (const day of await this.#files.days()) {
      await this.#files.read(day, ({ bytes }) => {
        if (!bytes.includes(`{"id":"${start}`, 0, 'latin1')) return
        for (const place of linesOf(bytes)) {
          if (!idOf(bytes, place.start).startsWith(start)) continue
          const line = parseLine(bytes.toString('utf8', place.start, place.end))
          if (line) found.set(line.id, line)
        }
      })
      // All lines of an event are in one file.
      if (found.has(start)) break
    }
    if (found.size > 1) throw eventNotFound('several events begin so')
    return [...found.values()][0]
  }

  /** Removes an event from the disk; undefined where it is not there. Throws what the disk refuses. */
  async forget(typed: string): Promise<PastEvent | undefined> {
    this.#waiting.delete(typed)
    const line = await this.#findLine(typed)
    if (!line) return undefined
    const { head: _head, texts: _texts, subjectKind: _kind, ...rest } = line
    await this.#withLock('files', async () =>
      this.#files.erase(line.receivedAt.slice(0, 10), line.id),
    )
    return { ...rest, targets: [], past: { endedAt: line.endedAt, texts: 'none' } }
  }

  /** Removes all files, and the key with which their texts were sealed. Throws what the disk refuses. */
  async forgetAll(): Promise<{ readonly files: number; readonly bytes: number }> {
    return this.#withLock('files', async () => {
      this.#waiting.clear()
      const removed = await this.#files.removeAll()
      await this.#parts.key.remove()
      return removed
    })
  }

  async #write(): Promise<void> {
    const { events, settings, key, isHandingOver } = this.#parts
    if (this.#waiting.size === 0 || isHandingOver()) return
    const sealing = settings().contents === 'sealed' ? await key.findOrMake() : undefined
    const batch = [...this.#waiting]
    const days = new Map<string, string[]>()
    for (const [id, { at, record: noted }] of batch) {
      const record = events.record(id) ?? noted
      if (!isFinal(record.state)) continue
      const day = record.receivedAt.slice(0, 10)
      const lines = days.get(day) ?? []
      lines.push(toLine(record, (sealing && events.get(id)) ?? {}, at, sealing))
      days.set(day, lines)
    }
    let isFull = false
    for (const [day, lines] of days) isFull = !(await this.#files.append(day, lines)) || isFull
    for (const [id, one] of batch) if (this.#waiting.get(id) === one) this.#waiting.delete(id)
    if (isFull) this.#complain('the file of the day is full')
    else this.#isUnwritable = false
  }

  async #inOrder(work: () => Promise<void>): Promise<void> {
    await this.#withLock('files', async () => {
      try {
        await work()
      } catch (error) {
        this.#complain(systemCode(error) ?? errorName(error))
      }
    })
  }

  #complain(why: string): void {
    if (!this.#isUnwritable) this.#parts.log.warn({ why }, 'the history cannot be written')
    this.#isUnwritable = true
  }
}
