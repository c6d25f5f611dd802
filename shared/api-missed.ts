import { z } from 'zod'

/*
 * The documents of the local API about deliveries that did not arrive.
 */

/** `GET /events/missed`: each hook whose deliveries are caught up. */
export const missedSchema = z.strictObject({
  hooks: z.array(
    z.strictObject({
      /** Path of the webhook. */
      path: z.string(),
      provider: z.string(),
      repository: z.string(),
      mode: z.enum(['ask', 'newest', 'all']),
      /** The oldest first. */
      waiting: z.array(
        z.strictObject({
          deliveryId: z.string(),
          at: z.string(),
          /** The event with its action: `pull_request.opened`. */
          event: z.string(),
          /** The answer that the sender got. */
          answer: z.string(),
        }),
      ),
      /** Why the sender's list could not be read. */
      problem: z.string().optional(),
      hint: z.string().optional(),
    }),
  ),
})
export type MissedHook = z.infer<typeof missedSchema>['hooks'][number]

/** Body of `POST /events/missed`; without `path` for every webhook. */
export const catchUpSchema = z.strictObject({
  do: z.enum(['run', 'skip']),
  path: z.string().min(1).max(1000).optional(),
})
export type CatchUpRequest = z.infer<typeof catchUpSchema>

/** Response of `POST /events/missed`. */
export type CaughtUp = {
  readonly run: number
  readonly skipped: number
  /** The webhook refused them, or their details are no longer kept; the events say why. */
  readonly refused: number
  /** More than `at_most`, or more than the queue takes. */
  readonly waiting: number
  /** Why it stopped early. */
  readonly problem?: string
}
