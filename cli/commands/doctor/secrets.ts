import { type Check, checksFor } from '../../../shared/api/checks.ts'
import { listSecrets } from '../../../shared/config/environment.ts'
import type { Config } from '../../../shared/config/load.ts'
import { proofFaults, schemeFaults } from '../../../shared/config/signature-warnings.ts'
import type { Fault } from '../../../shared/config/warning.ts'
import { secretFaults } from '../../../shared/config/warnings.ts'
import type { Webhook } from '../../../shared/config/webhook.ts'
import { getKeySource } from '../../../shared/signatures/scheme.ts'
import type { ConfigurationFacts } from './configuration.ts'

const { ok, warning, error, skipped } = checksFor('secrets')

/** Checks the secrets of the webhooks: whether they are set, and can be secrets. */
export const checkSecrets = (facts: ConfigurationFacts): Check[] => {
  const { config, env, fileEnv = {}, envWarnings = [], envProblem } = facts
  if (!config) return [skipped('secrets', 'the configuration cannot be read')]
  const enabled = config.webhooks.filter((webhook) => webhook.enabled)
  if (envProblem)
    return [
      error('.env', `it is not used: ${envProblem.detail}`, envProblem.hint),
      ...enabled.flatMap((webhook) => checkWithoutEnvFile(webhook, facts, config)),
    ]
  const lines = envWarnings.map(({ detail, hint }) => warning('.env', detail, hint))
  if (enabled.length === 0) return [...lines, skipped('webhooks', 'no webhook is enabled')]
  return [
    ...lines,
    ...enabled.flatMap((webhook) => checkWebhook(webhook, config, env)),
    ...checkShadowed(config, env, fileEnv),
  ]
}

const errors = ['secret-unset', 'secret-unusable', 'scheme-differs', 'address-unset']

const toCheck = (path: string, { code, what, hint }: Fault): Check =>
  (errors.includes(code) ? error : warning)(path, what, hint)

const checkWebhook = (webhook: Webhook, config: Config, env: NodeJS.ProcessEnv): Check[] => {
  const { path, scheme, secretNames } = webhook
  const published = checkPublished(webhook)
  if (published) return published
  const shapes = schemeFaults(webhook, env)
  const faults = [
    ...secretFaults(webhook, { config, env }),
    ...shapes,
    ...proofFaults(webhook, config),
  ]
  const isToken = scheme.forms.every(({ check }) => check === 'token')
  const set = secretNames.filter((name) => listSecrets([name], env).length > 0)
  return [
    ...faults.map((fault) => toCheck(path, fault)),
    ...set.flatMap((name) => {
      const [secret = ''] = listSecrets([name], env)
      const guessable = checkGuessable(path, name, secret)
      if (guessable) return shapes.length > 0 ? [] : [guessable]
      return shapes.length > 0
        ? []
        : [ok(path, `${name} is set, ${isToken ? 'a token of' : 'signed as'} ${scheme.name}`)]
    }),
  ]
}

/** While `.env` is not used: which secrets are unset all the same. */
const checkWithoutEnvFile = (
  webhook: Webhook,
  { env, fileEnv }: ConfigurationFacts,
  config: Config,
): Check[] => {
  const { path, secretNames } = webhook
  const published = checkPublished(webhook)
  if (published) return published
  const isSet = secretNames.some((name) => listSecrets([name], env).length > 0)
  if (!fileEnv && !isSet && secretNames.length > 0)
    return [skipped(path, `${secretNames.join(', ')} may be in .env, which cannot be read`)]
  const known = { ...fileEnv, ...env }
  const faults = secretFaults(webhook, { config, env: known })
  if (faults.length > 0) return faults.map((fault) => toCheck(path, fault))
  return [
    isSet
      ? ok(path, 'its secret is set in the environment')
      : skipped(path, `${secretNames.join(', ')} is in .env, which is not used`),
  ]
}

/** For a sender that publishes its keys; undefined for others. */
const checkPublished = ({ path, scheme }: Webhook): Check[] | undefined =>
  getKeySource(scheme)
    ? [ok(path, `is verified with the keys that ${scheme.name} publishes`)]
    : undefined

/** Variables of the shell that hide those in `.env`. */
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
        'this shell has another value than .env, which a daemon that is started here would use',
        `unset ${name}`,
      ),
    )

const checkGuessable = (path: string, name: string, secret: string): Check | undefined => {
  const fault = shapeFault(secret)
  if (!fault) return undefined
  return fault.bad
    ? error(
        path,
        `${name} ${fault.reason}`,
        `copy the secret again from the sender into ${name} in .env`,
      )
    : warning(
        path,
        `${name} ${fault.reason}`,
        `give the sender a longer one, and put it into ${name} in .env`,
      )
}

/* Placeholders and guessable secrets, of any sender. No message contains the value. */

const placeholders =
  /^(change[-_ ]?me|replace[-_ ]?me|todo|fixme|tbd|secret|password|passw0rd|test|testing|example|dummy|foo|bar|abc|none|null|undefined|x{3,}|\*{3,}|\.{3,}|-+|12345\d*|0+)!?$/i
const placeholderWords =
  /^<.*>$|^\[.*\]$|^\$\{?\w+\}?$|\b(your|my)[-_ ]?(\w+[-_ ])?(secret|token|key|password)\b|change[-_ ]?me|replace[-_ ]?(me|this|with)|goes[-_ ]here|insert[-_ ]/i

const shortest = 16

/** Why a secret is a placeholder (`bad`), or can be guessed. */
export const shapeFault = (
  value: string,
): { readonly reason: string; readonly bad: boolean } | undefined => {
  const text = value.trim()
  if (placeholders.test(text) || placeholderWords.test(text))
    return { reason: 'is a placeholder, not a secret', bad: true }
  if (text.length < shortest)
    return { reason: `is shorter than ${shortest} characters: it can be guessed`, bad: false }
  if (new Set(text).size < 6)
    return { reason: 'repeats a few characters: it can be guessed', bad: false }
  return undefined
}
