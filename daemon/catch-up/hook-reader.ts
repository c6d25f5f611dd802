import type { CatchUpSettings, WebhookSource } from '../../shared/config/source.ts'
import type { EventRecord } from '../../shared/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import { maxListed, type PastDelivery, type PastApi } from '../sender-apis/sender-api.ts'
import { knownError } from '../util/assets.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import { isNamed } from '../webhook/rules/choose.ts'
import { holds } from '../webhook/rules/filter.ts'
import type { Journal } from './journal.ts'

/** GitHub lists a delivery up to minutes after it was sent. */
const overlapMs = 10 * 60_000
const againMs = 5 * 60_000
const hourMs = 60 * 60_000
const minRetryMs = 30_000
const maxRetryMs = 15 * 60_000
/** No sender asks for a longer pause. */
const maxAskedMs = 24 * hourMs

/** A webhook whose deliveries are caught up. */
export type ReadWebhook = Pick<CompiledWebhook, 'path' | 'rules'> & {
  readonly source: WebhookSource
  readonly catchUp: CatchUpSettings
}

/** One hook at its sender: when to read its list of deliveries, and what is missing of it. */
export class HookReader {
  /** The oldest first. */
  waiting: readonly PastDelivery[] = []
  problem: DoorwardError | undefined
  /** That the hook is switched off at its sender. */
  off: DoorwardError | undefined
  /** That there was more than is read of one list; until the owner runs or skips what waits. */
  leftOut: string | undefined
  /** Not all that was to run by itself did: the sender, or the queue, refused. */
  isUnfinished = false
  #dueMs = 0
  #failures = 0
  /** What was sent just before the last reading may not have been in the list. */
  #readsAgain = true
  #etag: string | undefined
  /** How often in a row nothing new was there. */
  #quiet = 0
  /** What the owner is asked about. */
  held: ReadonlySet<string> = new Set()
  /** The last reading was the first after a start, sleep or a time without network. */
  isAwakening = false

  isDue(nowMs: number): boolean {
    return nowMs >= this.#dueMs
  }

  /** The machine slept, or the network was away. */
  wake(): void {
    this.#dueMs = 0
    this.#readsAgain = true
    this.#etag = undefined
  }

