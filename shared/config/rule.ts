import type { Budget } from '../agents/budget.ts'
import { DoorwardError } from '../errors.ts'
import type { Path } from '../paths.ts'
import {
  type ContextName,
  isFixed,
  parsePrompt,
  parseTemplate,
  pathsIn,
  type PromptTemplate,
  type Template,
} from '../templates.ts'
import { didYouMean, type Rate } from '../text.ts'
import { isCliKind } from '../agents/clis.ts'
import { type Filter, parseFilter, valueConditions } from '../filter/conditions.ts'
import { parseGlobs, type PathGlobs } from '../filter/paths.ts'
import {
  isOwnFile,
  ownChat,
  parseTarget,
  resolveTargetFile,
  type Target,
  targetPaths,
  withReads,
  publishesChange,
} from '../targets/targets.ts'
import type { Agent, Gateway } from './schema.ts'
import { type OutputSettings, toOutputTargets } from '../targets/outputs.ts'
import type { AllowedKind } from '../secret-kinds.ts'
import type { RuleEntry } from './webhook-schema.ts'
import { parseSession, type SessionSettings, toSession } from '../agents/session.ts'
import type { Who } from './who.ts'
import {
  parseWorkspace,
  type PublishSettings,
  usualContextBytes,
  workspacePaths,
  toPublish,
  type WorkspaceSettings,
} from './workspace.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** What runs for a delivery to a webhook, compiled once. A definition without `rules` has one without a name. */
export type Rule = {
  readonly name: string | undefined
  /** It matches nothing. */
  readonly isPaused?: true
  /** The events that run it; undefined means all. */
  readonly on: readonly EventName[] | undefined
  readonly filter: Filter
  readonly agentName: string
  readonly agent: Agent
  readonly prompt: PromptTemplate
  /** How values of the payload appear in the prompt. */
  readonly values: {
    readonly eventText: 'fenced' | 'plain'
    readonly maxValueLength: number | undefined
  }
  /** Of the files that its event changes one has to be among these. */
  readonly paths: PathGlobs | undefined
  /** Undefined for the default, which depends on the event. */
  readonly who?: Who
  /** The name that a comment or message has to have, in lower case and without the at sign. */
  readonly mention?: string
  /** Bots that may start it nevertheless. */
  readonly allowedBots?: readonly string[]
  /** Undefined for the default, which depends on the event. */
  readonly acknowledge?: boolean
  /** Whether a check of the bot follows its events. */
  readonly check?: boolean
  readonly workspace: WorkspaceSettings | undefined
  /** What `{{context.<name>}}` of the prompt can be. */
  readonly context: readonly ContextName[]
  /** Bytes of each. */
  readonly contextLimit: number
  readonly targets: readonly Target[]
  /** The requests that its answers may have; `targets` has the places. */
  readonly outputs?: OutputSettings
  /** What its events are called, in place of the subject's own title. */
  readonly title: Template | undefined
  /** Of the events with one key the newest runs. */
  readonly coalesce: Coalesce | undefined
  /** Its events with one key go on in one conversation. */
  readonly session?: SessionSettings
  /** Whether a comment replaces the earlier one. */
  readonly update: boolean
  /** The name of its check, where it is not that of the rule. */
  readonly checkName: string | undefined
  /** How and what of its agent's changes may be published. */
  readonly publish?: PublishSettings | undefined
  /** Kinds of secrets that its answers and changes may have. */
  readonly allowSecrets?: readonly AllowedKind[]
  /** The login of the bot whose deliveries it takes: used at GitHub where no other is named. */
  readonly bot?: string
  /** How many of its events may run in an hour or a day. */
  readonly maxRuns: Rate | undefined
  /** The budget of its runs. */
  readonly budget?: Budget
  readonly acceptsRisk: boolean
  /** Nothing is delivered. */
  readonly dryRun?: boolean
  /** As written; undefined for what gateway.yaml says. */
  readonly approve?: RuleEntry['approve']
}

