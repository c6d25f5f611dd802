import { agentKeyWarnings, riskWarnings } from './agent-warnings.ts'
import { secretsOf } from './environment.ts'
import { filterWarnings } from './filter-warnings.ts'
import type { Config } from './load-config.ts'
import { providerWarnings } from './provider-warnings.ts'
import { schemeWarnings } from './scheme-warnings.ts'
import { targetWarnings } from './target-warnings.ts'
import { templateWarnings } from './template-warnings.ts'
import { unsetHint } from './unset-hint.ts'
import { usedVariables } from './used-variables.ts'
import type { Warning } from './warning.ts'

/** What a person should know about a configuration that can be used. Never a secret's value. */
export const warningsOf = (config: Config, env: NodeJS.ProcessEnv): Warning[] => [
  ...limitWarnings(config),
  ...secretWarnings(config, env),
  ...config.webhooks
    .filter(({ enabled }) => enabled)
    .flatMap((webhook) => [
      ...schemeWarnings(webhook, env),
      ...templateWarnings(webhook),
      ...filterWarnings(webhook),
    ]),
  ...agentKeyWarnings(config, env),
  ...targetWarnings(config, env),
  ...providerWarnings(config),
  ...riskWarnings(config),
]

/** A body that never finds room is answered 503, and its sender tries again for ever. */
const limitWarnings = ({ gateway }: Config): Warning[] =>
  gateway.server.body_limit <= gateway.queue.max_bytes
    ? []
    : [
        {
          code: 'body-limit-too-large',
          detail:
            'server.body_limit is larger than queue.max_bytes: the largest bodies find no room',
          hint: 'raise queue.max_bytes or lower server.body_limit in gateway.yaml',
        },
      ]

const secretWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] =>
  config.webhooks
    .filter((webhook) => webhook.enabled)
    .flatMap(({ path, secretNames }): Warning[] => {
      if (secretNames.length === 0)
        return [
          {
            code: 'webhook-unsigned',
            detail: `webhook ${path} has no secret_env: whoever knows its address can run the agent`,
            hint: 'add secret_env to its entry in webhooks.yaml',
          },
        ]
      const unset = secretNames.filter((name) => secretsOf([name], env).length === 0)
      if (unset.length === 0) return []
      const all = unset.length === secretNames.length
      return [
        {
          code: all ? 'secret-unset' : 'secret-partly-unset',
          detail: `webhook ${path}: ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty${all ? '; its deliveries are answered 503' : ''}`,
          hint: unsetHint(unset, env, usedVariables(config)),
        },
      ]
    })
