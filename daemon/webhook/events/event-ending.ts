import type { EventRecord, Stage } from '../../../shared/api/api.ts'
import { currentStage } from '../../../shared/event-stages.ts'
import type { SeenCode } from '../../delivery/sender.ts'
import { isSameCheck } from '../../delivery/targets/github/github-check.ts'
import type { Detail, EventChanges } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import { cancelled } from '../../util/concurrency.ts'
import type { SeenDeliveries } from '../dedupe.ts'
import type { RunBudgets } from '../rules/budgets.ts'
import type { EventGroups, Replacement } from '../rules/groups.ts'
import { toConclusion } from '../signs/check.ts'
import type { Signs } from '../signs/signs.ts'
import type { Leaving } from '../approvals/leaving.ts'
import type { AcceptedEvent, RetryableEvents } from './accepted-event.ts'

/*
 * The record of one job: each change of its event, and its end, after which nothing changes any more.
 */

export type EndingParts = {
  readonly events: EventStore
  readonly deliveries: SeenDeliveries
  /** For a retry. */
  readonly kept: RetryableEvents<AcceptedEvent>
  readonly groups: EventGroups
  readonly budgets: RunBudgets
  readonly signs: Signs
  readonly leavingOf: (event: AcceptedEvent) => Leaving | undefined
  readonly log: Log
}

export class EventEnding {
  readonly #id: string
  readonly #event: AcceptedEvent
  readonly #parts: EndingParts
  #latest: AcceptedEvent
  #isOver = false
  #ending: Promise<void> | undefined