export type Coalesce = {
  readonly key: Template
  readonly quietMs: number
  readonly atMostMs: number
  readonly running: 'finish' | 'cancel'
  /** What says which of two events is newer, in place of the sender's usual time. */
  readonly orderBy: Template | undefined
  /** The events that end what waits or runs. */
  readonly cancelOn: readonly EventName[] | undefined
}

/** `pull_request`, `pull_request.opened`, or `invoice.*` for all that begin so. */
export type EventName = string

/** The parsed fields of one rule that are given and valid. */
export type ParsedRule = Partial<
  Pick<
    Rule,
    | 'on'
    | 'filter'
    | 'prompt'
    | 'workspace'
    | 'context'
    | 'targets'
    | 'title'
    | 'coalesce'
    | 'update'
  >
> &
  Partial<PathGlobs> & { readonly session?: Pick<SessionSettings, 'key'> }

/** What the fields of webhooks.yaml are checked against. */
export type WebhookContext = {
  readonly file: YamlFile
  readonly problems: Problem[]
  readonly agents: ReadonlyMap<string, Agent>
  /** The names of all agents, also of those with problems; undefined where any name may be valid. */
  readonly agentNames: readonly string[] | undefined
  /** Undefined for a gateway.yaml with problems. */
  readonly gateway: Gateway | undefined
  /** Where files of the daemon are; without it any file may be a target. */
  readonly homeFolder: string | undefined
}

/** Parses the fields of a rule, which stand at `place` of the file, and reports what cannot be. */
export const parseRule = (
  entry: Partial<RuleEntry>,
  place: YamlPath,
  context: WebhookContext,
  scheme?: string,
): ParsedRule => {
  const { file, problems, agentNames } = context
  const at = (key: YamlPath, reason: string, hint?: string) =>
    problems.push(file.problemAt([...place, ...key], reason, hint))
  const attempt = <Value>(key: YamlPath, read: () => Value): Value[] => {
    try {
      return [read()]
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      at(key, error.message, error.hint)
      return []
    }
  }

  const { on, agent, prompt_template: template, filter, workspace, deliver_to: deliverTo } = entry
  if (agent !== undefined && agentNames && !agentNames.includes(agent))
    at(
      ['agent'],
      `unknown agent "${agent}"`,
      didYouMean(agent, agentNames) ?? `known: ${agentNames.join(', ') || 'none'}`,
    )
  const { title: titleText } = entry
  const [title] = titleText === undefined ? [] : attempt(['title'], () => parseTemplate(titleText))
  const [coalesce] = entry.coalesce ? parseCoalesce(entry.coalesce, attempt) : []
  const [session] = attempt(['session'], () => parseSession(entry))
  const [prompt] =
    template === undefined ? [] : attempt(['prompt_template'], () => parsePrompt(template))
  const conditions = parseFilter(filter ?? {}, {
    report: (key, reason, hint) => at(['filter', ...key], reason, hint),
    plainTextAt: (key) => file.plainTextAt([...place, 'filter', ...key]),
  })
  const [only] = attempt(['paths'], () => entry.paths && parseGlobs([entry.paths].flat(), false))
  const [ignored] = attempt(
    ['paths_ignore'],
    () => entry.paths_ignore && parseGlobs([entry.paths_ignore].flat(), true),
  )
  const [code] = workspace ? attempt(['workspace'], () => parseWorkspace(workspace)) : []
  attempt(['allow_files'], () => entry.allow_files && parseGlobs([entry.allow_files].flat(), false))
  const targets = [deliverTo ?? []].flat().flatMap((text, index) => {
    const key = Array.isArray(deliverTo) ? ['deliver_to', index] : ['deliver_to']
    return attempt(key, () => {
      const { gateway } = context
      const parsed = parseTarget(text, scheme)
      const target = gateway ? withReads(parsed, gateway.targets.http) : parsed
      const missing = findMissingSetting(target, context)
      if (missing) at(key, missing.reason, missing.hint)
      return target
    })
  })
  for (const target of toOutputTargets(entry.outputs, 'github')) {
    const missing = findMissingSetting(target, context)
    if (missing) at(['outputs'], missing.reason, missing.hint)
  }
  return {
    ...(on && { on: [on].flat() }),
    ...(filter && { filter: conditions }),
    ...(only && { only }),
    ...(ignored && { ignored }),
    ...(prompt && { prompt }),
    ...(code && { workspace: code }),
    ...(entry.context && { context: entry.context }),
    ...(deliverTo !== undefined && { targets: targets.filter(({ kind }) => kind !== 'none') }),
    ...(title && { title }),
    ...(coalesce && { coalesce }),
    ...(session && { session: { key: session } }),
    ...(entry.update !== undefined && { update: entry.update }),
  }
}

