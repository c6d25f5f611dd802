import type { StatusProblem } from '../../shared/api/api.ts'
import type { CaughtUp, MissedHook } from '../../shared/api/hooks.ts'
import { providerToLogIn } from '../../shared/client/discovery.ts'
import type { CatchUpSettings, WebhookSource } from '../../shared/config/source.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { EventStore } from '../events/event-store.ts'
import { maxListed, type PastDelivery, type PastApi } from '../sender-apis/sender-api.ts'
import { knownError } from '../util/assets.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'
import { toEventName } from '../webhook/rules/choose.ts'
import type { Journal } from './journal.ts'
import { canRun, hasEvent, listKnown, oncePerId } from './past-deliveries.ts'

/** GitHub lists a delivery up to minutes after it was sent. */
const overlapMs = 10 * 60_000
const againMs = 5 * 60_000
const hourMs = 60 * 60_000
const minRetryMs = 30_000
const maxRetryMs = 15 * 60_000
/** No sender asks for a longer pause. */
const maxAskedMs = 24 * hourMs
const hint = 'doorward events missed'

/** A webhook whose deliveries are caught up. */
export type CaughtUpWebhook = CompiledWebhook & {
  readonly source: WebhookSource
  readonly catchUp: CatchUpSettings
}

export type HookServices = {
  readonly open: (source: WebhookSource) => PastApi
  /** Throws why the webhook refuses it. */
  readonly accept: (delivery: FetchedDelivery, webhook: CompiledWebhook) => Promise<unknown>
  readonly events: EventStore
  /** False once another process serves, or the daemon stops. */
  readonly isServing: () => boolean
  /** Marks deliveries as finished. */
  readonly finish: (source: WebhookSource, deliveryIds: readonly string[]) => void
  readonly tell: (detail: string) => void
  readonly now: () => number
  /** Aborted once the daemon stops. */
  readonly signal: AbortSignal
}

/** One hook at its sender: when to read its list of deliveries, what is missing, and what to do about it. */
export class MissedHookReader {
  readonly #services: HookServices
  #webhook: CaughtUpWebhook
  /** Missing deliveries, the oldest first. */
  #waiting: readonly PastDelivery[] = []
  /** Ids of those that the owner is asked about. */
  #asked: ReadonlySet<string> = new Set()
  /** Why the list, or the details of a delivery, could not be read. */
  #failure: DoorwardError | undefined
  /** The hook is switched off at its sender. */
  #off: DoorwardError | undefined
  /** The sender or the queue refused a delivery that was to run without a question. */
  #isUnfinished = false
  #dueMs = 0
  #failures = 0
  /** Readings in a row that found nothing new. */
  #quiet = 0
  #etag: string | undefined
  /** The next reading is the first after a start, sleep or a time without network. */
  #isAwakening = true

  constructor(services: HookServices, webhook: CaughtUpWebhook) {
    this.#services = services
    this.#webhook = webhook
  }

  /** The webhook as the configuration has it now. */
  use(webhook: CaughtUpWebhook): this {
    this.#webhook = webhook
    return this
  }

  /** Reads at the next tick: the machine slept, or the network was away. */
  wake(): void {
    this.#dueMs = 0
    this.#isAwakening = true
    this.#etag = undefined
  }

  /** When the list is due. */
  get dueMs(): number {
    return this.#dueMs
  }

