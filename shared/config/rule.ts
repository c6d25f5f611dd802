import { DoorwardError } from '../errors.ts'
import type { Path } from '../paths.ts'
import {
  type ContextName,
  parsePrompt,
  parseTemplate,
  pathsIn,
  type PromptTemplate,
  type Template,
} from '../templates.ts'
import { didYouMean, type Rate } from '../text.ts'
import { isCliKind } from '../agents/clis.ts'
import { type Filter, parseFilter, valueConditions } from '../filter/conditions.ts'
import type { Agent } from './schema.ts'
import { parseTarget, type Target, targetPaths } from '../targets/targets.ts'
import type { RuleEntry } from './webhook-schema.ts'
import {
  parseWorkspace,
  usualContextBytes,
  workspacePaths,
  type WorkspaceSettings,
} from './workspace.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** What runs for a delivery to a webhook, compiled once. A definition without `rules` has one without a name. */
export type Rule = {
  readonly name: string | undefined
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
  readonly workspace: WorkspaceSettings | undefined
  /** What `{{context.<name>}}` of the prompt can be. */
  readonly context: readonly ContextName[]
  /** Bytes of each. */
  readonly contextLimit: number
  readonly targets: readonly Target[]
  /** Whether an empty answer is delivered. */
  readonly deliverEmpty: boolean
  /** Of the events with one key the newest runs. */
  readonly coalesce: Coalesce | undefined
  /** Whether a comment replaces the earlier one. */
  readonly update: boolean
  /** Whether a pull request may change the workflows of GitHub Actions. */
  readonly allowsWorkflows: boolean
  /** How many of its events may run in an hour or a day. */
  readonly maxRuns: Rate | undefined
  readonly acceptsRisk: boolean
}

export type Coalesce = {
  readonly key: Template
  readonly quietMs: number
  readonly atMostMs: number
  readonly running: 'finish' | 'cancel'
}

/** `pull_request`, `pull_request.opened`, or `invoice.*` for all that begin so. */
export type EventName = string

/** The fields of a rule that match the schema. */
export type ValidRuleFields = { readonly [Key in keyof RuleEntry]?: RuleEntry[Key] | undefined }

/** The parsed fields of one rule that are given and valid. */
export type ParsedRule = Partial<
  Pick<
    Rule,
    'on' | 'filter' | 'prompt' | 'workspace' | 'context' | 'targets' | 'coalesce' | 'update'
  >
>

/** Checks what a schema cannot in the fields of a rule, which stand at `place` of the file. */
export const checkRule = (
  entry: ValidRuleFields,
  place: YamlPath,
  agentNames: readonly string[] | undefined,
  file: YamlFile,
  problems: Problem[],
): ParsedRule => {
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

  const { on, agent, prompt_template: template, filter, deliver_to: deliverTo } = entry
  const [coalesce] = entry.coalesce ? parseCoalesce(entry.coalesce, attempt) : []
  const { workspace: code } = entry
  if (agent !== undefined && agentNames && !agentNames.includes(agent))
    at(
      ['agent'],
      `unknown agent "${agent}"`,
      didYouMean(agent, agentNames) ?? `known: ${agentNames.join(', ') || 'none'}`,
    )
  const [prompt] =
    template === undefined ? [] : attempt(['prompt_template'], () => parsePrompt(template))
  const conditions = parseFilter(filter ?? {}, {
    report: (key, reason, hint) => at(['filter', ...key], reason, hint),
    plainTextAt: (key) => file.plainTextAt([...place, 'filter', ...key]),
  })
  const [workspace] = code ? attempt(['workspace'], () => parseWorkspace(code)) : []
  const targets = [deliverTo ?? []]
    .flat()
    .flatMap((text, position) =>
      attempt(Array.isArray(deliverTo) ? ['deliver_to', position] : ['deliver_to'], () =>
        parseTarget(text),
      ),
    )
    .filter(({ kind }) => kind !== 'none')
  return {
    ...(on && { on: [on].flat() }),
    ...(filter && { filter: conditions }),
    ...(prompt && { prompt }),
    ...(workspace && { workspace }),
    ...(entry.context && { context: entry.context }),
    ...(deliverTo !== undefined && { targets }),
    ...(coalesce && { coalesce }),
    ...(entry.update !== undefined && { update: entry.update }),
  }
}

type CoalesceEntry = NonNullable<RuleEntry['coalesce']>

const parseCoalesce = (
  { key, quiet = 0, at_most: atMost, running = 'finish' }: CoalesceEntry,
  attempt: <Value>(key: YamlPath, read: () => Value) => Value[],
): Coalesce[] => {
  if (atMost !== undefined && atMost < quiet)
    attempt(['coalesce', 'at_most'], () => {
      throw new DoorwardError('config-invalid', 'shorter than quiet, so it would never be quiet')
    })
  return attempt(['coalesce', 'key'], () => ({
    key: parseTemplate(key),
    quietMs: quiet,
    atMostMs: atMost ?? Math.max(quiet, usualAtMostMs),
    running,
  }))
}

const usualAtMostMs = 300_000

/** What the templates of a rule read of a delivery. */
export const scopePaths = ({
  filter = [],
  prompt,
  workspace,
  targets = [],
  coalesce,
}: ParsedRule): Path[] => [
  ...valueConditions(filter).map(({ path }) => path),
  ...(prompt ? pathsIn(prompt) : []),
  ...(workspace ? workspacePaths(workspace) : []),
  ...(coalesce ? pathsIn(coalesce.key) : []),
  ...targets.flatMap(targetPaths),
]

/** Throws `internal` for a rule that was not checked. */
export const compileRule = (
  entry: RuleEntry & { readonly name?: string },
  agents: Readonly<Record<string, Agent>>,
  { on, prompt, filter = [], workspace, context = [], targets = [], coalesce }: ParsedRule,
): Rule => {
  const { agent: agentName = '' } = entry
  const agent = agents[agentName]
  if (!agent || !prompt)
    throw new DoorwardError('internal', `a rule with agent ${agentName} was not checked`)
  return {
    name: entry.name,
    on,
    filter,
    agentName,
    agent,
    prompt,
    values: getValues(entry, agent),
    workspace,
    context,
    contextLimit: entry.context_limit ?? usualContextBytes,
    targets,
    deliverEmpty: entry.deliver_empty ?? false,
    coalesce,
    update: entry.update ?? false,
    allowsWorkflows: entry.allow_workflows ?? false,
    maxRuns: entry.max_runs,
    acceptsRisk: entry.accept_risk ?? false,
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
