import { type KeyObject, createSecretKey } from 'node:crypto'
import { secretsOf } from '../../shared/environment.ts'
import type { Config } from '../../shared/load-config.ts'
import type { Webhook } from '../../shared/webhook-definition.ts'

/** A definition with its secrets as keys: all that a request needs, prepared once. */
export type ReadyWebhook = Webhook & {
  /** Keys any of which may have signed; `unset` when named ones hold nothing; `none` when none is named. */
  readonly keys: readonly KeyObject[] | 'unset' | 'none'
}

/** Prepares every enabled definition under each URL path it is served at. */
export const webhooksByPath = (
  config: Config,
  env: NodeJS.ProcessEnv,
): ReadonlyMap<string, ReadyWebhook> =>
  new Map(
    config.webhooks
      .filter((webhook) => webhook.enabled)
      .flatMap((webhook) => {
        const ready = { ...webhook, keys: keysOf(webhook, env) }
        return webhook.urlPaths.map((path) => [path, ready] as const)
      }),
  )

const keysOf = (webhook: Webhook, env: NodeJS.ProcessEnv): ReadyWebhook['keys'] => {
  if (webhook.secretNames.length === 0) return 'none'
  const secrets = secretsOf(webhook.secretNames, env)
  if (secrets.length === 0) return 'unset'
  return secrets.map((secret) => createSecretKey(secret, 'utf8'))
}