  /** Reads the list if it is due, and runs or announces what is missing. */
  async catchUp(journal: Journal): Promise<void> {
    if (!this.#services.isServing() || this.#services.now() < this.#dueMs) return
    const { catchUp } = this.#webhook
    const { isFirst, found } = await this.#read(journal)
    if (catchUp.everyMs !== undefined && !isFirst) {
      const due = this.#waiting.filter(({ deliveryId }) => !this.#asked.has(deliveryId))
      if (due.length > 0) await this.#run(due)
      return
    }
    const runsAgain = this.#isUnfinished && this.#waiting.length > 0 && !this.#failure
    if (found > 0 || runsAgain) await this.#handle(this.#waiting)
    this.#asked = new Set(idsOf(this.#waiting))
  }

  /** Runs or forgets what waits. */
  async decide(what: 'run' | 'skip'): Promise<CaughtUp> {
    return what === 'run' ? this.#run(this.#waiting) : this.#skip(this.#waiting)
  }

  describe(): MissedHook {
    const { path, source, catchUp } = this.#webhook
    const problem = this.#failure ?? this.#off
    return {
      path,
      provider: source.provider,
      repository: source.repository,
      mode: catchUp.mode,
      waiting: this.#waiting.map(({ deliveryId, at, event, action, answer }) => ({
        deliveryId,
        at,
        event: toEventName({ event, action }),
        answer,
      })),
      ...(problem && { problem: problem.message }),
      ...(problem?.hint !== undefined && { hint: problem.hint }),
    }
  }

  problems(): StatusProblem[] {
    const { path: webhook, source } = this.#webhook
    const { repository } = source
    const asked = this.#waiting.filter(({ deliveryId }) => this.#asked.has(deliveryId))
    const problems: Omit<StatusProblem, 'about'>[] = []
    const add = (code: string, detail: string, fix = hint) =>
      problems.push({ code, detail, hint: fix })
    if (asked.length > 0) add('deliveries-missed', describe(asked, repository))
    if (this.#failure)
      add(
        'deliveries-unread',
        `the deliveries of ${repository} cannot be read: ${this.#failure.message}`,
        this.#failure.hint,
      )
    else if (this.#off)
      add('deliveries-unread', `${repository}: ${this.#off.message}`, this.#off.hint)
    const provider = this.#failure && providerToLogIn(this.#failure)
    return problems.map((problem) => ({ ...problem, about: { webhook, provider } }))
  }

  /** Reads what was delivered since the cursor; `found` is the number of deliveries that are newly missing. */
  async #read(journal: Journal) {
    const { events, open, tell, signal, now } = this.#services
    const { path, rules, source, catchUp } = this.#webhook
    const { everyMs } = catchUp
    const nowMs = now()
    const outcome = { found: 0, isFirst: false }
    try {
      const sender = open(source)
      const cursor = journal.cursor(source)
      const list = await sender.past.list(source, { ms: cursor, etag: this.#etag }, signal)
      // The pauses also grow where the list can be read and details cannot.
      if (!this.#isUnfinished) this.#failures = 0
      outcome.isFirst = this.#isAwakening && cursor !== undefined
      this.#isAwakening = false
      this.#quiet += 1
      const usualMs = outcome.isFirst ? againMs : hourMs
      this.#dueMs = nowMs + (everyMs === undefined ? usualMs : toPace(everyMs, this.#quiet))
      if (everyMs === undefined || outcome.isFirst)
        this.#off = await findSwitchedOff(sender, source, path, signal)
      this.#failure = undefined
      if (list === 'same') return outcome
      this.#etag = everyMs === undefined ? undefined : list.etag
      if (cursor === undefined) {
        journal.moveCursor(source, list.nowMs)
        return outcome
      }
      const listed = oncePerId(list.deliveries)
      if (!list.isWhole)
        tell(
          `${source.repository} had more than ${maxListed.toLocaleString('en')} deliveries: those before ${toLocalTime(listed[0]?.at)} are left out, and only ${sender.title} has them`,
        )
      const unfinished = listed.filter(
        (delivery) =>
          canRun(rules, delivery) &&
          !journal.isFinished(source, delivery.deliveryId) &&
          // Otherwise another machine accepted it.
          (!delivery.isAccepted || journal.isTaken(source, delivery.deliveryId)),
      )
      const known = listKnown(events, path)
      const before = new Set(idsOf(this.#waiting))
      this.#waiting = unfinished.filter(({ deliveryId }) => !known.has(deliveryId))
      const oldest = unfinished[0] ? Date.parse(unfinished[0].at) : Infinity
      const reached = Math.max(cursor, Math.min(oldest, list.nowMs - overlapMs))
      // A cursor in the future, from a wrong clock, would hide all that is sent until then.
      journal.moveCursor(source, Math.min(reached, list.nowMs))
      outcome.found = this.#waiting.filter(({ deliveryId }) => !before.has(deliveryId)).length
      if (outcome.found > 0) {
        this.#quiet = 0
        this.#dueMs = nowMs + Math.min(this.#dueMs - nowMs, everyMs ?? hourMs)
      }
    } catch (thrown) {
      // What comes until a reading succeeds can be missed, too.
      if (journal.cursor(source) === undefined) journal.moveCursor(source, nowMs - 1000)
      // The other hooks are read, whatever this sender answers.
      this.#failure = knownError(thrown)
      this.#pause(this.#failure, nowMs)
    }
    return outcome
  }

  async #handle(waiting: readonly PastDelivery[]): Promise<void> {
    const { tell } = this.#services
    const { source, catchUp } = this.#webhook
    const what = describe(waiting, source.repository)
    if (catchUp.mode === 'ask') return tell(`${what}: ${hint}`)
    const isNewest = catchUp.mode === 'newest'
    const { skipped } = isNewest ? this.#skip(waiting.slice(0, -1)) : { skipped: 0 }
    const {
      run,
      refused,
      waiting: left,
      problem,
    } = await this.#run(isNewest ? waiting.slice(-1) : waiting)
    const counts = [
      `${run} run`,
      ...(skipped > 0 ? [`${skipped} left out`] : []),
      ...(refused > 0 ? [`${refused} refused`] : []),
      ...(left > 0 ? [`${left} waiting (${hint})`] : []),
    ]
    tell(`${what}: ${counts.join(', ')}${problem === undefined ? '' : `; ${problem}`}`)
  }

  /** Runs at most `at_most` deliveries, the oldest first. */
  async #run(due: readonly PastDelivery[]): Promise<CaughtUp> {
    const { open, events, isServing, finish, tell, signal, now } = this.#services
    const { path, source, catchUp } = this.#webhook
    const { title, past } = open(source)
    const missing: PastDelivery[] = []
    let [run, refused] = [0, 0]
    let problem: string | undefined
    this.#isUnfinished = false
    for (const delivery of due.slice(0, catchUp.atMost)) {
      const { id, deliveryId } = delivery
      let fetched: FetchedDelivery | undefined
      try {
        fetched = await past.fetch(source, id, signal)
        if (!isServing()) break
        const isAccepted = fetched && (await this.#accept(fetched))
        if (isAccepted) run += 1
        else if (fetched) refused += 1
        else missing.push(delivery)
        // Details that name another delivery would leave this one unfinished forever.
        if (!isAccepted || !hasEvent(events, path, deliveryId)) finish(source, [deliveryId])
        this.#remove([deliveryId])
      } catch (thrown) {
        const error = knownError(thrown)
        problem = error.message
        this.#isUnfinished = catchUp.mode !== 'ask'
        if (!fetched) this.#failure = error
        this.#pause(error, now())
        break
      }
    }
    if (missing.length > 0)
      tell(`${describe(missing, source.repository)}: ${title} no longer has the details`)
    return {
      run,
      refused: refused + missing.length,
      skipped: 0,
      waiting: this.#waiting.length,
      ...(problem !== undefined && { problem }),
    }
  }

  /** False when the webhook refuses it for good. Throws where it may accept it later. */
  async #accept(fetched: FetchedDelivery): Promise<boolean> {
    try {
      await this.#services.accept(fetched, this.#webhook)
      return true
    } catch (error) {
      const passing = ['queue-full', 'rate-limited', 'unavailable', 'stopping']
      if (!(error instanceof DoorwardError) || passing.includes(error.code)) throw error
      return false
    }
  }

  #skip(skipped: readonly PastDelivery[]): CaughtUp {
    const ids = idsOf(skipped)
    this.#services.finish(this.#webhook.source, ids)
    this.#remove(ids)
    return { run: 0, refused: 0, skipped: ids.length, waiting: 0 }
  }

  #remove(deliveryIds: readonly string[]): void {
    this.#waiting = this.#waiting.filter(({ deliveryId }) => !deliveryIds.includes(deliveryId))
  }

  /** Reads again after a pause: twice as long as the last, and as long as the sender asks for. */
  #pause(error: DoorwardError, nowMs: number): void {
    const pauseMs = Math.min(minRetryMs * 2 ** this.#failures, maxRetryMs)
    this.#failures += 1
    this.#dueMs = nowMs + Math.max(pauseMs, Math.min(error.retryAfterMs ?? 0, maxAskedMs))
  }
}

const idsOf = (deliveries: readonly PastDelivery[]): string[] =>
  deliveries.map(({ deliveryId }) => deliveryId)

const describe = (waiting: readonly PastDelivery[], repository: string): string => {
  const count = waiting.length === 1 ? '1 missed delivery' : `${waiting.length} missed deliveries`
  return `${count} of ${repository} since ${toLocalTime(waiting[0]?.at)}`
}

/** Written like 2026-11-26 02:10. */
const toLocalTime = (at: string | undefined): string =>
  new Date(at ?? 0).toLocaleString('sv').slice(0, 16)

/** After ten quiet readings less and less often, at most five times as long and an hour. */
const toPace = (everyMs: number, quiet: number): number =>
  Math.max(everyMs, Math.min(everyMs * Math.min(5, 1 + Math.floor(quiet / 10)), hourMs))

/** A sender sends nothing through a hook that it, or a person, switched off. */
const findSwitchedOff = async (
  { title, listHooks }: PastApi,
  { provider, repository, hookId }: WebhookSource,
  path: string,
  signal: AbortSignal,
): Promise<DoorwardError | undefined> => {
  const own = (await listHooks?.(repository, signal))?.find(({ id }) => id === hookId)
  if (!own || own.isActive) return undefined
  return new DoorwardError('source-failed', `the hook is switched off at ${title}`, {
    hint: `switch it on: doorward webhook connect ${provider} ${repository} --path ${path}`,
  })
}
