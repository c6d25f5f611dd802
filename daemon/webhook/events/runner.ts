import type { EventRecord, Stage } from '../../../shared/api/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { currentStage } from '../../../shared/event-stages.ts'
import { publishesChange } from '../../../shared/targets/targets.ts'
import { isEmpty } from '../../delivery/format/parts.ts'
import type { SeenCode } from '../../delivery/sender.ts'
import { isSameCheck } from '../../delivery/targets/github/github-check.ts'
import { type Detail, type EventChanges, isFinal, newEventId } from '../../events/event-record.ts'
import type { Job, Queue } from '../../queue/queue.ts'
import { cancelled, isCancelled } from '../../util/concurrency.ts'
import type { Sessions } from '../../sessions/sessions.ts'
import type { SeenDeliveries } from '../dedupe.ts'
import type { RunBudgets } from '../rules/budgets.ts'
import type { Coalesced, EventGroups, Replacement } from '../rules/groups.ts'
import { toConclusion } from '../signs/check.ts'
import type { Signs } from '../signs/signs.ts'
import { createRender, type Rendered } from '../approvals/hold-back.ts'
import { hasNoWayOut, openPlaces, waitingAgain, waitingFor } from '../targets.ts'
import type { AcceptedEvent, RetryableEvents } from './accepted-event.ts'
import { createRunToEnd, createToReply, failedEnd, type RunToEndParts } from './run-to-end.ts'

/*
 * The second half of the story of a delivery, after the response to the sender:
 *
 *   queue -> agent -> deliver -> done, or failed with the stage; or dropped when the daemon stops, or its
 *   owner cancels it, before its turn comes
 *
 * An event whose agent or delivery is interrupted is failed, too.
 */

/** A duplicate was accepted before by another receiver. */
export type PlacedEvent = { readonly id: string; readonly status: 'accepted' | 'duplicate' }

export type RunEvent = {
  /** Another machine has to confirm what is accepted. */
  readonly needsConfirmation: boolean
  /**
   * Puts the events of one delivery into the queue: all or none, but where another machine has to confirm them,
   * those that it has taken. Throws `queue-full`, `body-too-large`, `stopping`, or `unavailable`.
   */
  readonly accept: (events: readonly AcceptedEvent[]) => Promise<readonly PlacedEvent[]>
  /**
   * Puts a failed event into the queue again: with its answer only for the targets that do not have it
   * yet, else for its agent. Throws `queue-full`, `body-too-large` or `stopping`.
   */
  readonly again: (id: string, event: AcceptedEvent, answer?: string) => void
  /** Runs an event from its beginning, with another prompt and other targets. Throws as `again`. */
  readonly afresh: (id: string, event: AcceptedEvent) => void
  /** Queues an event that was accepted before a restart, whatever the limits are. */
  readonly requeue: (id: string, event: AcceptedEvent, answer?: string) => void
  /** Ends the event that waits or runs with this key, for one that `cancel_on` calls `name`. */
  readonly endCoalesced: (coalesced: Coalesced, name: string) => void
  /** Queues the delivery of an answer that its owner has approved. Throws as `again`. */
  readonly send: (id: string, event: AcceptedEvent, answer: string, changes: EventChanges) => void
  /** Ends an event that waits for an approval, and is not sent. */
  readonly endUnsent: (id: string, event: AcceptedEvent, changes: EventChanges) => void
  /** Renders what the open targets of an event would get, with this answer. */
  readonly render: (id: string, event: AcceptedEvent, answer: string) => Promise<Rendered>
  /** The job of an event that is in the store. */
  readonly toJob: (id: string, event: AcceptedEvent, answer?: string) => Job
}

export type RunEventParts = RunToEndParts & {
  readonly sessions: Sessions
  readonly queue: Queue
  readonly deliveries: SeenDeliveries
  /** For a retry. */
  readonly kept: RetryableEvents<AcceptedEvent>
  readonly groups: EventGroups
  readonly budgets: RunBudgets
  readonly signs: Signs
}

