import { isCliKind } from './agent-clis.ts'
import { type Agent, type WebhookEntry, webhookSchema } from './schema.ts'
import { parsePath, type Path } from '../paths.ts'
import { parseTemplate, type Template } from '../templates.ts'
import { DoorwardError } from '../errors.ts'
import { didYouMean, type Rate } from '../text.ts'
import { getValueAt } from './problems.ts'
import { type SignatureScheme, toScheme } from '../signature-schemes.ts'
import { type Target, parseTarget } from './targets.ts'
import type { Problem, YamlFile, YamlPath } from './yaml.ts'

/** One webhook definition, compiled once so that requests parse nothing of it. */
export type Webhook = {
  readonly path: string
  /** The exact URL paths: `path`, and `/webhook<path>` if that differs. */
  readonly urlPaths: readonly string[]
  readonly enabled: boolean
  readonly agentName: string
  readonly agent: Agent
  readonly prompt: Template
  /** How values of the payload appear in the prompt. */
  readonly values: {
    readonly eventText: 'fenced' | 'plain'
    readonly maxValueLength: number | undefined
  }
  readonly acceptsRisk: boolean
  readonly secretNames: readonly string[]
  readonly scheme: SignatureScheme
  readonly filter: readonly FilterCondition[]
  readonly targets: readonly Target[]
  /** Whether an empty answer is delivered. */
  readonly deliverEmpty: boolean
  /** What identifies repeated deliveries. */
  readonly dedupe: 'id' | 'body' | 'off'
  readonly rateLimit: Rate | undefined
}

export type FilterCondition = {
  readonly text: string
  readonly path: Path
  readonly expected: readonly string[]
}

const reserved = ['oauth', 'events', 'webhooks', 'status', 'metrics', 'health', 'daemon']

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

/** The fields of `signature_scheme: hmac`. */
const hmacFields = ['signature_header', 'signature_algo', 'signature_prefix'] as const

/** The parsed parts of one entry, as far as they are valid. */
export type ParsedEntry = Pick<Webhook, 'filter' | 'targets'> & {
  readonly prompt: Template | undefined
}

const checkEntry = (
  entry: ValidFields,
  index: number,
  agentNames: readonly string[] | undefined,
  file: YamlFile,
  problems: Problem[],
): ParsedEntry => {
  const at = (key: YamlPath, reason: string, hint?: string) =>
    problems.push(file.problemAt(['webhooks', index, ...key], reason, hint))
  const attempt = <Value>(key: YamlPath, read: () => Value): Value[] => {
    try {
      return [read()]
    } catch (error) {
      if (!(error instanceof DoorwardError)) throw error
      at(key, error.message, error.hint)
      return []
    }
  }

  const { agent, prompt_template: template, filter = {}, deliver_to: deliverTo = [] } = entry
  if (agent !== undefined && agentNames && !agentNames.includes(agent))
    at(
      ['agent'],
      `unknown agent "${agent}"`,
      didYouMean(agent, agentNames) ?? `known: ${agentNames.join(', ') || 'none'}`,
    )
  const { signature_scheme: scheme = 'hmac' } = entry
  if (scheme !== 'hmac')
    for (const field of hmacFields)
      if (entry[field] !== undefined)
        at(
          [field],
          `cannot be combined with signature_scheme ${scheme}, which defines it`,
          'remove it, or write signature_scheme: hmac',
        )
  const [prompt] =
    template === undefined ? [] : attempt(['prompt_template'], () => parseTemplate(template))
  const conditions = Object.entries(filter).flatMap(([text, expected]) => {
    for (const [place, value] of [expected].flat().entries()) {
      const key = Array.isArray(expected) ? ['filter', text, place] : ['filter', text]
      const written = file.plainTextAt(['webhooks', index, ...key])
      // A version, short hash or postcode would match another one.
      if (typeof value === 'number' && written !== undefined && written !== String(value))
        at(
          key,
          `YAML reads ${written} as the number ${value}`,
          `write '${written}' in quotes, or ${value}`,
        )
    }
    return attempt(['filter', text], () => ({
      text,
      path: parsePath(text),
      expected: [expected].flat().map(String),
    }))
  })
  const targets = [deliverTo]
    .flat()
    .flatMap((text, position) =>
      attempt(Array.isArray(deliverTo) ? ['deliver_to', position] : ['deliver_to'], () =>
        parseTarget(text),
      ),
    )
    .filter(({ kind }) => kind !== 'none')
  return { prompt, filter: conditions, targets }
}

/** Throws `internal` for an entry that was not checked. */
export const compileEntry = (
  entry: WebhookEntry,
  agents: Readonly<Record<string, Agent>>,
  checked: ParsedEntry | undefined,
): Webhook => {
  const agent = agents[entry.agent]
  if (!agent || !checked?.prompt)
    throw new DoorwardError('internal', `webhook ${entry.path} was not checked`)
  return {
    path: entry.path,
    urlPaths: getUrlPaths(entry.path),
    enabled: entry.enabled,
    agentName: entry.agent,
    agent,
    prompt: checked.prompt,
    values: getValues(entry, agent),
    acceptsRisk: entry.accept_risk,
    secretNames: [entry.secret_env ?? []].flat(),
    scheme: getScheme(entry),
    filter: checked.filter,
    targets: checked.targets,
    deliverEmpty: entry.deliver_empty,
    dedupe: entry.dedupe ?? 'id',
    rateLimit: entry.rate_limit,
  }
}

const getScheme = (entry: WebhookEntry): SignatureScheme => {
  const scheme = toScheme(entry.signature_scheme, {
    header: entry.signature_header,
    algorithm: entry.signature_algo,
    prefix: entry.signature_prefix,
  })
  const header = entry.delivery_id_header
  // Replaces the other places, which identify something else.
  return header === undefined ? scheme : { ...scheme, deliveryId: { headers: [header] } }
}

const fencedLength = 4000

/** True for agents whose prompt a language model reads. */
export const isForModel = (kind: Agent['kind']): boolean => isCliKind(kind) || kind === 'openai'

/** Prompts for a language model are fenced unless the entry says otherwise. */
const getValues = (
  { event_text: given, max_value_length: maxLength }: WebhookEntry,
  { kind }: Agent,
): Webhook['values'] => {
  const eventText = given ?? (isForModel(kind) ? 'fenced' : 'plain')
  return {
    eventText,
    maxValueLength: maxLength ?? (eventText === 'fenced' ? fencedLength : undefined),
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
    if (reserved.includes(segment))
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
