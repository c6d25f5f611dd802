import { DoorwardError } from '../errors.ts'
import { toScheme } from '../signatures/described.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import { headerNamesIn } from '../templates.ts'
import type { Rate } from '../text.ts'
import { getValueAt } from './problems.ts'
import { checkRule, compileRule, type ParsedRule, type Rule, scopePaths } from './rule.ts'
import type { Agent } from './schema.ts'
import { checkSignatureFields, findSignatureHeaders, readScheme } from './signature-fields.ts'
import { type WebhookEntry, webhookSchema } from './webhook-schema.ts'
import { isSlackReply } from './targets.ts'
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
  const entries = Array.isArray(list) ? list.map(parseValidFields) : []
  checkPaths(entries, file, problems)
  return entries.map((entry, index) => checkEntry(entry, index, agentNames, file, problems))
}

type ValidFields = { readonly [Key in keyof WebhookEntry]?: WebhookEntry[Key] | undefined }

/** The fields of an entry that match the schema. */
const parseValidFields = (value: unknown): ValidFields =>
  Object.fromEntries(
    Object.entries(webhookSchema.shape).map(([key, schema]) => {
      const given = getValueAt(value, [key])
      return [key, given === undefined ? undefined : schema.safeParse(given).data]
    }),
  )

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
  const rules = [checkRule(entry, ['webhooks', index], agentNames, file, problems)]
  const read = headerNamesIn(rules.flatMap(scopePaths)).map((name) => name.toLowerCase())
  const { field, headers } = findSignatureHeaders(entry)
  for (const header of headers)
    if (read.includes(header))
      at([field], `headers.${header} holds a signature: no template or filter can read it`)
  checkTimes(entry, at)
  const answersSlack = rules.some(({ targets }) => targets.some(isSlackReply))
  if (answersSlack && entry.signature_scheme !== 'slack')
    at(
      ['deliver_to'],
      'slack:reply answers where an event of Slack came from',
      'write signature_scheme: slack, or name a channel',
    )
  return { rules }
}

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
  const facts = toScheme(name, { header: '', algorithm: 'sha256', prefix: '' })
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
  const compile = (rule: ParsedRule) => compileRule(entry, agents, rule)
  return {
    path: entry.path,
    urlPaths: getUrlPaths(entry.path),
    enabled: entry.enabled,
    secretNames: [entry.secret_env ?? []].flat(),
    verifyTokenNames: [entry.verify_token_env ?? entry.secret_env ?? []].flat(),
    confirm: entry.confirm,
    scheme: getScheme(entry),
    dedupe: entry.dedupe ?? 'id',
    rateLimit: entry.rate_limit,
    rules: [compile(first), ...more.map(compile)],
  }
}

const getScheme = (entry: WebhookEntry): SignatureScheme => {
  const { delivery_id_header: header, timestamp_tolerance: tolerance, late } = entry
  return {
    ...readScheme(entry),
    // Replaces the other places, which identify something else.
    ...(header !== undefined && { deliveryId: { headers: [header] } }),
    ...(tolerance !== undefined && { toleranceSeconds: tolerance / 1000 }),
    ...(late !== undefined && { lateSeconds: late / 1000 }),
  }
}

const getUrlPaths = (path: string): string[] =>
  path.startsWith('/webhook/') ? [path] : [path, `/webhook${path}`]

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
