import type { SourceSummary } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'

/*
 * A source brings the events of webhooks that take no requests: a socket, a list that is polled, a program. Its
 * events enter the pipeline by `acceptFetched`, like deliveries that catch-up reads.
 */

export type Source = {
  /** Begins to connect, and goes on until it is stopped or has failed for good. */
  readonly start: () => void
  /** Takes no more events; resolves when nothing of it runs any more. */
  readonly stop: () => Promise<void>
  readonly status: () => SourceStatus
}

/** Without the webhooks that it serves, which the owner of the sources knows. */
export type SourceStatus = Omit<SourceSummary, 'kind' | 'webhooks'>

/** The receiver of the events of a source. */
export type SourceServices = {
  /** The enabled webhooks that it serves, as they are configured now. */
  readonly webhooks: () => readonly CompiledWebhook[]
  /** Resolves once the queue has the event. Throws why the webhook refuses it. */
  readonly accept: (delivery: FetchedDelivery, webhook: CompiledWebhook) => Promise<unknown>
  /** False while another process takes over, and after it has: that one takes the events. */
  readonly isServing: () => boolean
  /** Shows the owner what happened, as an event. */
  readonly tell: (fault: DoorwardError) => void
  readonly now: () => number
}

/** Why a source brings nothing. */
export class SourceFault extends DoorwardError {
  /** Another attempt would fail as well. */
  readonly isFinal: boolean

  constructor(
    message: string,
    {
      hint,
      isFinal = false,
      retryAfterMs,
    }: { hint?: string | undefined; isFinal?: boolean; retryAfterMs?: number | undefined } = {},
  ) {
    super('source-failed', message, { hint, retryAfterMs })
    this.isFinal = isFinal
  }
}

/** Refusals after which the same event may be accepted later. */
const passing = ['queue-full', 'rate-limited', 'unavailable', 'stopping']

/**
 * Gives one event to all webhooks of a source. True where the queue has it, or no repetition would change that;
 * false where it has to come again.
 */
export const giveToAll = async (
  delivery: FetchedDelivery,
  { webhooks, accept }: Pick<SourceServices, 'webhooks' | 'accept'>,
): Promise<boolean> => {
  const given = await Promise.allSettled(
    webhooks().map(async (webhook) => accept(delivery, webhook)),
  )
  return !given.some(
    (one) =>
      one.status === 'rejected' &&
      one.reason instanceof DoorwardError &&
      passing.includes(one.reason.code),
  )
}

const firstPauseMs = 1000
const longestPauseMs = 60_000

/** The pause before attempt number `failures` + 1: doubled each time, by chance between a half and the whole. */
export const toPause = (failures: number, askedMs = 0): number => {
  const wholeMs = Math.min(firstPauseMs * 2 ** Math.max(0, failures - 1), longestPauseMs)
  return Math.max(askedMs, wholeMs * (0.5 + Math.random() / 2))
}