type MissingSetting = { readonly reason: string; readonly hint: string }

/** What gateway.yaml lacks for a target, and a file target that is one of doorward's own files. */
const findMissingSetting = (
  target: Target,
  { gateway, homeFolder }: WebhookContext,
): MissingSetting | undefined => {
  if (target.kind === 'file') {
    // A value of an event is only a part of a name and cannot leave the folder.
    const example = target.path.parts.map((part) => (typeof part === 'string' ? part : 'x'))
    const isOwn =
      homeFolder !== undefined &&
      isOwnFile(resolveTargetFile(example.join(''), homeFolder), homeFolder)
    if (!isOwn) return undefined
    return {
      reason: "one of doorward's own files, which answers must not overwrite",
      hint: 'choose another path: file:answers.md',
    }
  }
  if (!gateway) return undefined
  if (publishesChange(target) && gateway.queue.engine === 'nats')
    return {
      reason: 'not with queue.engine: nats, as the commit is on the machine of the agent',
      hint: 'let this webhook run on a machine with queue.engine: memory',
    }
  if (target.kind === 'telegram') {
    const { token_env: token, me } = gateway.targets.telegram
    const isOwnChat = target.address.source === ownChat
    const missing = token === undefined ? 'token_env' : isOwnChat && me === undefined ? 'me' : ''
    if (missing === '') return undefined
    return {
      reason: `targets.telegram.${missing} is missing in gateway.yaml`,
      hint:
        missing === 'me'
          ? 'write the number of your own chat'
          : 'name the variable with the token of your bot',
    }
  }
  if (target.kind === 'jira') {
    const { jira } = gateway.targets
    const missing = (['api_url', 'email', 'token_env'] as const).filter((key) => !jira[key])
    if (missing.length === 0) return undefined
    return {
      reason: `${missing.map((key) => `targets.jira.${key}`).join(', ')} missing in gateway.yaml`,
      hint: 'write the URL of your site at Jira Cloud, the mail address of your account, and the variable with its API token',
    }
  }
  if ((target.kind !== 'discord' && target.kind !== 'http') || !isFixed(target.address))
    return undefined
  const { kind } = target
  const { source: name } = target.address
  const known = Object.keys(gateway.targets[kind])
  if (known.includes(name)) return undefined
  const all = `known: ${known.join(', ')}`
  const define = `define it under targets.${kind}.${name} in gateway.yaml`
  return {
    reason: `unknown ${kind} target "${name}"`,
    hint: didYouMean(name, known) ?? (known.length > 0 ? all : define),
  }
}

type CoalesceEntry = NonNullable<RuleEntry['coalesce']>

