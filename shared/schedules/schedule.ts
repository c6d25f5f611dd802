import { findBudgetFault } from '../agents/budget.ts'
import {
  type ParsedRule,
  parseRule,
  scopePaths,
  toRule,
  type WebhookContext,
} from '../config/rule.ts'
import { checkRule, type Webhook } from '../config/webhook.ts'
import type { YamlPath } from '../config/yaml.ts'
import { DoorwardError } from '../errors.ts'
import { formatPath } from '../paths.ts'
import { toScheme } from '../signatures/described.ts'
import { contextNames, schedulePaths } from '../templates.ts'
import { formatDuration } from '../text.ts'
import type { ScheduleEntry } from './schema.ts'
import { parseTimes, type Times } from './times.ts'

/** One entry of schedules.yaml, compiled once. */
export type Schedule = {
  readonly name: string
  readonly enabled: boolean
  readonly times: Times
  /** Undefined for that of the machine. */
  readonly timezone: string | undefined
  readonly missed: 'run_once' | 'skip' | 'ask'
  readonly jitterMs: number
  readonly overlap: 'skip' | 'queue'
  readonly skipIf: readonly string[] | undefined
  readonly contextCommand: readonly string[] | undefined
  /** The definition by which its events are made; no address leads to it. */
  readonly webhook: Webhook
}

/** The name of its definition, and what its events have in place of the path of a webhook. */
export const toSchedulePath = (name: string): string => `schedule:${name}`

const shortestEveryMs = 60_000
const longestJitterMs = 3_600_000

type Report = (key: YamlPath, reason: string, hint?: string) => void

/** The schedules of entries that match the schema, by their place in the file. Reports all else, and leaves it out. */
export const readSchedules = (
  entries: ReadonlyMap<string, ScheduleEntry>,
  context: WebhookContext,
): Schedule[] => {
  const { file, problems } = context
  const names = [...entries.values()].map(({ name }) => name)
  return [...entries].flatMap(([index, entry], number) => {
    const before = problems.length
    const place: YamlPath = ['schedules', Number(index)]
    const at: Report = (key, reason, hint) =>
      problems.push(file.problemAt([...place, ...key], reason, hint))
    if (names.indexOf(entry.name) !== number) at(['name'], `there are two schedules ${entry.name}`)
    const times = readTimes(entry, at)
    const fields = toFields(entry)
    const parsed = parseRule(fields, place, context)
    checkSchedule(entry, parsed, at)
    checkRule(fields, parsed, at, () => [])
    const agent = context.agents.get(entry.agent ?? '')
    const fault = entry.budget && agent && findBudgetFault(agent, entry.budget)
    if (fault) at(['budget', fault.key], fault.reason, fault.hint)
    if (problems.length > before || !times) return []
    const rule = toRule(fields, context.agents, parsed)
    return rule ? [toSchedule(entry, times, { ...rule, name: undefined })] : []
  })
}

const readTimes = (entry: ScheduleEntry, at: Report): Times | undefined => {
  const keys = (['cron', 'every', 'at'] as const).filter((key) => entry[key] !== undefined)
  const [key, second] = keys
  if (key === undefined) {
    at([], 'it does not say when', 'write cron: "0 9 * * 1-5", every: 2h or at: 2026-12-01T09:00')
    return undefined
  }
  if (second !== undefined) {
    at([second], `there is ${key} already`, 'remove one of them')
    return undefined
  }
  if (entry.every !== undefined && entry.every < shortestEveryMs) {
    at(['every'], `must be at least ${formatDuration(shortestEveryMs)}`)
    return undefined
  }
  try {
    return parseTimes(entry)
  } catch (error) {
    if (!(error instanceof DoorwardError)) throw error
    at([error.about?.target ?? key], error.message, error.hint)
    return undefined
  }
}

/** The fields of a rule: `{{context.command}}` is a value like those of an event, and fenced as they are. */
const toFields = ({
  context,
  prompt_template: prompt,
  context_limit: limit,
  ...entry
}: ScheduleEntry) => {
  const names = contextNames.filter((name) => context?.includes(name))
  return {
    ...entry,
    signature_scheme: 'hmac' as const,
    ...(limit !== undefined && { context_limit: limit, max_value_length: limit }),
    ...(limit === undefined && { max_value_length: usualCommandLength }),
    ...(names.length > 0 && { context: names }),
    ...(prompt !== undefined && {
      prompt_template: prompt.replaceAll(/(\{[{%][^{}]*?)\bcontext\.command\b/g, '$1event.command'),
    }),
  }
}

const usualCommandLength = 200 * 1024

const checkSchedule = (entry: ScheduleEntry, parsed: ParsedRule, at: Report): void => {
  const { context = [], context_command: command, jitter = 0 } = entry
  if (jitter > longestJitterMs) at(['jitter'], 'must be at most 1h')
  if (context.includes('command') && !command)
    at(['context'], 'command needs a program', 'write context_command: [program, argument, …]')
  if (command && !context.includes('command'))
    at(['context_command'], 'nothing uses its output', 'write context: [command]')
  const reads = scopePaths(parsed).map(formatPath)
  const isKnown = (path: string) =>
    schedulePaths.includes(path) || (command !== undefined && path === 'event.command')
  const [other] = reads.filter((path) => !path.startsWith('context.') && !isKnown(path))
  if (other !== undefined)
    at(
      [],
      `{{${other}}}: no event begins a schedule`,
      `${schedulePaths.map((path) => `{{${path}}}`).join(', ')} and {{context.command}} can be used`,
    )
}

const toSchedule = (
  entry: ScheduleEntry,
  times: Times,
  rule: Webhook['rules'][number],
): Schedule => {
  const path = toSchedulePath(entry.name)
  return {
    name: entry.name,
    enabled: entry.enabled,
    times,
    timezone: entry.timezone,
    missed: entry.missed ?? 'run_once',
    jitterMs: entry.jitter ?? 0,
    overlap: entry.overlap ?? 'skip',
    skipIf: entry.skip_if,
    contextCommand: entry.context_command,
    webhook: {
      path,
      urlPaths: [path],
      enabled: entry.enabled,
      secretNames: [],
      verifyTokenNames: [],
      confirm: false,
      scheme: toScheme('hmac', { header: '', algorithm: 'sha256', prefix: '' }),
      dedupe: 'id',
      rateLimit: undefined,
      rules: [rule],
    },
  }
}
