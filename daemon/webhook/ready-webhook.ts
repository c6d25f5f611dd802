import { secretsOf } from '../../shared/config/environment.ts'
import type { Config } from '../../shared/config/load.ts'
import type { Webhook } from '../../shared/config/webhook.ts'
import { headerNamesOf } from './scheme-headers.ts'
import { type Verifier, prepareVerifier } from './verifier.ts'

/** A definition with its secrets as keys: all that a request needs, prepared once. */
export type ReadyWebhook = Webhook & {
  readonly verifier: Verifier
  /** The headers of a request that are looked at. */
  readonly headerNames: readonly string[]
  /** The secrets of this home as they are written, for finding out why a signature does not fit. */
  readonly secrets: () => KnownSecrets
}

export type KnownSecrets = {
  readonly own: readonly string[]
  /** Those of the other webhooks, with the paths of these. */
  readonly others: readonly { readonly path: string; readonly secret: string }[]
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
        const ready: ReadyWebhook = {
          ...webhook,
          verifier: verifierOf(webhook, env),
          headerNames: headerNamesOf(webhook.scheme),
          secrets: () => knownSecrets(webhook, config, env),
        }
        return webhook.urlPaths.map((path) => [path, ready] as const)
      }),
  )

const verifierOf = ({ scheme, secretNames }: Webhook, env: NodeJS.ProcessEnv): Verifier => {
  if (secretNames.length === 0) return 'none'
  const secrets = secretsOf(secretNames, env)
  return secrets.length === 0 ? 'unset' : prepareVerifier(scheme, secrets)
}

const knownSecrets = (webhook: Webhook, config: Config, env: NodeJS.ProcessEnv): KnownSecrets => {
  const own = secretsOf(webhook.secretNames, env)
  const others = config.webhooks
    .filter(({ path }) => path !== webhook.path)
    .flatMap(({ path, secretNames }) =>
      secretsOf(secretNames, env).map((secret) => ({ path, secret })),
    )
    .filter(({ secret }) => !own.includes(secret))
  return { own, others }
}
