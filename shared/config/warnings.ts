import { networkWarnings } from '../network/variables.ts'
import { scheduleWarnings } from '../schedules/warnings.ts'
import { findUnknownEvent } from '../signatures/sender-events.ts'
import { startsWithEvent } from '../paths.ts'
import { getKeySource } from '../signatures/scheme.ts'
import { contextsIn, literalText, pathsIn } from '../templates.ts'
import { didYouMean } from '../text.ts'
import { says } from '../agents/budget.ts'
import { describePermission } from '../agents/schema.ts'
import { hasSessions } from '../agents/session.ts'
import {
  canReadLogin,
  describeReach,
  describeWriting,
  getNetworkMode,
  runsProgram,
  wantsSandbox,
} from '../agents/tools.ts'
import { valueConditions } from '../filter/conditions.ts'
import { approveWarnings } from '../approve/warnings.ts'
import { needsApproval, toApprove } from '../approve/approve.ts'
import {
  aboutRule,
  describeRule,
  enabledDefinitions,
  enabledRules,
} from '../schedules/definitions.ts'
import { listSecrets } from './environment.ts'
import type { Config } from './load.ts'
import { builtInProviders } from './name-forms.ts'
import { localAgents, queueWarnings } from './queue.ts'
import { hasToken } from '../sources/feed.ts'
import { isForModel, type Rule } from './rule.ts'
import type { Agent } from './schema.ts'
import { createPathCheck } from '../samples/warnings.ts'
import { proofFaults, schemeFaults } from './signature-warnings.ts'
import { targetFaults } from '../targets/warnings.ts'
import { sentKinds } from '../targets/schema.ts'
import { agentVariables, describeUnset, describeUnsetSecret } from './variables.ts'
import { type Fault, faultAbout, toWarning, warn, type Warning } from './warning.ts'
import type { Webhook } from './webhook.ts'

type Facts = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
}

/** The warnings of a valid configuration. They never contain a secret's value. */
export const collectWarnings = (config: Config, env: NodeJS.ProcessEnv): Warning[] => {
  const facts = { config, env }
  const webhooks = config.webhooks.filter(({ enabled }) => enabled)
  const checks = [...ruleChecks, createPathCheck()]
  return [
    ...limitWarnings(config),
    ...budgetWarnings(config),
    ...queueWarnings(config, env),
    ...webhooks.flatMap((webhook) => secretFaults(webhook, facts)).map((fault) => toWarning(fault)),
    ...webhooks.flatMap((webhook) => [
      ...webhookChecks.flatMap((check) => check(webhook, facts)).map((fault) => toWarning(fault)),
      ...webhook.rules.flatMap((rule) =>
        checks
          .flatMap((check) => check(rule, webhook))
          .map((fault) => toWarning(fault, describeRule(webhook.path, rule))),
      ),
    ]),
    ...[...keyFaults(facts), ...targetFaults(config, env)].map((fault) => toWarning(fault)),
    ...providerWarnings(config),
    ...riskWarnings(config),
    ...approveWarnings(config),
    ...scheduleWarnings(config),
    ...networkWarnings(env),
  ]
}

/** A budget of all runs in dollars, with agents that do not say what they cost. */
const budgetWarnings = (config: Config): Warning[] => {
  const { budget } = config.gateway
  const isInDollars = [budget?.day, budget?.month].some((most) => most && 'usd' in most)
  if (!isInDollars) return []
  const silent = enabledRules(config).filter(
    ({ agent }) => isForModel(agent.kind) && !says(agent).usd,
  )
  const names = [...new Set(silent.map(({ agentName }) => agentName))].join(', ')
  return names === ''
    ? []
    : warn(
        'budget-not-counted',
        `budget is in dollars, and does not count agents that do not say what they cost: ${names}`,
        'use tokens, as 2m tokens, in gateway.yaml or for those agents',
        { file: 'config/gateway.yaml' },
      )
}

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
export const secretFaults = (webhook: Webhook, { env }: Facts): Fault[] => {
  const { path, scheme, secretNames, verifyTokenNames, feed } = webhook
  const fault = faultAbout({ webhook: path })
  if (feed) {
    const missing = hasToken(feed) ? listUnset([feed.tokenEnv], env) : []
    return missing.length === 0
      ? []
      : fault('secret-unset', `${areUnset(missing)}; no event comes`, describeUnset(missing))
  }
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
          describeUnsetSecret(webhook, unset),
        )),
    ...(tokens.length === 0
      ? []
      : fault(
          'secret-partly-unset',
          `${areUnset(tokens)}; the challenge of its sender is not answered`,
          describeUnset(tokens),
        )),
  ]
}

