import { z } from 'zod'

/* The switches of rules, in the local API. */

/**
 * Body of `POST /webhooks/rules`: pauses or resumes a rule, or switches its dry run, by a key of webhooks.yaml.
 * Without `rule` it is that of the whole webhook. The response is the `WebhookSummary`, once the daemon uses it.
 */
export const ruleSwitchSchema = z
  .strictObject({
    path: z.string().min(1).max(2048),
    rule: z.string().min(1).max(64).optional(),
    enabled: z.boolean().optional(),
    dryRun: z.boolean().optional(),
  })
  .refine(
    ({ enabled, dryRun }) => (enabled === undefined) !== (dryRun === undefined),
    'either enabled or dryRun',
  )
