import { z } from 'zod'
import { DoorwardError } from '../errors.ts'
import { toScheme } from '../signatures/described.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import { headerNamesIn } from '../templates.ts'
import type { Rate } from '../text.ts'
import { getValueAt } from './problems.ts'
import { checkRule, compileRule, type ParsedRule, type Rule, scopePaths } from './rule.ts'
import type { Agent } from './schema.ts'
import { checkSenderFields } from './sender-fields.ts'
import { checkSignatureFields, findSignatureHeaders, readScheme } from './signature-fields.ts'
import {
  type CatchUpSettings,
  checkSource,
  toCatchUp,
  toSource,
  type WebhookSource,
} from './source.ts'
import { ruleSchema, type WebhookEntry, webhookSchema } from './webhook-schema.ts'
import { isSlackReply } from '../targets/targets.ts'
import { checkContext } from './workspace.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** One webhook definition, compiled once so that requests parse nothing of it. */
export type Webhook = {
  readonly path: string
  /** The exact URL paths: `path`, and `/webhook<path>` if that differs. */
  readonly urlPaths: readonly string[]
  readonly enabled: boolean
  readonly secretNames: readonly string[]
  /** Variables with the token that proves the sender of an unsigned challenge. */
  readonly verifyTokenNames: readonly string[]
  /** The owner agrees to the first request of the sender: a secret, or a subscription. */
  readonly confirm: boolean
  readonly scheme: SignatureScheme
  /** What identifies repeated deliveries. */
  readonly dedupe: 'id' | 'body' | 'off'
  readonly rateLimit: Rate | undefined
  /** The hook that delivers to it, where `webhook connect` made it. */
  readonly source?: WebhookSource
  /** Where deliveries to it are caught up. */
  readonly catchUp?: CatchUpSettings
  readonly rules: readonly [Rule, ...Rule[]]
}

/** The rules of all enabled definitions. */
export const enabledRules = ({ webhooks }: { readonly webhooks: readonly Webhook[] }): Rule[] =>
  webhooks.filter(({ enabled }) => enabled).flatMap(({ rules }) => rules)

/** First parts of paths that belong to the local API. */
export const reservedSegments = [
  'oauth',
  'events',
  'webhooks',
  'status',
  'metrics',
  'health',
  'daemon',
  'workspaces',
]

/**
 * Checks what a schema cannot in the entries of `webhooks.yaml`: agents, templates, filters, targets and
 * paths. Each field on its own, so that a problem does not hide another. Without `agentNames` any agent is
 * valid.
 */
export const checkDefinitions = (
  file: YamlFile,
  agentNames: readonly string[] | undefined,
  problems: Problem[],
): ParsedEntry[] => {
  const list = getValueAt(file.value, ['webhooks'])
  const entries = Array.isArray(list)
    ? list.map((entry) => parseValidFields(webhookSchema.shape, entry))
    : []
  checkPaths(entries, file, problems)
  return entries.map((entry, index) => checkEntry(entry, index, agentNames, file, problems))
}

type ValidFields = { readonly [Key in keyof WebhookEntry]?: WebhookEntry[Key] | undefined }

/** The fields that match their schemas. */
const parseValidFields = <Shape extends z.ZodRawShape>(shape: Shape, value: unknown) =>
  Object.fromEntries(
    Object.entries(shape).map(([key, schema]) => {
      const given = getValueAt(value, [key])
      return [key, given === undefined ? undefined : z.safeParse(schema, given).data]
    }),
  ) as { readonly [Key in keyof Shape]?: z.output<Shape[Key]> | undefined }

/** The parsed rules of one entry. */
type ParsedEntry = { readonly rules: readonly ParsedRule[] }

const checkEntry = (
  entry: ValidFields,
  index: number,
  agentNames: readonly string[] | undefined,
  file: YamlFile,
  problems: Problem[],
): ParsedEntry => {
  const at = (key: YamlPath, reason: string, hint?: string) =>
    problems.push(file.problemAt(['webhooks', index, ...key], reason, hint))
  checkSignatureFields(entry, at)
  const given = getValueAt(file.value, ['webhooks', index, 'signature_scheme'])
  // For a misspelt sender nothing is known.
  if (given === undefined || entry.signature_scheme !== undefined) checkSenderFields(entry, at)
  const rules = checkRules(entry, index, agentNames, file, problems)
  checkScheme(entry, rules, at)
  const { source, signature_scheme: scheme } = entry
  if (source) checkSource(source, scheme, at)
  return { rules }
}

