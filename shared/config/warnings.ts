import { networkWarnings } from '../network/warnings.ts'
import { findUnknownEvent } from '../sender-events.ts'
import { startsWithEvent } from '../paths.ts'
import { getKeySource } from '../signatures/scheme.ts'
import { contextsIn, literalText, pathsIn } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { describePermission } from '../agents/schema.ts'
import { canReadLogin, describeReach, runsProgram, wantsSandbox } from '../agents/tools.ts'
import { valueConditions } from '../filter/conditions.ts'
import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import { builtInProviders } from './name-forms.ts'
import { localAgents, queueWarnings } from './queue.ts'
import type { Rule } from './rule.ts'
import type { Agent } from './schema.ts'
import { proofFaults, schemeFaults } from './signature-warnings.ts'
import { targetFaults } from '../targets/warnings.ts'
import { sentKinds } from '../targets/targets.ts'
import { agentVariables, describeUnset, describeUnsetSecret, usedVariables } from './variables.ts'
import { type Fault, toWarning, warn, warnAbout, type Warning } from './warning.ts'
import type { Webhook } from './webhook.ts'

/** The warnings of a valid configuration. They never contain a secret's value. */
export const collectWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const enabled = config.webhooks.filter((webhook) => webhook.enabled)
  const used = usedVariables(config)
  return [
    ...limitWarnings(config),
    ...queueWarnings(config, env),
    ...enabled.flatMap((webhook) => secretFaults(webhook, used, env).map(toWarning)),
    ...enabled.flatMap((webhook) =>
      warnAbout({ webhook: webhook.path }, [
        ...[...schemeFaults(webhook, env), ...proofFaults(webhook, config)].map(toWarning),
        ...webhook.rules.flatMap((rule) => [
          ...templateWarnings(describeRule(webhook.path, rule), rule),
          ...filterWarnings(webhook, rule),
          ...eventWarnings(webhook, rule),
          ...contextWarnings(describeRule(webhook.path, rule), rule),
        ]),
        ...twinWarnings(webhook),
      ]),
    ),
    ...keyFaults(localAgents(config), used, env).map(toWarning),
    ...targetFaults(config, env).map(toWarning),
    ...providerWarnings(config),
    ...riskWarnings(config),
    ...networkWarnings(env),
  ]
}

/** `/webhook/github review`, as events show it. */
const describeRule = (path: string, { name }: Pick<Rule, 'name'>): string =>
  name === undefined ? path : `${path} ${name}`

/** A body that never fits is answered 503, and its sender retries forever. */
const limitWarnings = ({ gateway }: Config): Warning[] =>
  gateway.server.body_limit <= gateway.queue.max_bytes
    ? []
    : warn(
        'body-limit-too-large',
        'server.body_limit is larger than queue.max_bytes: the largest bodies never fit',
        'raise queue.max_bytes or lower server.body_limit in gateway.yaml',
      )

/** Secrets of a webhook that it does not have, or that are unset. */
export const secretFaults = (
  webhook: Webhook,
  used: readonly string[],
  env: NodeJS.ProcessEnv,
): Fault[] => {
  const { path, scheme, secretNames, verifyTokenNames } = webhook
  const fault = (code: string, what: string, hint: string): Fault[] => [
    { code, about: { webhook: path }, what, hint },
  ]
  if (getKeySource(scheme)) return []
  if (secretNames.length === 0)
    return fault(
      'webhook-unsigned',
      'it has no secret_env: anyone who knows its address can run the agent',
      'add secret_env to its entry in webhooks.yaml',
    )
  const tokens = listUnset(verifyTokenNames, env).filter((name) => !secretNames.includes(name))
  const unset = listUnset(secretNames, env)
  const all = unset.length === secretNames.length
  return [
    ...(unset.length === 0
      ? []
      : fault(
          all ? 'secret-unset' : 'secret-partly-unset',
          `${areUnset(unset)}${all ? '; its deliveries are answered 503' : ''}`,
          describeUnsetSecret(webhook, unset, env, used),
        )),
    ...(tokens.length === 0
      ? []
      : fault(
          'secret-partly-unset',
          `${areUnset(tokens)}; the challenge of its sender is not answered`,
          describeUnset(tokens, env, used),
        )),
  ]
}