/** Runs agents and delivers their answers, with one configuration. */
export const createRunEvent = (parts: RunEventParts): RunEvent => {
  const { queue, events, deliveries, kept, groups, signs } = parts
  const groupActions = {
    cancel: (id: string) => void queue.cancel(id),
    trigger: () => queue.trigger(),
  }
  const asking = new Set<string>()
  const toJob = createToJob(parts, asking)
  const join = (id: string, { receivedAt, coalesced }: AcceptedEvent): void => {
    if (coalesced) groups.join(id, receivedAt, coalesced, groupActions)
  }
  /** An event of which is asked who started it replaces no other, and shows nothing, until that is known. */
  const joinWhenAllowed = async (id: string, event: AcceptedEvent): Promise<void> => {
    const { coalesced, who, seen, check } = event
    if (!who || !(coalesced || seen || check)) {
      join(id, event)
      signs.begin(id, event)
      return
    }
    asking.add(id)
    try {
      await parts.requireRole(who)
      const { state = 'dropped' } = events.record(id) ?? {}
      if (state === 'queued') join(id, event)
      if (!isFinal(state)) signs.begin(id, event)
      // A quick agent has answered before.
      showWaiting(id, parts)
    } catch {
      // It is asked again when it runs, and ends so.
    } finally {
      asking.delete(id)
      queue.trigger()
    }
  }

  const render = createRender(parts.preview)
  const toReply = createToReply(signs)

  const enqueueAgain = (id: string, given: AcceptedEvent, answer?: string): void => {
    // The owner wants this one, whichever is newer.
    const event = { ...given, coalesced: undefined }
    queue.add(toJob(id, event, answer))
    const { delivery } = event
    const now = performance.now()
    if (delivery && deliveries.eventFor(delivery, now) === undefined)
      deliveries.remember(delivery, id, now)
    kept.keep(id, event)
    signs.begin(id, event)
  }
  const add = (id: string, event: AcceptedEvent): void => {
    const { receivedAt, known, prompt, targets, detail, delivery } = event
    if (delivery) deliveries.remember(delivery, id, performance.now())
    const { target, targets: results } = waitingFor(targets)
    events.add(receivedAt, { state: 'accepted', target, targets: results, detail, ...known }, id)
    events.update(id, { state: 'queued' }, { prompt })
    kept.keep(id, event)
    void joinWhenAllowed(id, event)
  }

  return {
    needsConfirmation: queue.machines !== undefined,
    toJob,
    endCoalesced: (coalesced, name) => groups.end(coalesced, name, groupActions.cancel),
    requeue: (id, event, answer) => {
      queue.addAccepted(toJob(id, event, answer))
      void joinWhenAllowed(id, event)
    },
    accept: async (accepted) => {
      const jobs = accepted.map((given) => {
        const event = stamp(given, groups)
        const id = newEventId()
        return toJob(id, event, undefined, () => add(id, event))
      })
      const placed = await queue.addAll(jobs)
      return accepted.flatMap(({ receivedAt, known }, index): PlacedEvent[] => {
        const [id, result] = [jobs[index]?.id, placed[index]]
        if (id === undefined) return []
        // The sender delivers it again, for those alone.
        if (result instanceof DoorwardError) throw result
        if (result === 'queued') return [{ id, status: 'accepted' }]
        events.add(receivedAt, { ...known, ...duplicateEnd }, id)
        return [{ id, status: 'duplicate' }]
      })
    },
    again: (id, given, answer) => {
      // Another answer needs another approval.
      const event = answer === undefined ? { ...given, approved: undefined } : given
      enqueueAgain(id, event, answer)
      const targets = waitingAgain(events.record(id)?.targets ?? [])
      const asked = answer === undefined ? { approval: undefined } : {}
      events.update(id, { state: 'queued', targets, ...asked, ...noReason })
    },
    send: (id, given, answer, changes) => {
      const event = { ...given, coalesced: undefined }
      queue.add(toJob(id, event, answer))
      kept.keep(id, event)
      signs.resume(id, event)
      const targets = waitingAgain(events.record(id)?.targets ?? [])
      events.update(id, { state: 'queued', targets, ...noReason, ...changes })
    },
    endUnsent: (id, event, changes) => toJob(id, event, '').end(changes),
    render: async (id, event, answer) => {
      const { targets = [] } = events.record(id) ?? {}
      const reply = await toReply(id, event, answer, event.code)
      const isSilent = isEmpty(answer)
      const places = openPlaces(targets).filter((place) => {
        const target = event.targets[place]
        return target !== undefined && (!isSilent || publishesChange(target))
      })
      return render(event, reply, places)
    },
    afresh: (id, event) => {
      enqueueAgain(id, event)
      const { known, prompt, targets } = event
      const changes = {
        ...waitingFor(targets),
        agent: known.agent,
        resultPreview: undefined,
        links: undefined,
        approval: undefined,
        promptSize: undefined,
        context: undefined,
        sandbox: undefined,
        usage: undefined,
        session: undefined,
      }
      events.update(id, { state: 'queued', ...changes, ...noReason }, { prompt })
    },
  }
}