const checkRules = (
  entry: ValidFields,
  index: number,
  agentNames: readonly string[] | undefined,
  file: YamlFile,
  problems: Problem[],
): readonly ParsedRule[] => {
  const place = ['webhooks', index]
  const list = getValueAt(file.value, [...place, 'rules'])
  const shared = checkRule(entry, place, agentNames, file, problems)
  if (shared.on) checkEvents(entry, place, file, problems)
  if (!Array.isArray(list)) {
    checkNeeded([place], file, problems)
    checkOutputs(shared, place, place, file, problems)
    checkTogether(shared, [place], file, problems)
    return [shared]
  }
  const rules = list.map((rule: unknown, number) => {
    const at = [...place, 'rules', number]
    const fields = parseValidFields(ruleSchema.shape, rule)
    checkNeeded([at, place], file, problems)
    const own = checkRule(fields, at, agentNames, file, problems)
    if (own.on) checkEvents(entry, at, file, problems)
    const merged = { ...shared, ...own }
    checkOutputs(
      merged,
      own.update === undefined ? place : at,
      own.targets === undefined ? place : at,
      file,
      problems,
    )
    checkTogether(merged, [at, place], file, problems)
    return merged
  })
  checkNames(list, [...place, 'rules'], file, problems)
  return rules
}

/** Checks what the rules of a webhook need of its signature. */
const checkScheme = (
  entry: ValidFields,
  rules: readonly ParsedRule[],
  at: (key: YamlPath, reason: string, hint?: string) => void,
): void => {
  const read = headerNamesIn(rules.flatMap(scopePaths)).map((name) => name.toLowerCase())
  const { field, headers } = findSignatureHeaders(entry)
  for (const header of headers)
    if (read.includes(header))
      at([field], `headers.${header} holds a signature: no template or filter can read it`)
  checkTimes(entry, at)
  const replying = rules.findIndex(({ targets = [] }) => targets.some(isSlackReply))
  if (replying >= 0 && entry.signature_scheme !== 'slack')
    at(
      entry.deliver_to === undefined ? ['rules', replying, 'deliver_to'] : ['deliver_to'],
      'slack:reply answers where an event of Slack came from',
      'write signature_scheme: slack, or name a channel',
    )
}

/** `on` needs a scheme that says where its sender names the event. */
const checkEvents = (
  { signature_scheme: valid }: ValidFields,
  place: YamlPath,
  file: YamlFile,
  problems: Problem[],
): void => {
  const given = getValueAt(file.value, [...place.slice(0, 2), 'signature_scheme'])
  // The schema reports a scheme that there is not.
  if (given !== undefined && valid === undefined) return
  const name = valid ?? 'hmac'
  if (getFacts(name).event) return
  problems.push(
    file.problemAt(
      [...place, 'on'],
      `signature_scheme ${name} does not say where its sender names the event`,
      'set signature_scheme to the name of the sender, such as github, or write a filter',
    ),
  )
}

/** Checks fields that may stand in a rule or at its webhook; a fault is reported where the field is. */
const checkTogether = (
  rule: ParsedRule,
  places: readonly YamlPath[],
  file: YamlFile,
  problems: Problem[],
): void => {
  const isGiven = (field: string) => (place: YamlPath) =>
    getValueAt(file.value, [...place, field]) !== undefined
  // The schema, or the template, reports what is wrong with one of them.
  if (fieldsOfContext.some((field) => places.some(isGiven(field)) && !rule[parsedAs[field]])) return
  checkContext(rule, (field, reason, hint) => {
    const place = places.find(isGiven(field)) ?? places[0] ?? []
    problems.push(file.problemAt([...place, field], reason, hint))
  })
}

const parsedAs = { context: 'context', prompt_template: 'prompt', workspace: 'workspace' } as const
const fieldsOfContext = ['context', 'prompt_template', 'workspace'] as const

/** What a rule cannot do without stands in it, or at its webhook. */
const checkNeeded = (
  [place = [], ...others]: readonly YamlPath[],
  file: YamlFile,
  problems: Problem[],
): void => {
  // The schema reports what is no map.
  if (!isMap(getValueAt(file.value, place))) return
  const hint = others.length > 0 ? 'write it here, or at the webhook for all its rules' : undefined
  for (const field of ['agent', 'prompt_template'])
    if (![place, ...others].some((one) => getValueAt(file.value, [...one, field]) !== undefined))
      problems.push(file.problemAt([...place, field], 'missing', hint))
}

/** Only comments on GitHub are edited, and only a worktree that an agent may change becomes a pull request. */
const checkOutputs = (
  { update = false, targets, workspace }: ParsedRule,
  updatePlace: YamlPath,
  targetPlace: YamlPath,
  file: YamlFile,
  problems: Problem[],
): void => {
  if (!targets) return
  if (targets.some(({ kind }) => kind === 'pull-request') && workspace?.access !== 'write')
    problems.push(
      file.problemAt(
        [...targetPlace, 'deliver_to'],
        'pull-request: needs a workspace that the agent may change',
        'write workspace: { repo: …, ref: …, access: write }',
      ),
    )
  if (!update || targets.some(({ kind }) => kind === 'github')) return
  problems.push(
    file.problemAt(
      [...updatePlace, 'update'],
      'no target of this rule is github:, whose comments it edits',
      'remove it, or write github:<owner>/<repo>#<number> in deliver_to',
    ),
  )
}

