import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { proofFaults, schemeFaults } from '../../../../shared/config/signature-warnings.ts'
import { getKeySource, type SignatureScheme } from '../../../../shared/signatures/scheme.ts'
import { secretFault } from '../../../../shared/signatures/secrets.ts'
import { describeUnsetSecret, usedVariables } from '../../../../shared/config/variables.ts'
import type { Webhook } from '../../../../shared/config/webhook.ts'
import { type Check, checksFor } from '../check.ts'
import { type ConfigurationFacts, shapeFault } from './configuration.ts'

const { ok, warning, error, skipped } = checksFor('secrets')

/** Checks the secrets of the webhooks: whether they are set, and can be secrets. */
export const checkSecrets = (facts: ConfigurationFacts): Check[] => {
  const { config, env, fileEnv, envWarnings = [], envProblem } = facts
  if (!config) return [skipped('webhooks', 'the configuration cannot be read')]
  if (envProblem)
    return [
      error('.env', `it is not used: ${envProblem.detail}`, envProblem.hint),
      ...config.webhooks
        .filter((webhook) => webhook.enabled)
        .flatMap((webhook) => checkWithoutEnvFile(webhook, facts, usedVariables(config))),
    ]
  const lines = envWarnings.map(({ detail, hint }) =>
    warning('.env', detail.replace(/^\.env: /, ''), hint),
  )
  const enabled = config.webhooks.filter((webhook) => webhook.enabled)
  if (enabled.length === 0) return [...lines, skipped('webhooks', 'no webhook is enabled')]
  return [
    ...lines,
    ...enabled.flatMap((webhook) => checkWebhookSecrets(webhook, config, env)),
    ...checkShadowed(config, env, fileEnv ?? {}),
  ]
}

/** The secrets of a webhook while `.env` is not used: which are unset all the same. */
const checkWithoutEnvFile = (
  webhook: Webhook,
  { env, fileEnv }: ConfigurationFacts,
  used: readonly string[],
): Check[] => {
  const { path, scheme, secretNames } = webhook
  if (getKeySource(scheme)) return checkPublished(path, scheme)
  if (secretNames.length === 0) return [unsigned(path)]
  return secretNames.map((name) => {
    if (listSecrets([name], env).length > 0) return ok(path, `${name} is set in the environment`)
    if (!fileEnv) return skipped(path, `${name} may be in .env, which cannot be read`)
    return listSecrets([name], fileEnv).length > 0
      ? skipped(path, `${name} is in .env, which is not used`)
      : error(
          path,
          `${name} is unset or empty`,
          describeUnsetSecret(webhook, [name], fileEnv, used),
        )
  })
}

/** A sender that publishes its keys. */
const checkPublished = (path: string, scheme: SignatureScheme): Check[] => [
  ok(path, `is verified with the keys that ${scheme.name} publishes`),
]

const unsigned = (path: string): Check =>
  warning(
    path,
    'has no secret_env: anyone who knows its address can run the agent',
    'add secret_env to its entry: doorward config edit webhooks',
  )

const checkWebhookSecrets = (webhook: Webhook, config: Config, env: NodeJS.ProcessEnv): Check[] => {
  const used = usedVariables(config)
  const { path, scheme, secretNames } = webhook
  if (getKeySource(scheme)) return checkPublished(path, scheme)
  if (secretNames.length === 0) return [unsigned(path)]
  const isServed = listSecrets(secretNames, env).length > 0
  const differs = schemeFaults(webhook, env).filter(({ code }) => code === 'scheme-differs')
  return [
    ...differs.map(({ what, hint }) => error(path, what, hint)),
    ...proofFaults(webhook, config).map(({ code, what, hint }) =>
      (code === 'address-unset' ? error : warning)(path, what, hint),
    ),
    ...secretNames.map((name) => checkSecret(webhook, name, env, { isServed, used })),
  ]
}

const checkSecret = (
  webhook: Webhook,
  name: string,
  env: NodeJS.ProcessEnv,
  { isServed, used }: { readonly isServed: boolean; readonly used: readonly string[] },
): Check => {
  const { path, scheme } = webhook
  const [secret] = listSecrets([name], env)
  if (secret === undefined) {
    const hint = describeUnsetSecret(webhook, [name], env, used)
    return isServed
      ? warning(path, `${name} is unset or empty`, hint)
      : error(path, `${name} is unset or empty: deliveries are answered 503`, hint)
  }
  const again = `copy the secret again from the sender into ${name} in .env`
  const shape = shapeFault(secret)
  if (shape?.bad) return error(path, `${name} ${shape.reason}`, again)
  const fault = secretFault(scheme, secret)
  if (fault?.unusable)
    return error(path, `${name} ${fault.reason}; nothing can be verified with it`, again)
  if (fault) return warning(path, `${name} ${fault.reason}`, again)
  if (shape)
    return warning(
      path,
      `${name} ${shape.reason}`,
      `give the sender a longer one, and put it into ${name} in .env`,
    )
  const isToken = scheme.forms.every(({ check }) => check === 'token')
  return ok(
    path,
    isToken
      ? `${name} is set, a token of ${scheme.name}`
      : `${name} is set, signed as ${scheme.name}`,
  )
}

/** Finds variables of the shell that hide those in `.env`. */
const checkShadowed = (
  config: Config,
  env: NodeJS.ProcessEnv,
  fileEnv: Readonly<Record<string, string>>,
): Check[] =>
  [...new Set(config.webhooks.flatMap(({ secretNames }) => secretNames))]
    .filter((name) => Object.hasOwn(fileEnv, name) && env[name] !== fileEnv[name])
    .map((name) =>
      warning(
        name,
        `this shell has another value than .env, which a daemon that is started here would use`,
        `unset ${name}`,
      ),
    )