/** Unset variables of agents that rules of enabled webhooks use. */
export const keyFaults = ({ config, env }: Facts): Fault[] => {
  const agents = new Map(localAgents(config).map(({ agentName, agent }) => [agentName, agent]))
  return [...agents].flatMap(([agentName, agent]) => {
    const unset = listUnset(agentVariables(agent), env)
    if (unset.length === 0) return []
    return faultAbout({ agent: agentName })(
      'agent-key-unset',
      `${areUnset(unset)}; ${withoutVariable(agent)}`,
      describeUnset(unset),
    )
  })
}

const listUnset = (names: readonly string[], env: NodeJS.ProcessEnv): string[] =>
  names.filter((name) => listSecrets([name], env).length === 0)

const areUnset = (names: readonly string[]): string =>
  `${names.join(', ')} ${names.length === 1 ? 'is' : 'are'} unset or empty`

/** What an agent does while its variable is unset. */
const withoutVariable = ({ kind }: Pick<Agent, 'kind'>): string =>
  kind === 'openai' || kind === 'http' ? 'it cannot be asked' : 'it runs without'

/**
 * Untrusted text, an agent that may act or read outside a sandbox, and a target outside this machine: together
 * a way in. `bare` names agents whose sandbox is missing here.
 */
export const riskWarnings = (config: Config, bare: ReadonlySet<string> = new Set()): Warning[] =>
  enabledDefinitions(config).flatMap(({ path, rules }) =>
    rules.flatMap((rule) => {
      const approve = toApprove(rule.approve, config.gateway.approve)
      // You see what leaves before it does.
      const isSeen = ({ kind }: Rule['targets'][number]) =>
        rule.dryRun === true || (approve !== undefined && needsApproval(approve, kind))
      const unseen = { ...rule, targets: rule.targets.filter((target) => !isSeen(target)) }
      const warnings = riskWarning(describeRule(path, rule), unseen, bare)
      const about = { ...aboutRule(path), agent: rule.agentName }
      return warnings.map((warning) => ({ ...warning, about }))
    }),
  )

