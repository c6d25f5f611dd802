import { hash } from 'node:crypto'
import { needsApproval } from '../../../shared/approve/approve.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Preview } from '../../delivery/preview.ts'
import type { AgentReply, ResolvedTarget } from '../../delivery/sender.ts'
import type { Detail, EventChanges } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import { isCancelled } from '../../util/concurrency.ts'
import type { AcceptedEvent } from '../events/accepted-event.ts'
import type { Leaving } from './leaving.ts'

/*
 * Between an answer and its targets: a dry run ends here, and an answer that needs an approval waits here. An approved
 * answer is rendered again before it is sent, and has to be the same: the agent is not asked, and no one has to
 * remember what was shown.
 */

/** The texts that the targets would get. */
export type Rendered = {
  readonly previews: readonly string[]
  /** SHA-256 of each target with its address, its text and the rule. */
  readonly digests: readonly string[]
  /** One for all of them. */
  readonly digest: string
}

export type Render = (
  event: AcceptedEvent,
  reply: AgentReply,
  places: readonly number[],
) => Promise<Rendered>

/** Renders the targets at these places; the others are empty. */
export const createRender =
  (preview: Preview): Render =>
  async ({ targets, leaving }, reply, places) => {
    const shown = async (target: ResolvedTarget, place: number) =>
      places.includes(place) ? preview(target, reply) : ''
    const previews = await Promise.all(targets.map(shown))
    const digests = targets.map((target, place) =>
      hash('sha256', JSON.stringify([leaving?.fingerprint, toAddress(target), previews[place]])),
    )
    return { previews, digests, digest: hash('sha256', digests.join('\n')) }
  }

const toAddress = (target: ResolvedTarget): unknown =>
  target.kind === 'invalid' ? [target.kind, target.text] : target

export type HoldBackParts = {
  readonly preview: Preview
  /** Asks the configuration of now for the rule of an event. */
  readonly leavingOf: (event: AcceptedEvent) => Leaving | undefined
  readonly events: Pick<EventStore, 'list'>
}

type Held = {
  readonly event: AcceptedEvent
  /** That of an earlier run. */
  readonly answer: string | undefined
  readonly signal: AbortSignal
  readonly change: (changes: EventChanges, texts?: Detail) => void
}

export type HoldBack = {
  /** True for an event whose answer does not leave at once. */
  readonly concerns: (event: AcceptedEvent) => boolean
  /** The end of the job of an event that is not sent now; undefined where it may be sent. Throws `approval-mismatch`. */
  readonly hold: (
    held: Held,
    reply: AgentReply,
    places: readonly number[],
  ) => Promise<EventChanges | undefined>
}

/** Answers that wait take memory until someone has read them. */
const maxWaiting = 500

export const createHoldBack = (parts: HoldBackParts): HoldBack => {
  const render = createRender(parts.preview)
  const leavingOf = (event: AcceptedEvent) => parts.leavingOf(event) ?? event.leaving

  return {
    concerns: (event) => leavingOf(event) !== undefined,
    hold: async ({ event, answer, signal, change }, reply, places) => {
      const leaving = leavingOf(event)
      if (!leaving) return undefined
      if (answer !== undefined && event.approved) {
        requireSameRule(event, parts.leavingOf(event))
        const { digests } = await render(event, reply, places)
        if (places.some((place) => digests[place] !== event.approved?.[place]))
          throw mismatch('what would be sent now differs from what was approved')
        return undefined
      }
      const { isDryRun, approve } = leaving
      const isAsked = places.some((place) => {
        const kind = event.targets[place]?.kind
        return approve && kind !== undefined && needsApproval(approve, kind)
      })
      if (!isDryRun && !isAsked) return undefined
      const { previews, digest } = await render({ ...event, leaving }, reply, places)
      if (isCancelled(signal)) throw new DoorwardError('event-cancelled', 'it was cancelled')
      change({}, { previews })
      if (isDryRun) return toDryRun(event, places)
      if (parts.events.list({ limit: maxWaiting, state: 'waiting' }).length >= maxWaiting)
        throw new DoorwardError('queue-full', `${maxWaiting} answers wait for an approval already`)
      const now = Date.now()
      return {
        state: 'waiting',
        approval: {
          state: 'waiting',
          digest,
          askedAt: new Date(now).toISOString(),
          expiresAt: new Date(now + (approve?.timeoutMs ?? 0)).toISOString(),
          asked: [...(approve?.by ?? [])],
          ...(event.remark !== undefined && { remark: event.remark }),
        },
      }
    },
  }
}

const toDryRun = ({ targets }: AcceptedEvent, places: readonly number[]): EventChanges => ({
  state: 'done',
  detail: 'dry_run: nothing was delivered',
  targets: targets.map(({ text }, place) => ({
    target: text,
    state: places.includes(place) ? 'previewed' : 'waiting',
    attempts: 0,
  })),
})

/** Throws `approval-mismatch` where the rule is not the one that asked. */
export const requireSameRule = (
  { leaving, known: { rule, webhook } }: AcceptedEvent,
  now: Leaving | undefined,
): void => {
  if (now?.fingerprint === leaving?.fingerprint) return
  const name = rule === undefined ? `webhook ${webhook ?? ''}` : `rule ${rule}`
  throw mismatch(`${name} was changed or removed since the answer was shown`)
}

export const mismatch = (why: string): DoorwardError =>
  new DoorwardError('approval-mismatch', `nothing was sent: ${why}`, {
    hint: 'doorward events retry ID --again runs it as its rule is now',
  })