/** Unset variables of agents that rules of enabled webhooks use. */
export const keyFaults = (
  rules: readonly Pick<Rule, 'agentName' | 'agent'>[],
  used: readonly string[],
  env: NodeJS.ProcessEnv,
): Fault[] => {
  const agents = new Map(rules.map(({ agentName, agent }) => [agentName, agent]))
  return [...agents].flatMap(([agentName, agent]) => {
    const unset = listUnset(agentVariables(agent), env)
    if (unset.length === 0) return []
    return [
      {
        code: 'agent-key-unset',
        about: { agent: agentName },
        what: `${areUnset(unset)}; ${withoutVariable(agent)}`,
        hint: describeUnset(unset, env, used),
      },
    ]
  })
}

const listUnset = (names: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  names.filter((name) => listSecrets([name], env).length === 0)

const areUnset = (names: readonly string[]): string =>
  `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} unset or empty`

/** What an agent does while its variable is unset. */
export const withoutVariable = ({ kind }: Pick<Agent, 'kind'>): string =>
  kind === 'openai' || kind === 'http' ? 'it cannot be asked' : 'it runs without'

/**
 * Untrusted text, an agent that may act or read outside a sandbox, and a target outside this machine: together
 * a way in. `bare` names agents whose sandbox is missing here.
 */
export const riskWarnings = (config: Config, bare: ReadonlySet<string> = new Set()): Warning[] =>
  config.webhooks.flatMap(({ path, enabled, rules }) =>
    enabled
      ? rules.flatMap((rule) =>
          warnAbout(
            { webhook: path, agent: rule.agentName },
            riskWarning(describeRule(path, rule), rule, bare),
          ),
        )
      : [],
  )

const riskWarning = (path: string, rule: Rule, bare: ReadonlySet<string>): Warning[] => {
  const { acceptsRisk, agentName, agent, prompt, targets, workspace } = rule
  const hasEventText = pathsIn(prompt).length > 0 || workspace !== undefined
  const sent = targets.filter(({ kind }) => (sentKinds as readonly string[]).includes(kind))
  if (acceptsRisk || !hasEventText || sent.length === 0) return []
  const where = sent.map(({ text }) => text).join(', ')
  const gives = `webhook ${path} gives text that strangers can write to agent ${agentName}, which may`
  const sends = `and sends its answer out of this machine (${where})`
  const otherwise =
    'deliver to log, notify:desktop or file:, or leave {{event…}} out of the prompt; accept_risk: true in the webhook silences this'
  const permission = describePermission(agent)
  if (permission !== undefined)
    return warn(
      'dangerous-combination',
      `${gives} change files or run programs on its own (${permission}), ${sends}: the author of that text can make the agent act and send out what it finds`,
      `take ${permission} from the agent, ${otherwise}`,
    )
  const reach = describeReach(agent)
  if (reach === undefined) return []
  if (runsProgram(agent) && wantsSandbox(agent, workspace !== undefined) && !bare.has(agentName))
    return canReadLogin(agent)
      ? warn(
          'dangerous-combination',
          `${gives} read its own login in the sandbox (${agent.kind}, ${reach}), ${sends}: the author of that text can make the agent send out the login`,
          `use claude, gemini or opencode with tools: read, which keep to their folder, ${otherwise}`,
        )
      : []
  return warn(
    'dangerous-combination',
    `${gives} read files of yours, as it is in no sandbox (${reach}), ${sends}: the author of that text can make the agent send out what it finds`,
    `give the agent a sandbox (sandbox: required), or take ${reach} from it, ${otherwise}`,
  )
}

/** The hint for a filter path with the prefix of a placeholder. */
export const prefixHint = (path: string): string =>
  `write ${path.slice('event.'.length)}: paths of a filter have no event. in front`

/**
 * Words of a filter that match nothing, and its paths that begin with `event.`, as in a prompt. Payloads of Slack do have a field `event`, as
 * do those from which the prompt reads it.
 */
const filterWarnings = (
  { path, scheme }: Pick<Webhook, 'path' | 'scheme'>,
  { name, filter, prompt }: Pick<Rule, 'name' | 'filter' | 'prompt'>,
): Warning[] => {
  const conditions = valueConditions(filter)
  const doubts = conditions.flatMap((condition) =>
    condition.doubts.flatMap(({ code, what, hint }) =>
      warn(code, `webhook ${path}: ${what}`, hint),
    ),
  )
  const hasField = scheme.name === 'slack' || pathsIn(prompt).some(([, first]) => first === 'event')
  if (hasField) return doubts
  return conditions
    .filter(({ path: [root, ...names] }) => root === 'event' && startsWithEvent(names))
    .flatMap(({ text }) =>
      warn(
        'filter-path-prefix',
        `webhook ${describeRule(path, { name })}: ${text} in filter never matches, unless the payload has a field event`,
        prefixHint(text),
      ),
    )
    .concat(doubts)
}

/** Names in `on` that the sender does not use. */
const eventWarnings = (
  webhook: Pick<Webhook, 'path' | 'scheme'>,
  rule: Pick<Rule, 'name' | 'on'>,
): Warning[] =>
  (rule.on ?? []).flatMap((event) => {
    const unknown = findUnknownEvent(webhook.scheme.name, event)
    if (!unknown) return []
    const { meant } = unknown
    return warn(
      'event-unknown',
      `webhook ${describeRule(webhook.path, rule)}: on has ${event}, which is no event of ${webhook.scheme.name} that is known here`,
      meant === undefined
        ? `see the events at ${webhook.scheme.source}; one that is new runs nevertheless`
        : `did you mean "${meant}"?`,
    )
  })

/** Every rule that matches runs: two of the same kind run the agent twice. */
const twinWarnings = ({ path, rules }: Pick<Webhook, 'path' | 'rules'>): Warning[] =>
  rules.flatMap((rule, index) => {
    const twin = rules.slice(0, index).find((other) => toRun(other) === toRun(rule))
    if (!twin) return []
    return warn(
      'rules-equal',
      `webhook ${path}: the rules ${twin.name} and ${rule.name} run the same agent with the same prompt for the same events, so it runs twice`,
      'remove one, or give one of them the targets of both as a list in deliver_to',
    )
  })

const toRun = ({ on, filter, agentName, prompt }: Rule): string =>
  JSON.stringify([on, filter, agentName, prompt.source])

/** A context that is made for nothing. */
const contextWarnings = (path: string, { context, prompt }: Rule): Warning[] => {
  const used = contextsIn(prompt)
  return context
    .filter((name) => !used.includes(name))
    .flatMap((name) =>
      warn(
        'context-unused',
        `webhook ${path}: context has ${name}, and the prompt has no {{context.${name}}}`,
        `write {{context.${name}}} where it belongs in prompt_template, or take ${name} out of context`,
      ),
    )
}

/** Providers of gateway.yaml without the endpoints of a login. */
const providerWarnings = ({ gateway }: Config): Warning[] =>
  Object.entries(gateway.providers)
    .filter(([name]) => !(builtInProviders as readonly string[]).includes(name))
    .flatMap(([name, provider]) => {
      const endpoints = ['authorization_endpoint', 'token_endpoint'] as const
      const missing = endpoints.filter((key) => provider[key] === undefined)
      if (provider.issuer !== undefined || missing.length === 0) return []
      const entry = `providers.${name}`
      const meant = didYouMean(name, builtInProviders)
      const keys = missing.map((key) => `${key.startsWith('a') ? 'an' : 'a'} ${key}`)
      return warn(
        'provider-incomplete',
        `provider ${name} has neither an issuer nor ${keys.join(' and ')}: no login is possible`,
        `${meant === undefined ? '' : `${meant} else `}set ${entry}.issuer in gateway.yaml, or ${missing.map((key) => `${entry}.${key}`).join(' and ')}`,
        { provider: name },
      )
    })

/** `{{event.number` without its end, and `{event.number}`. */
const brokenPlaceholder = /\{\{\s*event\b[^{}\n]{0,40}\}?|\{event\.[\w.]{1,60}\}+/g

/** Text of a prompt that looks like a placeholder but is not one. */
export const templateWarnings = (path: string, { prompt }: Pick<Rule, 'prompt'>): Warning[] =>
  [...literalText(prompt.source).matchAll(brokenPlaceholder)].flatMap(([found]) =>
    warn(
      'placeholder-unfinished',
      `webhook ${path}: ${found.trim()} in prompt_template is not a placeholder, so it stays as it is`,
      'write {{event}} or {{event.<path>}}, with two braces on either side',
    ),
  )
