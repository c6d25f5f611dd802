import { presetSchemes, secretFault } from '../signature-schemes.ts'
import { startsWithEvent } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { describePermission } from './agent-schema.ts'
import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import { type Agent, builtInProviders } from './schema.ts'
import { targetWarnings } from './target-warnings.ts'
import { sentKinds } from './targets.ts'
import { agentVariables, describeUnset, usedVariables } from './variables.ts'
import type { Warning } from './warning.ts'
import type { Webhook } from './webhook.ts'

/** What a person should know about a configuration that can be used. Never a secret's value. */
export const collectWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => [
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
      const unset = secretNames.filter((name) => listSecrets([name], env).length === 0)
      if (unset.length === 0) return []
      const all = unset.length === secretNames.length
      return [
        {
          code: all ? 'secret-unset' : 'secret-partly-unset',
          detail: `webhook ${path}: ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty${all ? '; its deliveries are answered 503' : ''}`,
          hint: describeUnset(unset, env, usedVariables(config)),
        },
      ]
    })

/** Variables that agents of enabled webhooks name, and that are not there. */
const agentKeyWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const used = new Map(
    config.webhooks
      .filter(({ enabled }) => enabled)
      .map(({ agentName, agent }) => [agentName, agent]),
  )
  return [...used].flatMap(([agentName, agent]): Warning[] => {
    const unset = agentVariables(agent).filter((name) => listSecrets([name], env).length === 0)
    if (unset.length === 0) return []
    return [
      {
        code: 'agent-key-unset',
        detail: `agent ${agentName}: ${unset.join(', ')} ${unset.length === 1 ? 'is' : 'are'} unset or empty; ${withoutVariable(agent)}`,
        hint: describeUnset(unset, env, usedVariables(config)),
      },
    ]
  })
}

/** What an agent does whose variable is unset. */
export const withoutVariable = ({ kind }: Pick<Agent, 'kind'>): string =>
  kind === 'openai' || kind === 'http' ? 'it cannot be asked' : 'it runs without'

/** Text of strangers, an agent that may act, and a way out of the machine: together they are a way in. */
export const riskWarnings = (config: Config): Warning[] =>
  config.webhooks.flatMap((webhook): Warning[] => {
    const { path, enabled, acceptsRisk, agentName, agent, prompt, targets } = webhook
    const permission = describePermission(agent)
    const hasEventText = prompt.parts.some((part) => typeof part !== 'string')
    const leaving = targets.filter(({ kind }) => (sentKinds as readonly string[]).includes(kind))
    if (!enabled || acceptsRisk || !hasEventText || permission === undefined) return []
    if (leaving.length === 0) return []
    const where = leaving.map(({ text }) => text).join(', ')
    return [
      {
        code: 'dangerous-combination',
        detail: `webhook ${path} gives text that strangers can write to agent ${agentName}, which may change files or run programs on its own (${permission}), and sends its answer out of this machine (${where}): whoever writes that text can make it act for them and send them what it finds`,
        hint: `take ${permission} from the agent, deliver to log, notify:desktop or file:, or leave {{event…}} out of the prompt; accept_risk: true beside the webhook silences this`,
      },
    ]
  })

/** For a path that begins as in a prompt. */
export const prefixHint = (path: string): string =>
  `write ${path.slice('event.'.length)}: paths of a filter have no event. in front`

/**
 * Paths of a filter that are written as in a prompt. Slack's payloads do have a field `event`, and so have
 * those of which the prompt takes something out of it.
 */
const filterWarnings = ({
  path,
  scheme,
  filter,
  prompt,
}: Pick<Webhook, 'path' | 'scheme' | 'filter' | 'prompt'>): Warning[] => {
  const hasField = scheme.name === 'slack' || prompt.parts.some(([first]) => first === 'event')
  return hasField
    ? []
    : filter
        .filter((condition) => startsWithEvent(condition.path))
        .map(({ text }) => ({
          code: 'filter-path-prefix',
          detail: `webhook ${path}: ${text} in filter never matches, unless the payload has a field event`,
          hint: prefixHint(text),
        }))
}

