import { DoorwardError } from '../../../shared/errors.ts'
import { publishesChange } from '../../../shared/targets/targets.ts'
import { isEmpty } from '../../delivery/format/parts.ts'
import { type EventChanges, isFinal, newEventId } from '../../events/event-record.ts'
import type { Job } from '../../queue/queue.ts'
import { createRender, type Rendered } from '../approvals/hold-back.ts'
import type { Coalesced, EventGroups } from '../rules/groups.ts'
import { openPlaces, waitingAgain, waitingFor } from '../targets.ts'
import type { AcceptedEvent } from './accepted-event.ts'
import { showWaiting } from './event-ending.ts'
import { createToJob, type JobParts } from './event-job.ts'
import { createToReply } from './run-to-end.ts'

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

export type RunEventParts = JobParts

type ToJob = ReturnType<typeof createToJob>

/** Runs agents and delivers their answers, with one configuration. */
export const createRunEvent = (parts: RunEventParts): RunEvent => {
  const { queue, groups } = parts
  const asking = new Set<string>()
  const toJob = createToJob(parts, asking)
  const begin = createBegin(parts, asking)
  const cancel = (id: string) => void queue.cancel(id)
  return {
    needsConfirmation: queue.machines !== undefined,
    toJob,
    endCoalesced: (coalesced, name) => groups.end(coalesced, name, cancel),
    requeue: (id, event, answer) => {
      queue.addAccepted(toJob(id, event, answer))
      void begin(id, event)
    },
    accept: createAccept(parts, toJob, begin),
    endUnsent: (id, event, changes) => toJob(id, event, '').end(changes),
    render: createRenderOpen(parts),
    ...createRepeats(parts, toJob),
  }
}

/** Lets an event replace the older ones of its key, and shows at its sender that it waits. */
const createBegin = (parts: RunEventParts, asking: Set<string>) => {
  const { queue, events, groups, signs } = parts
  const actions = {
    cancel: (id: string) => void queue.cancel(id),
    trigger: () => queue.trigger(),
  }
  const join = (id: string, { receivedAt, coalesced }: AcceptedEvent): void => {
    if (coalesced) groups.join(id, receivedAt, coalesced, actions)
  }
  /** An event of which is asked who started it replaces no other, and shows nothing, until that is known. */
  return async (id: string, event: AcceptedEvent): Promise<void> => {
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
}

const createAccept = (
  { queue, events, deliveries, kept, groups }: RunEventParts,
  toJob: ToJob,
  begin: ReturnType<typeof createBegin>,
): RunEvent['accept'] => {
  const add = (id: string, event: AcceptedEvent): void => {
    const { receivedAt, known, prompt, targets, detail, delivery } = event
    if (delivery) deliveries.remember(delivery, id, performance.now())
    const { target, targets: results } = waitingFor(targets)
    events.add(receivedAt, { state: 'accepted', target, targets: results, detail, ...known }, id)
    events.update(id, { state: 'queued' }, { prompt })
    kept.keep(id, event)
    void begin(id, event)
  }
  return async (accepted) => {
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
  }
}

/** The same event once more: its agent, its delivery, or what was approved. */
const createRepeats = (
  { queue, events, deliveries, kept, signs }: RunEventParts,
  toJob: ToJob,
): Pick<RunEvent, 'again' | 'send' | 'afresh'> => {
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
  return {
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
    afresh: (id, event) => {
      enqueueAgain(id, event)
      const { known, prompt, targets } = event
      const changes = {
        ...waitingFor(targets),
        agent: known.agent,
        resultPreview: undefined,
        links: undefined,
        approval: undefined,
        outputs: undefined,
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

const createRenderOpen = ({ events, preview, signs }: RunEventParts): RunEvent['render'] => {
  const render = createRender(preview)
  const toReply = createToReply(signs)
  return async (id, event, answer) => {
    const { targets = [] } = events.record(id) ?? {}
    const reply = await toReply(id, event, answer, event.code)
    const isSilent = isEmpty(answer)
    const places = openPlaces(targets).filter((place) => {
      const target = event.targets[place]
      return target !== undefined && (!isSilent || publishesChange(target))
    })
    return render(event, reply, places)
  }
}

const stamp = (event: AcceptedEvent, groups: EventGroups): AcceptedEvent => {
  const { coalesced } = event
  return coalesced ? { ...event, coalesced: groups.stamp(coalesced) } : event
}

export const duplicateEnd = {
  state: 'duplicate',
  detail: 'the same delivery was accepted before, here or by another receiver',
} as const

const noReason = { stage: undefined, code: undefined, detail: undefined }