const stamp = (event: AcceptedEvent, groups: EventGroups): AcceptedEvent => {
  const { coalesced } = event
  return coalesced ? { ...event, coalesced: groups.stamp(coalesced) } : event
}

type EventJob = Job & { readonly end: (changes: EventChanges) => void }

/** Makes the job of an event, which records what becomes of it. */
const createToJob = (
  parts: RunEventParts,
  asking: ReadonlySet<string>,
): ((id: string, event: AcceptedEvent, answer?: string, accepted?: () => void) => EventJob) => {
  const { events, deliveries, kept, groups, budgets, signs, sessions, queue, log } = parts
  const runToEnd = createRunToEnd(parts)
  return (id, event, answer, accepted) => {
    const { webhook, known, prompt, payload, coalesced, delivery } = event
    // A worker has its own: a receiver does not wait for its turns.
    const session = answer === undefined && !queue.machines ? event.session?.name : undefined
    const queuedAt = performance.now()
    let isOver = false
    let ending: Promise<void> | undefined
    let latest = event
    const change = (changes: EventChanges, texts?: Detail) => {
      if (!isOver) events.update(id, changes, texts)
      if (changes.state === 'running') signs.started(id)
    }
    const saw = (code: SeenCode | undefined) => {
      if (!code) return
      latest = { ...latest, code }
      if (!isOver) kept.keep(id, latest)
    }
    const end = (changes: EventChanges) => {
      change(changes)
      isOver = true
      ending = endSigns(changes)
      // The sender may deliver it again, and then it runs.
      if (delivery)
        if (isForSender(changes)) deliveries.forget(delivery, id)
        else deliveries.settle(delivery, id)
      // Of an event that is over, only `KeptPayloads` keeps it, within a limit.
      if (isForSender(changes) && payload) kept.keep(id, { ...latest, payload: undefined })
    }

    const endSigns = async (changes: EventChanges): Promise<void> => {
      if (!event.seen && !event.check) return
      const before = events.get(id)
      const live = await signs.checkOf(id)
      const isSet = event.targets.some(
        (target, index) =>
          target.kind === 'github-check' &&
          changes.targets?.[index]?.state === 'done' &&
          isSameCheck(live, target.address, event.checkName),
      )
      await signs.end(
        id,
        isSet ? undefined : toConclusion({ ...before, ...changes }, before?.result),
      )
    }

    /** The job is over, and the event is not. */
    const wait = (outcome: EventChanges): void => {
      const leaving = parts.leavingOf(latest) ?? latest.leaving
      kept.keep(id, { ...latest, leaving, payload: undefined, coalesced: undefined })
      change(outcome)
      isOver = true
      showWaiting(id, parts)
      log.info({ event: id, ...toPlace(event), state: outcome.state }, 'event')
    }

    const finish = (outcome: EventChanges, wasCancelled: boolean, wasStopped: boolean) => {
      const replaced = wasCancelled ? groups.replacementOf(id) : undefined
      const ended =
        replaced !== undefined
          ? { ...outcome, ...supersededEnd(replaced, 'agent') }
          : wasCancelled
            ? { ...outcome, ...describeCancel(outcome.stage) }
            : outcome
      end(ended)
      const { state, stage, code } = ended
      // No agent has run.
      if (code === 'paths-unmatched' || code === 'not-allowed')
        budgets.giveBack({ path: webhook.path, name: known.rule })
      const details = { event: id, ...toPlace(event), state, stage, code }
      // After the stop it cannot be retried.
      if (state === 'failed' && wasStopped && !wasCancelled)
        log.warn({ ...details, ...atSender(event) }, 'event not finished')
      else log.info(details, 'event')
    }

    return {
      id,
      event: answer === undefined && !hasNoWayOut(event) ? event : undefined,
      accepted,
      agentName: webhook.agentName,
      agentConcurrency: webhook.agent.concurrency,
      bytes: Buffer.byteLength(answer ?? prompt) + (payload?.length ?? 0),
      onlyDelivers: answer !== undefined,
      isReady:
        coalesced || session !== undefined
          ? (isStopping) =>
              (session === undefined || sessions.isFree(session)) &&
              (!coalesced || (!asking.has(id) && groups.isReady(id, coalesced.group, isStopping)))
          : undefined,
      run: async (signal, whenAgentIsDone) => {
        if (session !== undefined) sessions.enter(session, id)
        const agentIsDone = () => {
          if (session !== undefined) sessions.leave(session, id)
          whenAgentIsDone()
        }
        const queuedMs = Math.round(performance.now() - queuedAt)
        if (coalesced) change({ detail: undefined })
        const run = { id, event, answer, queuedMs, signal, change, saw, agentIsDone }
        const outcome = await runToEnd(run)
        const note = event.seen || event.check ? await signs.noteOf(id) : undefined
        if (session !== undefined) {
          sessions.leave(session, id)
          queue.trigger()
        }
        if (isOver) return
        if (outcome.state === 'waiting') return wait(addNote(outcome, note))
        const wasCancelled = outcome.state === 'failed' && isCancelled(signal)
        finish(addNote(outcome, note), wasCancelled, signal.aborted)
        await ending
      },
      end,
      fail: (error, why) => finish(failedEnd('agent', error), why === cancelled, false),
      drop: (why) => {
        const replaced = groups.replacementOf(id)
        if (replaced !== undefined) {
          if (coalesced) budgets.giveBack(coalesced.rule)
          end(supersededEnd(replaced, 'queue'))
          return
        }
        const ended = droppedEnd(events.record(id)?.state, why)
        end(ended)
        const { stage, code } = ended
        const details = { event: id, ...toPlace(event), stage, ...atSender(event) }
        if (why === cancelled) log.info({ ...details, state: 'dropped', code }, 'event')
        else log.warn(details, 'event dropped')
      },
    }
  }
}