const parseCoalesce = (
  entry: CoalesceEntry,
  attempt: <Value>(key: YamlPath, read: () => Value) => Value[],
): Coalesce[] => {
  const { key, quiet = 0, at_most: atMost, running = 'finish', order_by: order } = entry
  if (atMost !== undefined && atMost < quiet)
    attempt(['coalesce', 'at_most'], () => {
      throw new DoorwardError('config-invalid', 'shorter than quiet, so it would never be quiet')
    })
  const [orderBy] =
    order === undefined ? [] : attempt(['coalesce', 'order_by'], () => parseTemplate(order))
  return attempt(['coalesce', 'key'], () => ({
    key: parseTemplate(key),
    quietMs: quiet,
    atMostMs: atMost ?? Math.max(quiet, usualAtMostMs),
    running,
    orderBy,
    cancelOn: entry.cancel_on === undefined ? undefined : [entry.cancel_on].flat(),
  }))
}

const usualAtMostMs = 300_000

/** What the templates of a rule read of a delivery. */
export const scopePaths = ({
  filter = [],
  prompt,
  workspace,
  targets = [],
  title,
  coalesce,
  session,
}: ParsedRule): Path[] => [
  ...valueConditions(filter).map(({ path }) => path),
  ...(prompt ? pathsIn(prompt) : []),
  ...(workspace ? workspacePaths(workspace) : []),
  ...(title ? pathsIn(title) : []),
  ...(coalesce ? pathsIn(coalesce.key) : []),
  ...(coalesce?.orderBy ? pathsIn(coalesce.orderBy) : []),
  ...(session ? pathsIn(session.key) : []),
  ...targets.flatMap(targetPaths),
]

/** A rule of checked fields; undefined without a valid agent or prompt, which was reported. */
export const toRule = (
  entry: RuleEntry & { readonly name?: string },
  agents: ReadonlyMap<string, Agent>,
  {
    on,
    prompt,
    filter = [],
    only,
    ignored = [],
    workspace,
    context = [],
    targets = [],
    title,
    coalesce,
    session: keyed,
  }: ParsedRule,
): Rule | undefined => {
  const { agent: agentName = '' } = entry
  const agent = agents.get(agentName)
  if (!agent || !prompt) return undefined
  const session = toSession(entry, keyed?.key)
  return {
    name: entry.name,
    on,
    filter,
    agentName,
    agent,
    prompt,
    values: getValues(entry, agent),
    paths: only || ignored.length > 0 ? { only, ignored } : undefined,
    ...(entry.who !== undefined && { who: entry.who }),
    ...(entry.check && { check: true }),
    ...(entry.acknowledge !== undefined && { acknowledge: entry.acknowledge }),
    ...(entry.allowed_bots && { allowedBots: entry.allowed_bots }),
    ...(entry.mention !== undefined && { mention: entry.mention }),
    workspace,
    context,
    contextLimit: entry.context_limit ?? usualContextBytes,
    targets,
    ...(entry.outputs && { outputs: entry.outputs }),
    title,
    coalesce,
    ...(session && { session }),
    update: entry.update ?? false,
    checkName: entry.check_name,
    publish: toPublish(entry),
    ...(entry.allow_secrets && { allowSecrets: entry.allow_secrets }),
    maxRuns: entry.max_runs,
    ...(entry.budget && { budget: entry.budget }),
    acceptsRisk: entry.accept_risk ?? false,
    ...(entry.dry_run && { dryRun: true }),
    ...(entry.approve !== undefined && { approve: entry.approve }),
  }
}

const fencedLength = 4000

/** True for agents whose prompt a language model reads. */
export const isForModel = (kind: Agent['kind']): boolean => isCliKind(kind) || kind === 'openai'

/** Prompts for a language model are fenced unless the entry says otherwise. */
const getValues = (
  { event_text: given, max_value_length: maxLength }: RuleEntry,
  { kind }: Agent,
): Rule['values'] => {
  const eventText = given ?? (isForModel(kind) ? 'fenced' : 'plain')
  return {
    eventText,
    maxValueLength: maxLength ?? (eventText === 'fenced' ? fencedLength : undefined),
  }
}
