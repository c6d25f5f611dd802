import type { EventRecord, PastEvent } from '../../shared/api/api.ts'
import { systemCode, errorName } from '../../shared/errors.ts'
import { isFinal, type EventChange } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import type { SealKey } from '../oauth/tokens/sealed-file.ts'
import { createKeyedMutex } from '../util/concurrency.ts'
import { HistoryFiles, toDay } from './history-files.ts'
import { type HistoryLine, parseLine, toLine, toPastEvent } from './history-line.ts'

type HistoryParts = {
  readonly folder: string
  readonly events: Pick<EventStore, 'follow' | 'get'>
  readonly settings: () => { readonly keep: number; readonly contents: 'none' | 'sealed' }
  /** Undefined until the keychain has given it. */
  readonly findKey: () => Promise<SealKey | undefined>
  /** True after a restart has replaced this process: the other one writes what becomes final. */
  readonly isReplaced: () => boolean
  readonly log: Pick<Log, 'warn'>
}

export type HistoryQuery = {
  readonly since: Date
  readonly limit: number
  readonly webhook?: string
  readonly rule?: string
  readonly state?: string
}

export type HistoryList = {
  readonly events: PastEvent[]
  /** Lines that could not be read. */
  readonly damaged: number
}

const batchMs = 500
/** Events that a full disk did not take. */
const maxWaiting = 10_000

/**
 * Finished events, beyond the memory. A change to a final state is noted in memory, and a batch of them is
 * written later, so that no delivery waits. A disk that is full costs a line of the log.
 */
export class History {
  readonly #parts: HistoryParts
  readonly #files: HistoryFiles
  readonly #withLock = createKeyedMutex()
  readonly #waiting = new Map<string, { readonly at: Date; readonly record: EventRecord }>()
  #timer: NodeJS.Timeout | undefined
  #isUnwritable = false
  #prunedOn = ''

