import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  promises as files,
  readSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import {
  maxCostUsd,
  maxTokens,
  modelForm,
  type Usage,
  type UsageGroup,
  type UsageReport,
} from '../../shared/api/usage.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { readSecretFile, systemReason } from '../../shared/home/home.ts'
import { twoDigits } from '../../shared/text.ts'
import type { Log } from '../log/log.ts'

/** What ran: `rule` is the path of its webhook, with the name of the rule where it has one. */
export type Run = { readonly agent: string; readonly rule: string }

/** A line: when, in ISO 8601, and what. */
type Entry = Run & Usage & { readonly at: string }

/** What runs have used together; money is missing where no run says it. */
export type Sum = UsageReport['total']

export const emptySum: Sum = { runs: 0, inputTokens: 0, outputTokens: 0, cachedTokens: 0 }

const add = (sum: Sum, more: Sum): Sum => ({
  runs: sum.runs + more.runs,
  inputTokens: sum.inputTokens + more.inputTokens,
  outputTokens: sum.outputTokens + more.outputTokens,
  cachedTokens: sum.cachedTokens + more.cachedTokens,
  ...((sum.costUsd ?? more.costUsd) !== undefined && {
    costUsd: (sum.costUsd ?? 0) + (more.costUsd ?? 0),
  }),
})

type GrowingSum = { -readonly [Key in keyof Sum]: Sum[Key] }

const addEntry = (sum: GrowingSum, usage: Usage): void => {
  sum.runs += 1
  sum.inputTokens += usage.inputTokens ?? 0
  sum.outputTokens += usage.outputTokens ?? 0
  sum.cachedTokens += usage.cachedTokens ?? 0
  if (usage.costUsd !== undefined) sum.costUsd = (sum.costUsd ?? 0) + usage.costUsd
}

const toSum = ({
  inputTokens = 0,
  outputTokens = 0,
  cachedTokens = 0,
  costUsd,
}: Usage): GrowingSum => ({
  runs: 1,
  inputTokens,
  outputTokens,
  cachedTokens,
  ...(costUsd !== undefined && { costUsd }),
})

/** Some hundred thousand runs. */
const maxBytes = 128 * 1024 * 1024
/** Lines between two turns of the event loop. */
const turnLines = 5000
/** Runs that a full disk did not take. */
const maxUnsaved = 10_000

/**
 * What each run has used, as lines of `state/usage-YYYY-MM.jsonl`: a time, names and numbers, and no text of an event.
 * The file is what counts, as the process before a restart still adds to it; a run never waits or fails for it.
 */
export class UsageLog {
  /** Undefined for a log that keeps nothing. */
  readonly #folder: string | undefined
  readonly #log: Pick<Log, 'warn'> | undefined
  readonly #listeners = new Set<(run: Run, usage: Usage) => void>()
  #unsaved: Entry[] = []
  #isUnwritable = false
  /** The month whose file `#days` has been read from, up to this byte. */
  #month = ''
  #offset = 0
  /** Sums of the month by day, rule and agent. */
  readonly #days = new Map<string, { day: string; run: Run; sum: Sum }>()

  constructor(folder?: string, log?: Pick<Log, 'warn'>) {
    this.#folder = folder
    this.#log = log
  }

  /** Calls back with each run that is counted here. */
  follow(listener: (run: Run, usage: Usage) => void): void {
    this.#listeners.add(listener)
  }

