import { DoorwardError } from '../shared/errors.ts'
import type { Webhook } from '../shared/config/webhook.ts'
import { nearestWebhook } from './nearest-webhook.ts'

/** The definition at this path, with or without `/webhook`. Throws `webhook-not-found` with the nearest one. */
export const webhookAt = (path: string, webhooks: readonly Webhook[]): Webhook => {
  const webhook = webhooks.find((known) => known.path === path || known.urlPaths.includes(path))
  if (webhook) return webhook
  const paths = webhooks.map((known) => known.path)
  throw new DoorwardError('webhook-not-found', `no webhook is defined at "${path}"`, {
    hint:
      nearestWebhook(path, paths) ??
      (paths.length > 0 ? `one of ${paths.join(', ')}` : 'doorward config edit webhooks'),
  })
}
