import { OwnMessages } from './delivery/loop-guard.ts'
import { type Progress, createProgress } from './delivery/message-parts.ts'
import { EventStore } from './events/event-store.ts'
import { Browsers } from './page/browsers.ts'
import { Sessions } from './sessions/sessions.ts'
import type { DayJournal } from './util/day-journal.ts'
import { UsageLog } from './usage/usage-log.ts'
import { SeenDeliveries } from './webhook/dedupe.ts'
import {
  type AcceptedEvent,
  createRetryableEvents,
  type RetryableEvents,
} from './webhook/events/accepted-event.ts'
import { QuestionRecords } from './webhook/approvals/questions.ts'
import { type RateLimits, createRateLimits } from './webhook/rate-limit.ts'
import { EventGroups } from './webhook/rules/groups.ts'
import { RunBudgets } from './webhook/rules/budgets.ts'
import { type EventCounts, countEvents } from './webhook/compiled-webhook.ts'

/** What a daemon knows and keeps in memory: a restart passes it on, a stop loses it but for `DayJournal`. */
export type Memory = {
  readonly events: EventStore
  readonly counts: EventCounts
  readonly kept: RetryableEvents<AcceptedEvent>
  readonly deliveries: SeenDeliveries
  /** Under which event name each signed body came. */
  readonly eventNames: SeenDeliveries
  readonly rateLimits: RateLimits
  readonly budgets: RunBudgets
  readonly groups: EventGroups
  readonly progress: Progress
  readonly messages: OwnMessages
  readonly usage: UsageLog
  /** What was asked in chats. */
  readonly questions: QuestionRecords
  readonly sessions: Sessions
  /** The browsers that may show the page. */
  readonly browsers: Browsers
  /** When the stream of runs in NATS was made: another time means that what waited in it is gone. */
  readonly runs: { madeAt: string | undefined }
}

/** Empty; for the newest `keep` events of each ring. */
export const createMemory = (
  keep: number,
  journal?: DayJournal,
  usage = new UsageLog(),
): Memory => {
  const events = new EventStore(keep)
  return {
    events,
    counts: countEvents(events),
    kept: createRetryableEvents<AcceptedEvent>(events),
    deliveries: new SeenDeliveries(undefined, journal),
    eventNames: new SeenDeliveries(undefined, journal),
    rateLimits: createRateLimits(),
    budgets: new RunBudgets(journal),
    groups: new EventGroups(events),
    progress: createProgress(),
    messages: new OwnMessages(),
    usage,
    questions: new QuestionRecords(),
    sessions: new Sessions(events),
    browsers: new Browsers(),
    runs: { madeAt: undefined },
  }
}

/** How long no delivery may come before a collection, in milliseconds. */
const quietMs = 30_000

/**
 * V8 collects garbage when it needs room, and after a burst nothing needs any: some 100 MB would stay for
 * as long as the daemon idles. So it collects once after each burst. Returns what to call with every
 * delivery. Does nothing without Node's `--expose-gc` (`shared/client/spawn.ts`).
 */
export const collectWhenIdle = (
  idleMs = quietMs,
  collect: () => void = () => globalThis.gc?.(),
): (() => void) => {
  let timer: NodeJS.Timeout | undefined
  const whenIdle = (): void => {
    timer = undefined
    collect()
  }
  return () => {
    if (timer) timer.refresh()
    else timer = setTimeout(whenIdle, idleMs).unref()
  }
}