  count({ agent, rule }: Run, usage: Usage, at = new Date()): void {
    const entry: Entry = { at: at.toISOString(), agent, rule, ...usage }
    try {
      this.#append(toMonth(at), entry)
      this.#isUnwritable = false
    } catch (error) {
      // A full disk must not stop a run, and is told once.
      if (!this.#isUnwritable)
        this.#log?.warn(
          { code: systemCode(error) },
          'what runs used cannot be written: a stop forgets it',
        )
      this.#isUnwritable = true
      this.#unsaved = [...this.#unsaved, entry].slice(-maxUnsaved)
    }
    for (const listener of this.#listeners) listener({ agent, rule }, usage)
  }

  /** What the runs since then have used. Throws `home-insecure`, `home-unusable`. */
  async report(since: Date, by: UsageGroup): Promise<UsageReport> {
    const groups = new Map<string, GrowingSum>()
    const from = since.toISOString()
    const count = (entry: Entry): void => {
      if (entry.at < from) return
      const key = toKey(entry, by)
      const known = groups.get(key)
      if (known) addEntry(known, entry)
      else groups.set(key, toSum(entry))
    }
    await this.#read(since, count)
    for (const entry of this.#unsaved) count(entry)
    const rows = [...groups].map(([key, sum]) => ({ key, ...sum }))
    const total = [...groups.values()].reduce(add, emptySum)
    const tokens = (row: Sum) => row.inputTokens + row.outputTokens
    rows.sort((a, b) =>
      by === 'day'
        ? a.key.localeCompare(b.key)
        : (b.costUsd ?? 0) - (a.costUsd ?? 0) || tokens(b) - tokens(a),
    )
    return { since: since.toISOString(), rows, total }
  }

  /** What the runs of today and of this month have used, of one rule, one agent, or all. */
  spent(of: Partial<Run>, now = new Date()): { readonly day: Sum; readonly month: Sum } {
    this.#catchUp(now)
    const today = toDay(now)
    let [day, month] = [emptySum, emptySum]
    for (const one of this.#days.values()) {
      if (of.rule !== undefined && of.rule !== one.run.rule) continue
      if (of.agent !== undefined && of.agent !== one.run.agent) continue
      month = add(month, one.sum)
      if (one.day === today) day = add(day, one.sum)
    }
    for (const entry of this.#unsaved) {
      if (of.rule !== undefined && of.rule !== entry.rule) continue
      if (of.agent !== undefined && of.agent !== entry.agent) continue
      const at = new Date(entry.at)
      if (toMonth(at) === toMonth(now)) month = add(month, toSum(entry))
      if (toDay(at) === today) day = add(day, toSum(entry))
    }
    return { day, month }
  }

  #append(month: string, entry: Entry): void {
    if (this.#folder === undefined) throw new Error('nothing is kept')
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
    const flags = O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0)
    const file = openSync(this.#path(month), flags, 0o600)
    try {
      // The line before may have been cut off.
      writeFileSync(file, `\n${JSON.stringify(entry)}\n`)
    } finally {
      closeSync(file)
    }
  }

  #path(month: string): string {
    return join(this.#folder ?? '', `usage-${month}.jsonl`)
  }

  async #read(since: Date, each: (entry: Entry) => void): Promise<void> {
    if (this.#folder === undefined) return
    const names = await files.readdir(this.#folder).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return []
      throw new DoorwardError('home-unusable', `cannot read state: ${systemReason(error)}`)
    })
    // A day earlier: the machine may have moved to another time zone.
    const first = toMonth(new Date(since.getTime() - 86_400_000))
    for (const name of names) {
      const [, month] = /^usage-(\d{4}-\d{2})\.jsonl$/.exec(name) ?? []
      if (month === undefined || month < first) continue
      const text = await readSecretFile(join(this.#folder, name), maxBytes)
      for (const [number, line] of (text ?? '').split('\n').entries()) {
        const entry = parseEntry(line)
        if (entry) each(entry)
        if (number % turnLines === 0) await setImmediate()
      }
    }
  }

  /** Reads what was added to the file of the month, by this process or another. */
  #catchUp(now: Date): void {
    const month = toMonth(now)
    if (month !== this.#month) {
      this.#month = month
      this.#offset = 0
      this.#days.clear()
    }
    for (const line of this.#readAdded(month)) {
      const entry = parseEntry(line)
      if (!entry || toMonth(new Date(entry.at)) !== month) continue
      const day = toDay(new Date(entry.at))
      const { agent, rule } = entry
      const key = JSON.stringify([day, rule, agent])
      const before = this.#days.get(key)?.sum ?? emptySum
      this.#days.set(key, { day, run: { agent, rule }, sum: add(before, toSum(entry)) })
    }
  }

  /** Whole lines only. A file that cannot be read has none. */
  #readAdded(month: string): string[] {
    if (this.#folder === undefined) return []
    let file: number | undefined
    try {
      file = openSync(this.#path(month), constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0))
      const { size } = fstatSync(file)
      const bytes = Buffer.alloc(Math.min(Math.max(0, size - this.#offset), maxBytes))
      const read = bytes.subarray(0, readSync(file, bytes, 0, bytes.length, this.#offset))
      const end = read.lastIndexOf('\n') + 1
      this.#offset += end
      return read.subarray(0, end).toString('utf8').split('\n')
    } catch {
      return []
    } finally {
      if (file !== undefined) closeSync(file)
    }
  }
}

const toKey = (entry: Entry, by: UsageGroup): string => {
  if (by === 'day') return toDay(new Date(entry.at))
  return by === 'model' ? (entry.model ?? 'unknown') : entry[by]
}

/** Undefined for a line that is damaged. */
const parseEntry = (line: string): Entry | undefined => {
  if (line === '') return undefined
  try {
    const entry: unknown = JSON.parse(line)
    return isEntry(entry) ? entry : undefined
  } catch {
    return undefined
  }
}

/** A schema would take twice as long as all the rest of a report over 100,000 runs. */
const isEntry = (value: unknown): value is Entry => {
  if (typeof value !== 'object' || value === null) return false
  const { at, agent, rule, inputTokens, outputTokens, cachedTokens, costUsd, model } =
    value as Partial<Record<keyof Entry, unknown>>
  return (
    typeof at === 'string' &&
    timeForm.test(at) &&
    typeof agent === 'string' &&
    typeof rule === 'string' &&
    isTokens(inputTokens) &&
    isTokens(outputTokens) &&
    isTokens(cachedTokens) &&
    (costUsd === undefined ||
      (typeof costUsd === 'number' && costUsd >= 0 && costUsd <= maxCostUsd)) &&
    (model === undefined || (typeof model === 'string' && modelForm.test(model)))
  )
}

const timeForm = /^\d{4}-(?:0\d|1[0-2])-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\d\.\d{3}Z$/

const isTokens = (value: unknown): boolean =>
  value === undefined ||
  (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxTokens)

/** By the clock of this machine. */
const toDay = (at: Date): string => `${toMonth(at)}-${twoDigits(at.getDate())}`

const toMonth = (at: Date): string => `${at.getFullYear()}-${twoDigits(at.getMonth() + 1)}`