  constructor(parts: HistoryParts) {
    this.#parts = parts
    this.#files = new HistoryFiles(parts.folder)
    parts.events.follow((change) => this.#note(change))
  }

  #note({ record, before }: EventChange): void {
    if (!isFinal(record.state) || (before !== undefined && isFinal(before))) return
    // A stranger could fill the disk with these.
    if (record.state === 'rejected') return
    if (this.#parts.settings().keep === 0 || this.#parts.isReplaced()) return
    if (this.#waiting.size >= maxWaiting) return
    this.#waiting.set(record.id, { at: new Date(), record })
    this.#timer ??= setTimeout(() => void this.settled(), batchMs).unref()
  }

  /** Resolves when everything that was noted is written. */
  async settled(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#inOrder(() => this.#write())
  }

  /** Follows a change of the settings: removes what is no longer kept. */
  async configured(): Promise<void> {
    this.#prunedOn = ''
    await this.#inOrder(() => this.#prune())
  }

  /** The events received since then, the newest first. An event that ran again is there once, as it is now. */
  async list({ since, limit, ...filter }: HistoryQuery): Promise<HistoryList> {
    await this.settled()
    const key = await this.#parts.findKey()
    const seen = new Set<string>()
    const found: HistoryLine[] = []
    let damaged = 0
    const first = toDay(since)
    for (const day of await this.#files.days()) {
      if (day < first || found.length >= limit) break
      for (const text of (await this.#files.read(day)).toReversed()) {
        if (found.length >= limit) break
        if (!mayMatch(text, filter)) continue
        if (filter.state !== undefined && !text.includes(JSON.stringify(filter.state))) {
          // An older line of this event may have the state, and no longer counts.
          seen.add(/^\{"id":"(\w+)"/.exec(text)?.[1] ?? '')
          continue
        }
        const line = parseLine(text)
        if (!line) damaged += 1
        else if (!seen.has(line.id)) {
          seen.add(line.id)
          if (Date.parse(line.receivedAt) >= since.getTime() && matches(line, filter))
            found.push(line)
        }
      }
    }
    found.sort((a, b) => b.receivedAt.localeCompare(a.receivedAt))
    return { events: found.map((line) => toPastEvent(line, key)), damaged }
  }

  /** The event with this whole id, as its last line has it. */
  async find(id: string): Promise<PastEvent | undefined> {
    if (!/^evt_\w{18}$/.test(id)) return undefined
    await this.settled()
    for (const day of await this.#files.days())
      for (const text of (await this.#files.read(day)).toReversed()) {
        const line = text.includes(id) ? parseLine(text) : undefined
        if (line?.id === id) return toPastEvent(line, await this.#parts.findKey())
      }
    return undefined
  }

  /** Removes the contents of an event from all its lines; undefined where there is no such line. */
  async forget(id: string): Promise<EventRecord | undefined> {
    return this.#withLock('files', async () => {
      await this.#write()
      let forgotten: HistoryLine | undefined
      for (const day of await this.#files.days()) {
        const lines = await this.#files.read(day)
        if (!lines.some((text) => text.includes(id))) continue
        const changed = lines.map((text) => {
          const line = text.includes(id) ? parseLine(text) : undefined
          if (line?.id !== id) return text
          const { sealed: _sealed, subjectKind: _kind, ...rest } = line
          forgotten ??= rest
          return JSON.stringify(rest)
        })
        await this.#files.replace(day, changed)
      }
      return forgotten && toPastEvent(forgotten)
    })
  }

  async forgetAll(): Promise<{ readonly files: number; readonly bytes: number }> {
    this.#waiting.clear()
    return this.#withLock('files', () => this.#files.removeAll())
  }

  async #write(): Promise<void> {
    if (this.#waiting.size === 0) return
    const { contents } = this.#parts.settings()
    const key = contents === 'sealed' ? await this.#parts.findKey() : undefined
    const batch = [...this.#waiting]
    const days = new Map<string, string[]>()
    for (const [id, { at, record }] of batch) {
      const event = this.#parts.events.get(id) ?? record
      if (!isFinal(event.state)) continue
      const day = toDay(at)
      const lines = days.get(day) ?? []
      lines.push(JSON.stringify(toLine(event, at, key)))
      days.set(day, lines)
    }
    for (const [day, lines] of days)
      if (!(await this.#files.append(day, lines))) this.#complain('the file of the day is full')
      else this.#isUnwritable = false
    for (const [id, one] of batch) if (this.#waiting.get(id) === one) this.#waiting.delete(id)
    await this.#prune()
  }

  async #prune(): Promise<void> {
    const today = toDay(new Date())
    if (this.#prunedOn === today) return
    const { keep } = this.#parts.settings()
    if (keep === 0) await this.#files.removeAll()
    else await this.#files.removeBefore(new Date(Date.now() - keep))
    this.#prunedOn = today
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

type LineFilter = Pick<HistoryQuery, 'webhook' | 'rule' | 'state'>

/** A text search: reading JSON of lines that cannot match would take most of the time. */
const mayMatch = (text: string, { webhook, rule }: LineFilter): boolean =>
  [webhook, rule].every((value) => value === undefined || text.includes(JSON.stringify(value)))

const matches = (line: HistoryLine, { webhook, rule, state }: LineFilter): boolean =>
  (webhook === undefined || line.webhook === webhook) &&
  (rule === undefined || line.rule === rule) &&
  (state === undefined || line.state === state)

type Sources = { readonly events: Pick<EventStore, 'list'>; readonly history: History }

/** The events of the memory, which knows more of them, and of the history, the newest first. */
export const listWithHistory = async (
  query: HistoryQuery,
  { events, history }: Sources,
): Promise<HistoryList> => {
  const { since, rule, limit, ...filter } = query
  const inMemory = events
    .list({ ...filter, limit: mostInMemory })
    .filter(
      (event) =>
        Date.parse(event.receivedAt) >= since.getTime() &&
        (rule === undefined || event.rule === rule),
    )
  const past = await history.list({ ...query, limit: limit + inMemory.length })
  const known = new Set(events.list({ limit: mostInMemory }).map(({ id }) => id))
  const all = [...inMemory, ...past.events.filter(({ id }) => !known.has(id))]
  all.sort((a, b) => b.receivedAt.localeCompare(a.receivedAt))
  return { events: all.slice(0, limit), damaged: past.damaged }
}

const mostInMemory = 999_999
