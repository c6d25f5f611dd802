import type { Reached } from '../deliver/progress.ts'
import type { EventsCopy } from '../events/event-store.ts'
import type { AcceptedEvent } from '../webhook/accepted-event.ts'
import type { DeliveryKey } from '../webhook/deliveries.ts'
import type { ReadyTarget } from '../deliver/ready-target.ts'
import type { Bucket } from '../webhook/rate-limits.ts'
import type { Counted } from '../webhook/summaries.ts'
import type { ErrorCopy } from './error-copy.ts'

/** The memory of a daemon as it travels. Times of one process mean nothing to another, so ages are sent (ms). */
export type MemoryCopy = {
  readonly events: EventsCopy
  readonly counts: readonly (readonly [path: string, counted: Counted])[]
  readonly kept: readonly (readonly [id: string, event: KeptCopy])[]
  readonly deliveries: readonly {
    readonly key: DeliveryKey
    readonly eventId: string
    readonly ageMs: number
  }[]
  readonly rateLimits: readonly (readonly [webhook: string, bucket: Bucket, ageMs: number])[]
  readonly progress: readonly (readonly [key: string, reached: Reached])[]
  readonly messages: readonly string[]
  readonly promises: readonly (readonly [provider: string, until: number])[]
}

/** What it takes to run an event again, but its prompt, which the event itself has. */
export type KeptCopy = Omit<AcceptedEvent, 'prompt' | 'targets'> & {
  readonly targets: readonly TargetCopy[]
}

type TargetCopy =
  | Exclude<ReadyTarget, { kind: 'invalid' }>
  | { readonly text: string; readonly kind: 'invalid'; readonly error: ErrorCopy }
