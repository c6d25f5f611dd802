import type { Router } from '@koa/router'
import { z } from 'zod'
import type { WebhookSummary } from '../../shared/api/api.ts'
import { changeWebhooks } from '../../shared/config-edit/open-config.ts'
import { switchRule } from '../../shared/config-edit/switch-rule.ts'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { exactRouter, readJsonBody } from '../http/body.ts'
import type { LiveConfig } from './live-config.ts'

type Parts = {
  readonly home: Home
  readonly live: Pick<LiveConfig, 'reload'>
  readonly list: () => readonly WebhookSummary[]
}

/**
 * Body of `POST /webhooks/rules`: pauses or resumes a rule, or switches its dry run, by a key of webhooks.yaml.
 * Without `rule` it is that of the whole webhook. The response is the `WebhookSummary`, once the daemon uses it.
 */
const ruleSwitchSchema = z
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

/** `POST /webhooks/rules`: pauses and resumes rules, and switches their dry run, in webhooks.yaml. */
export const ruleRoutes = ({ home, live, list }: Parts): Router => {
  const router = exactRouter()
  router.post('/webhooks/rules', async (ctx) => {
    const wanted = await readJsonBody(ctx, ruleSwitchSchema)
    await changeWebhooks(home, (text) => switchRule(text, wanted))
    await live.reload()
    const changed = list().find(({ path }) => path === wanted.path)
    if (!changed) throw new DoorwardError('webhook-not-found', 'it was removed meanwhile')
    ctx.body = changed
  })
  return router
}
