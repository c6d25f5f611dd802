import { z } from 'zod'
import type { EventRecord } from './api.ts'
import { hookProviders, repositorySchema } from '../config/source.ts'

/*
 * The documents of the local API about hooks at senders, and the deliveries of them that did not arrive.
 */

/** Body of `POST /webhooks/hooks`; with `check` nothing is made. */
export const connectHookSchema = z.strictObject({
  path: z.string().min(1).max(1000),
  provider: z.enum(hookProviders),
  repository: repositorySchema,
  check: z.literal(true).optional(),
  /** Made with an address that leads nowhere: the deliveries are read from the sender. */
  poll: z.literal(true).optional(),
})
export type ConnectHook = z.infer<typeof connectHookSchema>

/** Response of `POST /webhooks/hooks`. */
export type ConnectedHook = {
  /** `missing` only with `check`. */
  readonly state: 'created' | 'updated' | 'exists' | 'missing'
  readonly hookId?: number
  /** The address that the sender has. */
  readonly url: string
  readonly events?: readonly string[]
}

/** Response of `POST /webhooks/hooks/ping`: the delivery that came, or how the sender says it was answered. */
export type PingedHook = {
  readonly arrived: boolean
  readonly event?: EventRecord
  readonly answer?: string
}

/** Response of `DELETE /webhooks/hooks?path=…`; `removed` is false where the hook did not exist. */
export type RemovedHook = {
  readonly removed: boolean
  readonly provider: string
  readonly repository: string
  readonly hookId: number
  readonly mode?: 'poll'
}

/** `GET /webhooks/hooks`: the hooks that `webhook connect` made. */
export const hooksSchema = z.strictObject({
  hooks: z.array(
    z.strictObject({
      path: z.string(),
      provider: z.string(),
      repository: z.string(),
      hookId: z.int(),
      mode: z.literal('poll').optional(),
      /** `moved`: it delivers to another address; `unknown`: the sender did not say. */
      state: z.enum(['active', 'off', 'moved', 'missing', 'unknown']),
      url: z.string().optional(),
      events: z.array(z.string()),
      /** The last delivery, as the sender has it, and whether it came here. */
      last: z
        .strictObject({
          at: z.string(),
          event: z.string(),
          ok: z.boolean(),
          answer: z.string(),
          /** Whether the daemon has its event; it forgets old ones, and all at a stop. */
          here: z.boolean(),
        })
        .optional(),
      /** Why the sender did not say. */
      problem: z.string().optional(),
      hint: z.string().optional(),
    }),
  ),
})
export type HookSummary = z.infer<typeof hooksSchema>['hooks'][number]

/** The fault of a hook, and the way out. */
export const describeHookProblem = ({
  state,
  repository,
  path,
  provider,
  problem = '',
  hint,
}: HookSummary): string | undefined => {
  const again = `doorward webhook connect ${provider} ${repository} --path ${path}`
  switch (state) {
    case 'active':
      return undefined
    case 'off':
      return `the hook is switched off; switch it on: ${again}`
    case 'moved':
      return `the hook delivers to another address; change it: ${again}`
    case 'missing':
      return `the hook was deleted at the sender; make it again: ${again}`
    case 'unknown':
      return hint === undefined ? problem : `${problem}; ${hint}`
  }
}

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
