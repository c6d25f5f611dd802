import { z } from 'zod'
import { eventSchema } from './api.ts'
import { hookProviders, repositorySchema } from './config/source.ts'

/*
 * The documents of the local API about hooks at senders.
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
export const connectedHookSchema = z.strictObject({
  /** `missing` only with `check`. */
  state: z.enum(['created', 'updated', 'exists', 'missing']),
  hookId: z.int().optional(),
  /** The address that the sender has. */
  url: z.string(),
  events: z.array(z.string()).optional(),
})
export type ConnectedHook = z.infer<typeof connectedHookSchema>

/** Response of `POST /webhooks/hooks/ping`: the delivery that came, or how the sender says it was answered. */
export const pingedHookSchema = z.strictObject({
  arrived: z.boolean(),
  event: eventSchema.optional(),
  answer: z.string().optional(),
})
export type PingedHook = z.infer<typeof pingedHookSchema>

/** Response of `DELETE /webhooks/hooks?path=…`; `removed` is false where the hook was gone. */
export const removedHookSchema = z.strictObject({
  removed: z.boolean(),
  provider: z.string(),
  repository: z.string(),
  hookId: z.int(),
  mode: z.literal('poll').optional(),
})
export type RemovedHook = z.infer<typeof removedHookSchema>

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