const riskWarning = (name: string, rule: Rule, bare: ReadonlySet<string>): Warning[] => {
  const { acceptsRisk, agentName, agent, prompt, targets, workspace } = rule
  const hasEventText =
    pathsIn(prompt).some(([root]) => root !== 'schedule') || workspace !== undefined
  const sent = targets.filter(({ kind }) => (sentKinds as readonly string[]).includes(kind))
  if (acceptsRisk || !hasEventText) return []
  if (sent.length === 0) return networkRisk(name, rule)
  const where = sent.map(({ text }) => text).join(', ')
  const gives = `${name} gives text that strangers can write to agent ${agentName}, which may`
  const sends = `and sends its answer out of this machine (${where})`
  const otherwise =
    'deliver to log, notify:desktop or file:, or leave {{event…}} out of the prompt; accept_risk: true in its entry silences this'
  const permission = describePermission(agent) ?? describeWriting(agent, workspace)
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

/** An agent that runs programs reaches other machines without a target, unless its network is limited. */
const networkRisk = (name: string, { agentName, agent }: Rule): Warning[] => {
  const permission = describePermission(agent)
  if (permission === undefined || !runsProgram(agent) || getNetworkMode(agent) !== 'open') return []
  return warn(
    'dangerous-combination',
    `${name} gives text that strangers can write to agent ${agentName}, which may change files or run programs on its own (${permission}) and reaches every host of the network: the author of that text can make the agent send out what it finds, also where its answer stays here`,
    `write ${agent.kind === 'command' ? 'network: { allow: [hosts] }' : 'network: model'} for the agent, or take ${permission} from it; accept_risk: true in its entry silences this`,
  )
}

/** The hint for a filter path with the prefix of a placeholder. */
export const prefixHint = (path: string): string =>
  `write ${path.slice('event.'.length)}: paths of a filter have no event. in front`

/** Every rule that matches runs: two of the same kind run the agent twice. */
const twinFaults = ({ path, rules }: Webhook): Fault[] =>
  rules.flatMap((rule, index) => {
    const twin = rules.slice(0, index).find((other) => toRun(other) === toRun(rule))
    if (!twin) return []
    return faultAbout({ webhook: path })(
      'rules-equal',
      `the rules ${twin.name} and ${rule.name} run the same agent with the same prompt for the same events, so it runs twice`,
      'remove one, or give one of them the targets of both as a list in deliver_to',
    )
  })

const toRun = ({ on, filter, agentName, prompt }: Rule): string =>
  JSON.stringify([on, filter, agentName, prompt.source])

/** Further checks of each enabled webhook. */
const webhookChecks: readonly ((webhook: Webhook, facts: Facts) => Fault[])[] = [
  (webhook, { env }) => schemeFaults(webhook, env),
  (webhook, { config }) => proofFaults(webhook, config),
  twinFaults,
]

/** `{{event.number` without its end, and `{event.number}`. */
const brokenPlaceholder = /\{\{\s*event\b[^{}\n]{0,40}\}?|\{event\.[\w.]{1,60}\}+/g

/** The checks of each rule of an enabled webhook. */
const ruleChecks: readonly ((rule: Rule, webhook: Webhook) => Fault[])[] = [
  // Text of a prompt that looks like a placeholder but is not one.
  ({ prompt }, { path }) =>
    [...literalText(prompt.source).matchAll(brokenPlaceholder)].flatMap(([found]) =>
      faultAbout({ webhook: path })(
        'placeholder-unfinished',
        `${found.trim()} in prompt_template is not a placeholder, so it stays as it is`,
        'write {{event}} or {{event.<path>}}, with two braces on either side',
      ),
    ),

  // Paths of a filter that begin with `event.`, as in a prompt. Payloads of Slack do have a field `event`, and
  // so do those from which the prompt reads one.
  ({ filter, prompt }, { path, scheme }) =>
    scheme.name === 'slack' || pathsIn(prompt).some(([, first]) => first === 'event')
      ? []
      : valueConditions(filter)
          .filter(({ path: [root, ...names] }) => root === 'event' && startsWithEvent(names))
          .flatMap(({ text }) =>
            faultAbout({ webhook: path })(
              'filter-path-prefix',
              `${text} in filter never matches, unless the payload has a field event`,
              prefixHint(text),
            ),
          ),

  // Words of a filter that match nothing.
  ({ filter }, { path }) =>
    valueConditions(filter)
      .flatMap(({ doubts }) => doubts)
      .flatMap(({ code, what, hint }) => faultAbout({ webhook: path })(code, what, hint)),

  // Names in `on` and `cancel_on` that the sender does not use.
  ({ on = [], coalesce }, { path, scheme }) =>
    [...on, ...(coalesce?.cancelOn ?? [])].flatMap((event) => {
      const unknown = findUnknownEvent(scheme.name, event)
      if (!unknown) return []
      const { meant } = unknown
      return faultAbout({ webhook: path })(
        'event-unknown',
        `${on.includes(event) ? 'on' : 'cancel_on'} has ${event}, which is no event of ${scheme.name} that is known here`,
        meant === undefined
          ? `see the events at ${scheme.source}; one that is new runs nevertheless`
          : `did you mean "${meant}"?`,
      )
    }),

  // Places that strangers could choose, and labels that set off other programs.
  ({ outputs }, { path, secretNames, source }) => {
    const fault = faultAbout({ webhook: path })
    if (!outputs) return []
    return [
      ...(secretNames.length > 0 || source !== undefined
        ? []
        : fault(
            'outputs-unsigned',
            'outputs does nothing for events without a signature, as anyone could choose their place',
            'add secret_env to its entry in webhooks.yaml',
          )),
      ...(outputs.labels === undefined || outputs.labels.allowed
        ? []
        : fault(
            'outputs-any-label',
            'outputs lets the agent set any label of the repository, also those that start other programs',
            'write outputs: { labels: { allowed: [bug, area/*] } }',
          )),
    ]
  },

  // Strangers could go on with a conversation, or no agent keeps one.
  ({ session, agent: { kind }, agentName }, { path, scheme, secretNames, source, feed }) => {
    const fault = faultAbout({ webhook: path })
    if (!session) return []
    const isProven = secretNames.length > 0 || source !== undefined || feed !== undefined
    return [
      ...(isProven || getKeySource(scheme)
        ? []
        : fault(
            'session-unsigned',
            'session goes on with a conversation for anyone who knows its address and guesses the key',
            'add secret_env to its entry in webhooks.yaml',
          )),
      ...(hasSessions(kind)
        ? []
        : fault(
            'session-unused',
            `session does nothing: agent ${agentName} is of kind ${kind}, which has no conversations`,
            'use an agent of kind claude, codex, gemini or opencode, or remove session',
          )),
    ]
  },

  // A context that is made for nothing.
  ({ context, prompt }, { path }) =>
    context
      .filter((name) => !contextsIn(prompt).includes(name))
      .flatMap((name) =>
        faultAbout({ webhook: path })(
          'context-unused',
          `context has ${name}, and the prompt has no {{context.${name}}}`,
          `write {{context.${name}}} where it belongs in prompt_template, or take ${name} out of context`,
        ),
      ),
]

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
