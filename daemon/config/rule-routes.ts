import type { Router } from '@koa/router'
import type { WebhookSummary } from '../../shared/api/api.ts'
import { ruleSwitchSchema } from '../../shared/api/rules.ts'
import { changeWebhooks } from '../../shared/config-edit/change-webhooks.ts'
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