const isMap = (value: unknown): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const checkNames = (
  rules: readonly unknown[],
  place: YamlPath,
  file: YamlFile,
  problems: Problem[],
): void => {
  const names = rules.map((rule) => getValueAt(rule, ['name']))
  names.forEach((name, index) => {
    const first = names.indexOf(name)
    if (typeof name !== 'string' || first === index) return
    const { line } = file.problemAt([...place, first, 'name'], '')
    problems.push(
      file.problemAt(
        [...place, index, 'name'],
        `there are two rules ${name}`,
        `the first is in line ${line}`,
      ),
    )
  })
}

/** What the table says of a scheme. */
const getFacts = (name: NonNullable<ValidFields['signature_scheme']>): SignatureScheme =>
  toScheme(name, { header: '', algorithm: 'sha256', prefix: '' })

/** The fields about a signed time go with schemes that sign one. */
const checkTimes = (
  {
    signature_scheme: name = 'hmac',
    signed = '',
    timestamp_tolerance: tolerance,
    late,
  }: ValidFields,
  at: (key: YamlPath, reason: string, hint: string) => void,
): void => {
  const facts = getFacts(name)
  const signsTime = facts.toleranceSeconds !== undefined || signed.includes('{timestamp}')
  if (tolerance !== undefined && !signsTime)
    at(['timestamp_tolerance'], `signature_scheme ${name} signs no time`, 'remove it')
  if (late !== undefined && facts.lateSeconds === undefined)
    at(
      ['late'],
      `no sender of signature_scheme ${name} is known to send again with an old time`,
      signsTime ? 'write timestamp_tolerance, or remove it' : 'remove it',
    )
}

/** Throws `internal` for an entry that was not checked. */
export const compileEntry = (
  entry: WebhookEntry,
  agents: Readonly<Record<string, Agent>>,
  checked: ParsedEntry | undefined,
): Webhook => {
  const [first, ...more] = checked?.rules ?? []
  if (!first) throw new DoorwardError('internal', `webhook ${entry.path} was not checked`)
  const { rules = [] } = entry
  const catchUp = entry.source && toCatchUp(entry.source)
  const compile = (parsed: ParsedRule, index: number) =>
    compileRule({ ...entry, ...rules[index] }, agents, parsed)
  return {
    path: entry.path,
    urlPaths: getUrlPaths(entry.path),
    enabled: entry.enabled,
    secretNames: [entry.public_key_env ?? entry.secret_env ?? []].flat(),
    verifyTokenNames: [entry.verify_token_env ?? entry.secret_env ?? []].flat(),
    confirm: entry.confirm,
    scheme: getScheme(entry),
    dedupe: entry.dedupe ?? 'id',
    rateLimit: entry.rate_limit,
    ...(entry.source && { source: toSource(entry.source, entry.path) }),
    ...(catchUp && { catchUp }),
    rules: [compile(first, 0), ...more.map((rule, index) => compile(rule, index + 1))],
  }
}

const getScheme = (entry: WebhookEntry): SignatureScheme => {
  const { delivery_id_header: header, timestamp_tolerance: tolerance, late } = entry
  const { audience, service_account: account } = entry
  const scheme = readScheme(entry)
  const expected = { ...(audience !== undefined && { audience }), ...(account && { account }) }
  return {
    ...scheme,
    forms: scheme.forms.map((form) => ({ ...form, ...expected })),
    // Replaces the other places, which identify something else.
    ...(header !== undefined && { deliveryId: { headers: [header] } }),
    ...(tolerance !== undefined && { toleranceSeconds: tolerance / 1000 }),
    ...(late !== undefined && { lateSeconds: late / 1000 }),
  }
}

const getUrlPaths = (path: string): string[] =>
  path.startsWith('/webhook/') ? [path] : [path, getPublicPath(path)]

/** The path that senders are given. */
export const getPublicPath = (path: string): string =>
  path.startsWith('/webhook/') ? path : `/webhook${path}`

/** Finds reserved first segments, and two definitions with one URL path. */
const checkPaths = (entries: readonly ValidFields[], file: YamlFile, problems: Problem[]): void => {
  const taken = new Map<string, { readonly path: string; readonly line: number }>()
  entries.forEach(({ path }, index) => {
    if (path === undefined) return
    const at = (reason: string, hint: string) =>
      file.problemAt(['webhooks', index, 'path'], reason, hint)
    const segment = path.split('/')[1] ?? ''
    if (reservedSegments.includes(segment))
      problems.push(at(`/${segment} is reserved`, `use /webhook${path}`))
    const urlPaths = getUrlPaths(path)
    const clash = urlPaths.find((urlPath) => taken.has(urlPath))
    const other = clash === undefined ? undefined : taken.get(clash)
    if (clash !== undefined && other)
      problems.push(
        other.path === path
          ? at(`path ${path} is defined twice`, `first in line ${other.line}`)
          : at(
              `two definitions would be served at ${clash}`,
              `the other is path ${other.path} in line ${other.line}`,
            ),
      )
    const { line } = at('', '')
    for (const urlPath of urlPaths) if (!taken.has(urlPath)) taken.set(urlPath, { path, line })
  })
}
