import type { StatusProblem } from '../../../shared/api/api.ts'
import type { Rate } from '../../../shared/text.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { type DayJournal, toDigest } from '../../util/day-journal.ts'

type Runs = {
  readonly rate: Rate
  /** When each began, the oldest first. */
  readonly times: number[]
  /** An event was filtered since the last run. */
  isUsedUp: boolean
}

/** The runs of one rule for another process, whose clock starts elsewhere. */
type RunsCopy = { readonly key: string; readonly rate: Rate; readonly agesMs: readonly number[] }

/** What `max_runs` limits: a rule of the webhook at this path. */
export type Limited = {
  readonly path: string
  readonly name: string | undefined
  readonly maxRuns: Rate | undefined
}

/** Counts the runs of each rule with `max_runs`: in any hour or day there are no more. */
export class RunBudgets {
  readonly #byRule = new Map<string, Runs>()
  readonly #journal: DayJournal | undefined

  /** `journal` remembers the runs for the next start: a crash loop must not have a new budget each time. */
  constructor(journal?: DayJournal) {
    this.#journal = journal
  }

  /** How many runs are left; undefined for a rule without `max_runs`. */
  left(rule: Limited, nowMs: number): number | undefined {
    const runs = this.#runsOf(rule, nowMs)
    if (!runs) return undefined
    removeOld(runs, nowMs)
    return Math.max(0, runs.rate.count - runs.times.length)
  }

  /** True when no run is left. */
  isOver(rule: Limited, nowMs: number): boolean {
    return this.left(rule, nowMs) === 0
  }

  /** Counts a run. */
  count(rule: Limited, nowMs: number): void {
    const runs = this.#runsOf(rule, nowMs)
    if (!runs) return
    runs.times.push(nowMs)
    this.#journal?.noteRun(toDigest(toKey(rule)))
    runs.isUsedUp = false
  }

  /** Takes the newest run back, which another event replaced before it began. */
  giveBack(rule: Omit<Limited, 'maxRuns'>): void {
    if (this.#byRule.get(toKey(rule))?.times.pop() === undefined) return
    this.#journal?.giveBackRun(toDigest(toKey(rule)))
  }

  /** Notes that an event was filtered because no run is left; true for the first since the last run. */
  noteFiltered(rule: Limited): boolean {
    const runs = this.#byRule.get(toKey(rule))
    if (!runs || runs.isUsedUp) return false
    runs.isUsedUp = true
    return true
  }

  /** The rules whose events are filtered now. */
  problems(webhooks: readonly Webhook[], nowMs: number): StatusProblem[] {
    return webhooks.flatMap(({ path, enabled, rules }) =>
      rules.flatMap(({ name, maxRuns }) => {
        const rule = { path, name, maxRuns }
        if (!enabled || !maxRuns || !this.isOver(rule, nowMs)) return []
        if (!this.#byRule.get(toKey(rule))?.isUsedUp) return []
        return [
          {
            code: 'over-budget',
            detail: `webhook ${toKey(rule)} has used up its ${formatMaxRuns(maxRuns)}; its events are filtered`,
            hint: 'raise max_runs in webhooks.yaml, or wait',
            about: { webhook: path },
          },
        ]
      }),
    )
  }

  snapshot(nowMs: number): RunsCopy[] {
    return [...this.#byRule].map(([key, { rate, times }]) => ({
      key,
      rate,
      agesMs: times.map((time) => nowMs - time),
    }))
  }

  restore(copies: readonly RunsCopy[], nowMs: number): void {
    for (const { key, rate, agesMs } of copies)
      this.#byRule.set(key, { rate, times: agesMs.map((age) => nowMs - age), isUsedUp: false })
  }

  /** A changed limit counts the runs of before; undefined for a rule without one. */
  #runsOf(rule: Limited, nowMs: number): Runs | undefined {
    const { maxRuns: rate } = rule
    if (!rate) return undefined
    const key = toKey(rule)
    const known = this.#byRule.get(key)
    if (known?.rate.count === rate.count && known.rate.perMs === rate.perMs) return known
    const runs = { rate, times: known?.times ?? this.#readRuns(key, nowMs), isUsedUp: false }
    this.#byRule.set(key, runs)
    return runs
  }

  /** The runs before the last start, as times of this process. */
  #readRuns(key: string, nowMs: number): number[] {
    const wallMs = Date.now()
    const times = this.#journal?.runsOf(toDigest(key)) ?? []
    return times.map((ms) => nowMs - (wallMs - ms))
  }
}

const removeOld = ({ rate, times }: Runs, nowMs: number): void => {
  const first = times.findIndex((time) => nowMs - time < rate.perMs)
  times.splice(0, first === -1 ? times.length : first)
}

const toKey = ({ path, name }: Omit<Limited, 'maxRuns'>): string =>
  name === undefined ? path : `${path} ${name}`

const hourMs = 3_600_000

/** `50/day` */
export const formatRate = ({ count, perMs }: Rate): string =>
  `${count}/${perMs === hourMs ? 'hour' : 'day'}`

/** `max_runs of 50/day` */
export const formatMaxRuns = (rate: Rate): string => `max_runs of ${formatRate(rate)}`
