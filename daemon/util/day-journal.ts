import { hash } from 'node:crypto'
import type { Log } from '../log/log.ts'
import { knownError } from './assets.ts'
import { BoundedMap } from './collections.ts'
import { LineFile } from './line-file.ts'

const dayMs = 24 * 3_600_000
/** Deliveries of all webhooks that are remembered on the disk. */
const maxSeen = 20_000
/** Runs of all rules with `max_runs`. */
const maxRuns = 20_000

type Seen = { readonly value: string; readonly atMs: number }

/** A hash of what identifies a delivery or a rule, as the file has it. */
export const toDigest = (...parts: readonly string[]): string =>
  hash('sha256', JSON.stringify(parts), 'base64url')

/**
 * What a stop or a crash must not forget for a day: which deliveries are done, under which name signed bytes
 * came, and when rules with `max_runs` ran. The file has hashes, times and ids of events, and no text of a sender.
 */
export class DayJournal {
  readonly #file: LineFile
  readonly #log: Pick<Log, 'warn'>
  /** The oldest first. */
  readonly #seen = new BoundedMap<string, Seen>(maxSeen, maxSeen * 1.1)
  readonly #runs = new Map<string, number[]>()
  #countOfRuns = 0
  #hasEarlier = false
  #isUnwritable = false
  #pending: string[] = []

  constructor(path: string, log: Pick<Log, 'warn'>) {
    this.#file = new LineFile(path)
    this.#log = log
  }

  /** Reads what the daemon before this one left. A file that cannot be read is told in the log. */
  async load(): Promise<void> {
    try {
      for (const line of await this.#file.read()) this.#read(line)
      this.#hasEarlier = this.#seen.size > 0
    } catch (error) {
      this.#warn(error, 'read')
    }
  }

  /** False where no daemon before this one has left anything to find. */
  get hasEarlier(): boolean {
    return this.#hasEarlier
  }

  /** The event or the name under which a delivery is remembered. */
  find(digest: string): string | undefined {
    const seen = this.#seen.get(digest)
    return seen && Date.now() - seen.atMs < dayMs ? seen.value : undefined
  }

  /** Written with the deliveries that come at the same moment. */
  remember(digest: string, value: string): void {
    const atMs = Date.now()
    this.#seen.set(digest, { value, atMs })
    if (this.#pending.length === 0) setImmediate(() => this.#flush())
    this.#pending.push(toSeenLine(digest, { value, atMs }))
  }

  forget(digest: string, value: string): void {
    if (this.#seen.get(digest)?.value !== value) return
    this.#seen.delete(digest)
    this.#pending.push(`forgot ${digest} .`)
    this.#flush()
  }

  /** The times of a rule's runs within the last day, the oldest first. */
  runsOf(rule: string): readonly number[] {
    const now = Date.now()
    return (this.#runs.get(rule) ?? []).filter((ms) => now - ms < dayMs)
  }

  noteRun(rule: string): void {
    const ms = Date.now()
    this.#addRun(rule, ms)
    this.#pending.push(toRunLine(rule, ms))
    this.#flush()
  }

  giveBackRun(rule: string): void {
    this.#runs.get(rule)?.pop()
    this.#pending.push(`back ${rule} .`)
    this.#flush()
  }

  #addRun(rule: string, ms: number): void {
    const kept = (this.#runs.get(rule) ?? []).filter((old) => ms - old < dayMs)
    this.#runs.set(rule, [...kept, ms])
    this.#countOfRuns += 1
  }

  #read(line: string): void {
    const [, kind, digest = '', ms = '', value = ''] =
      /^(seen|forgot|run|back) ([\w-]{43})(?: (\d{1,16}))?(?: ([\w-]{1,64}))? \.$/.exec(line) ?? []
    if (kind === 'seen') this.#seen.set(digest, { value, atMs: Number(ms) })
    if (kind === 'forgot') this.#seen.delete(digest)
    // A clock that was set back must not count a run for longer than a day.
    if (kind === 'run') this.#addRun(digest, Math.min(Number(ms), Date.now()))
    if (kind === 'back') this.#runs.get(digest)?.pop()
  }

  #flush(): void {
    const lines = this.#pending
    this.#pending = []
    if (lines.length === 0) return
    const count = this.#seen.size + Math.min(this.#countOfRuns, maxRuns)
    try {
      this.#file.append(lines, { count, list: () => this.#list() })
      this.#isUnwritable = false
    } catch (error) {
      // A full disk must not stop an event, and is told once.
      if (!this.#isUnwritable) this.#warn(error, 'written')
      this.#isUnwritable = true
    }
  }

  #list(): string[] {
    const runs = [...this.#runs.keys()].flatMap((rule) =>
      this.runsOf(rule).map((ms) => toRunLine(rule, ms)),
    )
    this.#countOfRuns = runs.length
    const now = Date.now()
    const seen = [...this.#seen].filter(([, { atMs }]) => now - atMs < dayMs)
    return [...seen.map(([digest, one]) => toSeenLine(digest, one)), ...runs.slice(-maxRuns)]
  }

  #warn(error: unknown, what: 'read' | 'written'): void {
    this.#log.warn(
      { code: knownError(error).code },
      `deliveries and runs of the last day cannot be ${what}: a stop forgets them`,
    )
  }
}

/** The dot marks the end of a line: a time that was cut off would be a much older one. */
const toSeenLine = (digest: string, { value, atMs }: Seen): string =>
  `seen ${digest} ${atMs} ${value} .`

const toRunLine = (rule: string, ms: number): string => `run ${rule} ${ms} .`