  constructor(id: string, event: AcceptedEvent, parts: EndingParts) {
    this.#id = id
    this.#event = event
    this.#latest = event
    this.#parts = parts
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Resolves when what shows at the sender has ended too. */
  async ended(): Promise<void> {
    await this.#ending
  }

  readonly change = (changes: EventChanges, texts?: Detail): void => {
    const { events, signs } = this.#parts
    if (!this.#isOver) events.update(this.#id, changes, texts)
    if (changes.state === 'running') signs.started(this.#id)
  }

  /** Keeps the code of the run, for a retry of its delivery. */
  readonly saw = (code: SeenCode | undefined): void => {
    if (!code) return
    this.#latest = { ...this.#latest, code }
    if (!this.#isOver) this.#parts.kept.keep(this.#id, this.#latest)
  }

  readonly end = (changes: EventChanges): void => {
    const { deliveries, kept } = this.#parts
    const { delivery, payload } = this.#event
    this.change(changes)
    this.#isOver = true
    this.#ending = this.#endSigns(changes)
    // The sender may deliver it again, and then it runs.
    if (delivery)
      if (isForSender(changes)) deliveries.forget(delivery, this.#id)
      else deliveries.settle(delivery, this.#id)
    // Only `KeptPayloads` keeps the payload of an event that is over, within a limit.
    if (isForSender(changes) && payload)
      kept.keep(this.#id, { ...this.#latest, payload: undefined })
  }

  /** The job is over, and the event is not. */
  wait(outcome: EventChanges): void {
    const { kept, leavingOf, log } = this.#parts
    const latest = this.#latest
    const leaving = leavingOf(latest) ?? latest.leaving
    kept.keep(this.#id, { ...latest, leaving, payload: undefined, coalesced: undefined })
    this.change(outcome)
    this.#isOver = true
    showWaiting(this.#id, this.#parts)
    log.info({ event: this.#id, ...toPlace(this.#event), state: outcome.state }, 'event')
  }

  finish(outcome: EventChanges, wasCancelled: boolean, wasStopped: boolean): void {
    const { groups, budgets, log } = this.#parts
    const { webhook, known } = this.#event
    const replaced = wasCancelled ? groups.replacementOf(this.#id) : undefined
    const ended =
      replaced !== undefined
        ? { ...outcome, ...supersededEnd(replaced, 'agent') }
        : wasCancelled
          ? { ...outcome, ...describeCancel(outcome.stage) }
          : outcome
    this.end(ended)
    const { state, stage, code } = ended
    // No agent has run.
    if (code === 'paths-unmatched' || code === 'not-allowed')
      budgets.giveBack({ path: webhook.path, name: known.rule })
    const details = { event: this.#id, ...toPlace(this.#event), state, stage, code }
    // After the stop it cannot be retried.
    if (state === 'failed' && wasStopped && !wasCancelled)
      log.warn({ ...details, ...atSender(this.#event) }, 'event not finished')
    else log.info(details, 'event')
  }

  /** The job did not run. */
  drop(why: typeof cancelled | undefined): void {
    const { groups, budgets, events, log } = this.#parts
    const { coalesced } = this.#event
    const replaced = groups.replacementOf(this.#id)
    if (replaced !== undefined) {
      if (coalesced) budgets.giveBack(coalesced.rule)
      this.end(supersededEnd(replaced, 'queue'))
      return
    }
    const ended = droppedEnd(events.record(this.#id)?.state, why)
    this.end(ended)
    const { stage, code } = ended
    const details = { event: this.#id, ...toPlace(this.#event), stage, ...atSender(this.#event) }
    if (why === cancelled) log.info({ ...details, state: 'dropped', code }, 'event')
    else log.warn(details, 'event dropped')
  }

  async #endSigns(changes: EventChanges): Promise<void> {
    const { events, signs } = this.#parts
    const { seen, check, targets, checkName } = this.#event
    if (!seen && !check) return
    const before = events.get(this.#id)
    const live = await signs.checkOf(this.#id)
    const isSet = targets.some(
      (target, index) =>
        target.kind === 'github-check' &&
        changes.targets?.[index]?.state === 'done' &&
        isSameCheck(live, target.address, checkName),
    )
    const conclusion = isSet ? undefined : toConclusion({ ...before, ...changes }, before?.result)
    await signs.end(this.#id, conclusion)
  }
}

/** Shows at its check that an event waits for an approval, where that is asked there. */
export const showWaiting = (
  id: string,
  { events, kept, signs }: Pick<EndingParts, 'events' | 'kept' | 'signs'>,
): void => {
  const { state, approval } = events.record(id) ?? {}
  const { by = [], who } = kept.get(id)?.leaving?.approve ?? {}
  if (state === 'waiting' && approval && by.includes('check'))
    signs.wait(id, approval.digest, who?.github !== undefined)
}

/** True where the sender may deliver an event again, and then it runs; one that was replaced is settled. */
const isForSender = ({ state }: EventChanges): boolean =>
  state !== 'done' && state !== 'filtered' && state !== 'declined'

const supersededEnd = ({ why, newer }: Replacement, stage: 'queue' | 'agent'): EventChanges => ({
  state: 'filtered',
  stage: undefined,
  code: 'superseded',
  detail: `${why} ${whenAt[stage]}${newer === undefined ? '' : `: ${newer}`}`,
})

/** The webhook and the rule, for the log. */
const toPlace = ({ known: { webhook, rule } }: AcceptedEvent) =>
  rule === undefined ? { webhook } : { webhook, rule }

/** The marks of a delivery at its sender, for when the event is no longer in memory. */
const atSender = ({ known: { deliveryId, size }, receivedAt }: AcceptedEvent) => ({
  deliveryId,
  size,
  receivedAt,
})

const droppedEnd = (
  state: EventRecord['state'] | undefined,
  why: typeof cancelled | undefined,
): EventChanges => {
  const stage = (state && currentStage[state]) ?? 'queue'
  if (why === cancelled) return { state: 'dropped', stage, ...describeCancel(stage) }
  return {
    state: 'dropped',
    stage,
    code: 'event-dropped',
    detail: `the daemon stopped ${whenAt[stage]}: deliver it again from the sender`,
  }
}

const describeCancel = (stage: Stage | undefined) => ({
  code: 'event-cancelled',
  detail: `it was cancelled ${whenAt[stage === 'agent' || stage === 'deliver' ? stage : 'queue']}`,
})

const whenAt = {
  queue: 'before its turn came',
  agent: 'while its agent ran',
  deliver: 'while its answer was being delivered',
} as const
