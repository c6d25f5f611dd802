import { listSecrets } from '../../../../shared/config/environment.ts'
import type { Config } from '../../../../shared/config/load.ts'
import { schemeWarnings } from '../../../../shared/config/warnings.ts'
import { secretFault } from '../../../../shared/signature-schemes.ts'
import { describeUnset, usedVariables } from '../../../../shared/config/variables.ts'
import type { Webhook } from '../../../../shared/config/webhook.ts'
import { type Check, checksFor } from '../check.ts'
import { type ConfigurationFacts, shapeFault } from './configuration.ts'

const { ok, warning, error, skipped } = checksFor('secrets')

/** Whether the webhooks have the secrets that they verify by, and whether those can be such. */
export const judgeSecrets = (facts: ConfigurationFacts): Check[] => {
  const { config, env, ofFile, unread, envProblem } = facts
  if (!config) return [skipped('webhooks', 'the configuration cannot be read')]
  if (envProblem)
    return [
      error('.env', `it is not used: ${envProblem.detail}`, envProblem.hint),
      skipped('webhooks', '.env holds their secrets and cannot be used'),
    ]
  const passedOver = unread ? [warning('.env', unread.detail, unread.hint)] : []
  const enabled = config.webhooks.filter((webhook) => webhook.enabled)
  if (enabled.length === 0) return [...passedOver, skipped('webhooks', 'no webhook is enabled')]
  return [
    ...passedOver,
    ...enabled.flatMap((webhook) => ofWebhook(webhook, env, usedVariables(config))),
    ...shadowed(config, env, ofFile ?? {}),
  ]
}

const ofWebhook = (webhook: Webhook, env: NodeJS.ProcessEnv, used: readonly string[]): Check[] => {
  const { path, secretNames } = webhook
  if (secretNames.length === 0)
    return [
      warning(
        path,
        'has no secret_env: whoever knows its address can run the agent',
        'add secret_env to its entry: doorward config edit webhooks',
      ),
    ]
  const isServed = listSecrets(secretNames, env).length > 0
  const differs = schemeWarnings(webhook, env).filter(({ code }) => code === 'scheme-differs')
  return [
    ...differs.map(({ detail, hint }) => error(path, detail, hint)),
    ...secretNames.map((name) => ofSecret(webhook, name, env, { isServed, used })),
  ]
}

const ofSecret = (
  { path, scheme }: Webhook,
  name: string,
  env: NodeJS.ProcessEnv,
  { isServed, used }: { readonly isServed: boolean; readonly used: readonly string[] },
): Check => {
  const [secret] = listSecrets([name], env)
  if (secret === undefined) {
    const hint = describeUnset([name], env, used)
    return isServed
      ? warning(path, `${name} is unset or empty`, hint)
      : error(path, `${name} is unset or empty: deliveries are answered 503`, hint)
  }
  const again = `copy the secret again from the sender into ${name} in .env`
  const shape = shapeFault(secret)
  if (shape?.bad) return error(path, `${name} ${shape.reason}`, again)
  const fault = secretFault(scheme, secret)
  // Senders show secrets without white space and quotes: with them nothing fits.
  const isBroken = fault?.unusable || /white space|quotes/.test(fault?.reason ?? '')
  if (fault && isBroken)
    return error(path, `${name} ${fault.reason}; nothing can be verified with it`, again)
  if (fault) return warning(path, `${name} ${fault.reason}`, again)
  if (shape)
    return warning(
      path,
      `${name} ${shape.reason}`,
      `give the sender a longer one, and put it into ${name} in .env`,
    )
  return ok(path, `${name} is set, signed as ${scheme.name}`)
}

/** A variable of the shell that hides what was written into `.env`. */
const shadowed = (
  config: Config,
  env: NodeJS.ProcessEnv,
  ofFile: Readonly<Record<string, string>>,
): Check[] =>
  [...new Set(config.webhooks.flatMap(({ secretNames }) => secretNames))]
    .filter((name) => Object.hasOwn(ofFile, name) && env[name] !== ofFile[name])
    .map((name) =>
      warning(
        name,
        `the environment of this shell has another value than .env, and wins over it for a daemon that is started here`,
        `unset ${name}`,
      ),
    )