/** Shows at its check that an event waits for an approval, where that is asked there. */
const showWaiting = (
  id: string,
  { events, kept, signs }: Pick<RunEventParts, 'events' | 'kept' | 'signs'>,
): void => {
  const { state, approval } = events.record(id) ?? {}
  const { by = [], who } = kept.get(id)?.leaving?.approve ?? {}
  if (state === 'waiting' && approval && by.includes('check'))
    signs.wait(id, approval.digest, who?.github !== undefined)
}

const addNote = (outcome: EventChanges, note: string | undefined): EventChanges =>
  note === undefined
    ? outcome
    : { ...outcome, detail: outcome.detail === undefined ? note : `${outcome.detail}; ${note}` }

/** True where the sender may deliver an event again, and then it runs; one that was replaced is settled. */
const isForSender = ({ state }: EventChanges): boolean =>
  state !== 'done' && state !== 'filtered' && state !== 'declined'

const supersededEnd = ({ why, newer }: Replacement, stage: 'queue' | 'agent'): EventChanges => ({
  state: 'filtered',
  stage: undefined,
  code: 'superseded',
  detail: `${why} ${whenAt[stage]}${newer === undefined ? '' : `: ${newer}`}`,
})

export const duplicateEnd = {
  state: 'duplicate',
  detail: 'the same delivery was accepted before, here or by another receiver',
} as const

const noReason = { stage: undefined, code: undefined, detail: undefined }

/** What ran, for the log. */
const toPlace = ({ known: { webhook, rule } }: AcceptedEvent) =>
  rule === undefined ? { webhook } : { webhook, rule }

/** What identifies a delivery at its sender, for when the event is no longer in memory. */
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