/** Providers of gateway.yaml that nobody can log in to, as nothing says where. */
const providerWarnings = ({ gateway }: Config): Warning[] =>
  Object.entries(gateway.providers)
    .filter(([name]) => !isBuiltIn(name))
    .flatMap(([name, { issuer, authorization_endpoint, token_endpoint }]): Warning[] => {
      if (issuer !== undefined) return []
      const missing = [
        ...(authorization_endpoint === undefined ? ['authorization_endpoint'] : []),
        ...(token_endpoint === undefined ? ['token_endpoint'] : []),
      ]
      if (missing.length === 0) return []
      const entry = `providers.${name}`
      const meant = didYouMean(name, builtInProviders)
      return [
        {
          code: 'provider-incomplete',
          detail: `provider ${name} has neither an issuer nor ${missing.map(withArticle).join(' and ')}: nobody can log in there`,
          hint: `${meant === undefined ? '' : `${meant} else `}set ${entry}.issuer in gateway.yaml, or ${missing.map((key) => `${entry}.${key}`).join(' and ')}`,
        },
      ]
    })

const isBuiltIn = (name: string): boolean => builtInProviders.some((known) => known === name)

const withArticle = (key: string): string => `${key.startsWith('a') ? 'an' : 'a'} ${key}`

/** A scheme that the sender does not use, and secrets that are none of the scheme. */
export const schemeWarnings = (
  { path, scheme, secretNames }: Webhook,
  env: NodeJS.ProcessEnv,
): Warning[] => {
  const header = scheme.name === 'hmac' ? scheme.forms[0]?.header : undefined
  const preset = presetSchemes.find(({ forms }) => forms.some((form) => form.header === header))
  // What GitHub, Linear and Sentry do can be said with hmac too.
  const isSaid = preset?.forms.every(
    ({ encoding, signs, check }) => encoding === 'hex' && signs === '{raw}' && check === 'mac',
  )
  const other: Warning[] =
    preset === undefined || isSaid
      ? []
      : [
          {
            code: 'scheme-differs',
            detail: `webhook ${path}: ${preset.name} does not sign ${header} as a plain HMAC, so nothing will fit`,
            hint: `set signature_scheme: ${preset.name} instead of signature_header and its neighbours`,
          },
        ]
  const faults = secretNames.flatMap((name): Warning[] =>
    listSecrets([name], env).flatMap((secret) => {
      const fault = secretFault(scheme, secret)
      return fault === undefined
        ? []
        : [
            {
              code: fault.unusable ? 'secret-unusable' : 'secret-shape',
              detail: `webhook ${path}: the value of ${name} ${fault.reason}${fault.unusable ? '; nothing can be verified with it' : ''}`,
              hint: `copy the secret again from the sender into ${name}`,
            },
          ]
    }),
  )
  return [...other, ...faults]
}

/** `{{event.number` without its end, and `{event.number}`: both stay in the prompt as they are. */
const meantAsPlaceholder = /\{\{\s*event\b[^{}\n]{0,40}\}?|\{event\.[\w.]{1,60}\}+/

/** What looks like a placeholder in a prompt and is none. */
export const templateWarnings = ({ path, prompt }: Pick<Webhook, 'path' | 'prompt'>): Warning[] =>
  prompt.parts.flatMap((part): Warning[] => {
    const [found] = (typeof part === 'string' && meantAsPlaceholder.exec(part)) || []
    return found === undefined
      ? []
      : [
          {
            code: 'placeholder-unfinished',
            detail: `webhook ${path}: ${found.trim()} in prompt_template is no placeholder, so it stays as it is`,
            hint: 'write {{event}} or {{event.<path>}}, with two braces on either side',
          },
        ]
  })