  /** Reads what was delivered since the cursor. Returns how many are missing that were not before. */
  async read(
    { path, rules, source: hook, catchUp: { everyMs } }: ReadWebhook,
    sender: PastApi,
    { journal, events, nowMs }: { journal: Journal; events: EventStore; nowMs: number },
    signal: AbortSignal,
  ): Promise<number> {
    try {
      const cursor = journal.cursor(hook)
      const list = await sender.past.list(hook, { ms: cursor, etag: this.#etag }, signal)
      // With a list that can be read and details that cannot, the pauses grow too.
      if (!this.isUnfinished) this.#failures = 0
      this.isAwakening = this.#readsAgain && cursor !== undefined
      this.#readsAgain = false
      this.#quiet += 1
      const usualMs = this.isAwakening ? againMs : hourMs
      this.#dueMs = nowMs + (everyMs === undefined ? usualMs : toPace(everyMs, this.#quiet))
      if (everyMs === undefined || this.isAwakening)
        this.off = await findSwitchedOff(sender, hook, path, signal)
      this.problem = this.off
      if (list === 'same') return 0
      this.#etag = everyMs === undefined ? undefined : list.etag
      if (cursor === undefined) {
        journal.moveCursor(hook, list.nowMs)
        return 0
      }
      const listed = oncePerId(list.deliveries)
      if (!list.isWhole) this.leftOut ??= describeLeftOut(listed, sender.title)
      const unfinished = listed.filter(
        (delivery) =>
          canRun({ rules }, delivery) &&
          !journal.isFinished(hook, delivery.deliveryId) &&
          // Else another machine took it.
          (!delivery.isAccepted || journal.isTaken(hook, delivery.deliveryId)),
      )
      const known = listKnown(events, path)
      const before = new Set(this.waiting.map(({ deliveryId }) => deliveryId))
      this.waiting = unfinished.filter(({ deliveryId }) => !known.has(deliveryId))
      const oldest = unfinished[0] ? Date.parse(unfinished[0].at) : Infinity
      const reached = Math.max(cursor, Math.min(oldest, list.nowMs - overlapMs))
      // A time to come, from a clock that was wrong, would hide all that is sent until then.
      journal.moveCursor(hook, Math.min(reached, list.nowMs))
      const more = this.waiting.filter(({ deliveryId }) => !before.has(deliveryId)).length
      if (more > 0) {
        this.#quiet = 0
        this.#dueMs = nowMs + Math.min(this.#dueMs - nowMs, everyMs ?? hourMs)
      }
      return more
    } catch (thrown) {
      // Whatever a sender answers, the other hooks are read.
      this.problem = knownError(thrown)
      this.pause(this.problem, nowMs)
      return 0
    }
  }

  /** Reads again after a pause: twice as long as the last, and as long as the sender asks for. */
  pause(error: DoorwardError, nowMs: number): void {
    const pauseMs = Math.min(minRetryMs * 2 ** this.#failures, maxRetryMs)
    this.#failures += 1
    this.#dueMs = nowMs + Math.max(pauseMs, Math.min(error.retryAfterMs ?? 0, maxAskedMs))
  }

  remove(deliveryIds: readonly string[]): void {
    const ids = new Set(deliveryIds)
    this.waiting = this.waiting.filter(({ deliveryId }) => !ids.has(deliveryId))
  }
}

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

const describeLeftOut = ([oldest]: readonly PastDelivery[], title: string): string =>
  `more than ${maxListed.toLocaleString('en')} deliveries: those before ${toLocalTime(oldest?.at)} are left out, and only ${title} has them`

/** As 2026-11-26 02:10. */
export const toLocalTime = (at: string | undefined): string =>
  new Date(at ?? 0).toLocaleString('sv').slice(0, 16)

/** After ten quiet readings less and less often, at most five times as long and an hour. */
const toPace = (everyMs: number, quiet: number): number =>
  Math.max(everyMs, Math.min(everyMs * Math.min(5, 1 + Math.floor(quiet / 10)), hourMs))

/** The oldest first; of one that was sent again the newest attempt. */
const oncePerId = (newestFirst: readonly PastDelivery[]): PastDelivery[] => {
  const byId = new Map<string, PastDelivery>()
  for (const delivery of newestFirst)
    if (!byId.has(delivery.deliveryId)) byId.set(delivery.deliveryId, delivery)
  // Stable, as GitHub tells whole seconds.
  return [...byId.values()].toReversed().toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
}

/** The deliveries to a webhook that wait, run or are finished here. */
const listKnown = (events: EventStore, path: string): ReadonlySet<string> =>
  new Set(
    events
      .list({ limit: Infinity, webhook: path })
      .flatMap((record) => (isLost(record) ? [] : (record.deliveryId ?? []))),
  )

/** An event that never ran: the queue was full, the signature was wrong, or the daemon stopped. */
const isLost = ({ state, code }: EventRecord): boolean =>
  state === 'rejected' || (state === 'dropped' && code === 'event-dropped')

/** True once all rules of a delivery are through with it. */
export const isThrough = (events: EventStore, record: EventRecord): boolean => {
  const { state, webhook, deliveryId } = record
  // What it repeats may still run.
  if (!isFinal(state) || state === 'duplicate' || isLost(record) || webhook === null) return false
  return !events
    .list({ limit: Infinity, webhook })
    .some((other) => other.deliveryId === deliveryId && !isFinal(other.state))
}

/**
 * False for a delivery that no rule runs, as far as the list of the sender tells: by its event, and by what a
 * filter asks of `event.action` alone. Its details need not be read.
 */
const canRun = (
  { rules }: Pick<CompiledWebhook, 'rules'>,
  { event, action }: Pick<PastDelivery, 'event' | 'action'>,
): boolean => {
  if (event === 'ping') return false
  const scope = { event: { action }, headers: {} }
  return rules.some(
    ({ on, filter }) =>
      (!on || isNamed(on, { event, action })) &&
      filter.every(
        (condition) =>
          condition.kind !== 'value' ||
          condition.path.length !== 2 ||
          condition.path[0] !== 'event' ||
          condition.path[1] !== 'action' ||
          holds(scope, condition),
      ),
  )
}
