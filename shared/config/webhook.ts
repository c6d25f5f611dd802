import { findBudgetFault } from '../agents/budget.ts'
import { toScheme } from '../signatures/described.ts'
import type { SignatureScheme } from '../signatures/scheme.ts'
import { isAtSubject, publishesChange, replyKind, type Target } from '../targets/targets.ts'
import { headerNamesIn } from '../templates.ts'
import type { Rate } from '../text.ts'
import {
  type ParsedRule,
  parseRule,
  type Rule,
  scopePaths,
  toRule,
  type WebhookContext,
} from './rule.ts'
import { formatLogin } from './name-forms.ts'
import { checkOutputs, toOutputTargets } from '../targets/outputs.ts'
import { type Feed, isFeedProvider, toFeed } from '../sources/feed.ts'
import { checkDescribedFields, namesEvent, readDescribed } from './described-fields.ts'
import { checkSenderFields } from './sender-fields.ts'
import { checkSignatureFields, findSignatureHeaders, readScheme } from './signature-fields.ts'
import {
  type CatchUpSettings,
  checkSource,
  isHookEntry,
  toCatchUp,
  toSource,
  type WebhookSource,
} from './source.ts'
import { checkSession } from '../agents/session.ts'
import type { RuleEntry, WebhookEntry } from './webhook-schema.ts'
import { checkWho } from './who.ts'
import { checkContext } from './workspace.ts'
import type { YamlPath } from './yaml.ts'

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
  /** The part of a delivery that identifies its repetitions. */
  readonly dedupe: 'id' | 'body' | 'off'
  readonly rateLimit: Rate | undefined
  /** The hook that delivers to it, where `webhook connect` made it. */
  readonly source?: WebhookSource
  /** Where deliveries to it are caught up. */
  readonly catchUp?: CatchUpSettings
  /** The source of its events, if it takes no requests. */
  readonly feed?: Feed
  /** None in an entry that only takes deliveries so far, as that of a new bot. */
  readonly rules: readonly Rule[]
}

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
  'usage',
  'bots',
  'checks',
  'sessions',
  'schedules',
  'ui',
]

/**
 * The webhooks of entries that match the schema, by their place in the file. Reports what a schema cannot
 * check: agents, templates, filters, targets and paths, and fields that do not go together. A webhook with a
 * problem is left out.
 */
export const readWebhooks = (
  entries: ReadonlyMap<string, WebhookEntry>,
  context: WebhookContext,
): Webhook[] => {
  checkPaths(entries, context)
  return [...entries].flatMap(([index, entry]) => readWebhook(entry, Number(index), context) ?? [])
}

type Report = (key: YamlPath, reason: string, hint?: string) => void

const readWebhook = (
  written: WebhookEntry,
  index: number,
  context: WebhookContext,
): Webhook | undefined => {
  const entry = withSchemeOfFeed(written)
  const { file, problems, agents } = context
  const before = problems.length
  const place: YamlPath = ['webhooks', index]
  const at: Report = (key, reason, hint) =>
    problems.push(file.problemAt([...place, ...key], reason, hint))
  checkSignatureFields(entry, at)
  checkDescribedFields(entry, at)
  checkSenderFields(entry, at)
  // That of a bot takes deliveries before anything runs.
  if (entry.rules?.length === 0 && entry.source?.app === undefined)
    at(['rules'], 'must not be empty')
  if (entry.source) checkSource(entry.source, entry.signature_scheme, at)
  if (entry.source && !isHookEntry(entry.source))
    for (const key of ['secret_env', 'rate_limit', 'delivery_id_header'] as const)
      if (entry[key] !== undefined)
        at([key], 'has no effect: nothing is sent to this path', 'remove it')

  const { signature_scheme: scheme } = entry
  const shared = parseRule(entry, place, context, scheme)
  checkEvents(entry, shared, [], at)
  const alone = withOutputs(shared, entry)
  if (!entry.rules) checkRule(entry, alone, at, () => [])
  const parts = entry.rules?.map((rule, number) => {
    const key = ['rules', number]
    const own = parseRule(rule, [...place, ...key], context, scheme)
    checkEvents(entry, own, key, at)
    const fields = { ...entry, ...rule }
    const parsed = withOutputs({ ...shared, ...own }, fields)
    checkRule(fields, parsed, at, (field) =>
      rule[field] === undefined && entry[field] !== undefined ? [] : key,
    )
    return { fields, parsed }
  }) ?? [{ fields: entry, parsed: alone }]
  parts.forEach(({ fields: { budget, agent = '' } }, number) => {
    const known = agents.get(agent)
    const fault = budget && known && findBudgetFault(known, budget)
    const key = entry.rules?.[number]?.budget ? ['rules', number] : []
    if (fault) at([...key, 'budget', fault.key], fault.reason, fault.hint)
  })
  checkNames(entry.rules ?? [], place, context)
  checkScheme(
    entry,
    parts.map(({ parsed }) => parsed),
    at,
  )

  // What was reported could not be compiled.
  if (problems.length > before) return undefined
  const rules = parts.flatMap(({ fields, parsed }, number) => {
    const rule = toRule(fields, agents, parsed)
    const isPaused = entry.rules?.[number]?.enabled === false
    return rule ? [isPaused ? { ...rule, isPaused } : rule] : []
  })
  return rules.length === parts.length ? toWebhook(entry, rules) : undefined
}

/** Nothing signs the events of a feed: its scheme says what they look like. */
const withSchemeOfFeed = (entry: WebhookEntry): WebhookEntry => {
  const { signature_scheme: scheme, source } = entry
  return source && isFeedProvider(source.provider) && scheme === 'hmac'
    ? { ...entry, signature_scheme: source.provider }
    : entry
}

/** `outputs` adds targets to those of `deliver_to`. */
const withOutputs = (
  parsed: ParsedRule,
  { outputs, signature_scheme: scheme }: Pick<WebhookEntry, 'outputs' | 'signature_scheme'>,
): ParsedRule =>
  outputs
    ? { ...parsed, targets: [...(parsed.targets ?? []), ...toOutputTargets(outputs, scheme)] }
    : parsed

/** Checks what the signature of a webhook has to do with its rules and its times. */
const checkScheme = (entry: WebhookEntry, rules: readonly ParsedRule[], at: Report): void => {
  const { signature_scheme: name, signed = '' } = entry
  const paths = rules.flatMap(scopePaths)
  if (paths.some(([root]) => root === 'schedule'))
    at([], 'only schedules.yaml can have {{schedule.…}}')
  const read = headerNamesIn(paths).map((header) => header.toLowerCase())
  const { field, headers } = findSignatureHeaders(entry)
  for (const header of headers)
    if (read.includes(header))
      at([field], `headers.${header} holds a signature: no template or filter can read it`)
  rules.forEach(({ targets = [] }, index) => {
    const kind = targets.map(replyKind).find((one) => one !== undefined && one !== name)
    if (kind === undefined) return
    at(
      entry.deliver_to === undefined ? ['rules', index, 'deliver_to'] : ['deliver_to'],
      `${kind}:reply answers where an event of ${kind.replace(/^./, (letter) => letter.toUpperCase())} came from`,
      `write signature_scheme: ${kind}, or name ${kind === 'slack' ? 'a channel' : 'an issue'}`,
    )
  })
  const facts = getFacts(name)
  const signsTime = facts.toleranceSeconds !== undefined || signed.includes('{timestamp}')
  if (entry.timestamp_tolerance !== undefined && !signsTime)
    at(['timestamp_tolerance'], `signature_scheme ${name} signs no time`, 'remove it')
  if (entry.late !== undefined && facts.lateSeconds === undefined)
    at(
      ['late'],
      `no sender of signature_scheme ${name} is known to send again with an old time`,
      signsTime ? 'write timestamp_tolerance, or remove it' : 'remove it',
    )
}

/** `on` and `cancel_on` need a scheme that says where its sender names the event. */
const checkEvents = (
  entry: WebhookEntry,
  { on, coalesce }: ParsedRule,
  place: YamlPath,
  at: Report,
): void => {
  const keys = [...(on ? [['on']] : []), ...(coalesce?.cancelOn ? [['coalesce', 'cancel_on']] : [])]
  const { signature_scheme: name } = entry
  if (getFacts(name).event || namesEvent(entry)) return
  for (const key of keys)
    at(
      [...place, ...key],
      `signature_scheme ${name} does not say where its sender names the event`,
      'set signature_scheme to the name of the sender, such as github, or event_header or event_field, or write a filter',
    )
}

/** What the table says of a scheme. */
const getFacts = (name: WebhookEntry['signature_scheme']): SignatureScheme =>
  toScheme(name, { header: '', algorithm: 'sha256', prefix: '' })

/**
 * Checks that a rule has what it needs, and that its fields go together. `placeOf` says where a field is: in
 * the rule, or at its webhook.
 */
export const checkRule = (
  fields: RuleEntry & Pick<WebhookEntry, 'signature_scheme' | 'source'>,
  parsed: ParsedRule,
  at: Report,
  placeOf: (field: keyof RuleEntry) => YamlPath,
): void => {
  const report = (field: keyof RuleEntry, reason: string, hint?: string) =>
    at([...placeOf(field), field], reason, hint)
  const { name: scheme } = getFacts(fields.signature_scheme)
  if (fields.acknowledge === true && !acknowledged.includes(scheme))
    report(
      'acknowledge',
      `nothing is marked at a sender of signature_scheme ${scheme}`,
      'remove it',
    )
  if (fields.check && fields.source?.app === undefined)
    report(
      'check',
      'only a bot may make checks',
      'doorward bot create github; or leave it out, and write github-check: in deliver_to',
    )
  checkWho(fields, scheme, report)
  checkSession(fields, report)
  checkOutputs(fields, scheme, report)
  for (const field of ['agent', 'prompt_template'] as const)
    if (fields[field] === undefined)
      report(
        field,
        'missing',
        placeOf(field).length > 0
          ? 'write it here, or at the webhook for all its rules'
          : undefined,
      )
  const { update = false, targets, workspace, prompt } = parsed
  // A template that cannot be parsed was reported.
  const isParsed = !fields.workspace === !workspace && !fields.prompt_template === !prompt
  if (isParsed) checkContext(parsed, report)
  if (!targets) return
  const publishing = targets.find(publishesChange)
  if (publishing && workspace?.access !== 'write')
    report(
      isAtSubject(publishing) ? 'outputs' : 'deliver_to',
      `${publishing.kind}: needs a workspace that the agent may change`,
      'write workspace: { repo: …, ref: …, access: write }',
    )
  for (const key of ['commit', 'pull_request'] as const)
    if (fields[key] && !(key === 'commit' ? publishing : targets.some(opensPull)))
      report(
        key,
        'no target of this rule is pull-request:',
        'remove it, or write pull-request:<owner>/<repo> in deliver_to',
      )
  if (update && !targets.some(isEdited))
    report(
      'update',
      'no target of this rule is github: or slack:, whose messages it edits',
      targets.some(({ kind }) => kind === 'github-review' || kind === 'gitlab-review')
        ? 'remove it: a review replaces the earlier one of its rule by itself'
        : 'remove it, or write github:<owner>/<repo>#<number> or slack:#channel in deliver_to',
    )
  if (
    fields.check_name !== undefined &&
    !fields.check &&
    !targets.some(({ kind }) => kind === 'github-check')
  )
    report(
      'check_name',
      'no target of this rule is github-check:, whose check it names',
      'remove it, or write github-check:<owner>/<repo>@<commit> in deliver_to',
    )
}

/** A reply in the thread of a review at GitHub is not edited. */
const isEdited = (target: Target): boolean =>
  target.kind === 'slack' || (target.kind === 'github' && !replyKind(target))

/** Senders whose messages take reactions. */
const acknowledged = ['github', 'slack', 'telegram']

const opensPull = ({ kind }: { readonly kind: string }): boolean => kind === 'pull-request'

const checkNames = (
  rules: NonNullable<WebhookEntry['rules']>,
  place: YamlPath,
  { file, problems }: WebhookContext,
): void => {
  const names = rules.map(({ name }) => name)
  names.forEach((name, index) => {
    const first = names.indexOf(name)
    if (first === index) return
    const key = (at: number) => [...place, 'rules', at, 'name']
    const { line } = file.problemAt(key(first), '')
    const where = `the first is in line ${line}`
    problems.push(file.problemAt(key(index), `there are two rules ${name}`, where))
  })
}

const toWebhook = (entry: WebhookEntry, rules: Webhook['rules']): Webhook => {
  const hook = entry.source && isHookEntry(entry.source) ? entry.source : undefined
  const catchUp = hook && toCatchUp(hook)
  const feed = entry.source && toFeed(entry.source)
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
    ...(hook && { source: toSource(hook, entry.path) }),
    ...(catchUp && { catchUp }),
    ...(feed && { feed }),
    rules: rules.map((rule) => withBot(rule, entry.source?.app)),
  }
}

/** What a bot is told of, it answers and fetches itself. */
const withBot = (rule: Rule, app: string | undefined): Rule => {
  if (app === undefined) return rule
  const bot = formatLogin({ provider: 'github', account: app })
  const { workspace } = rule
  return { ...rule, bot, workspace: workspace && { ...workspace, login: workspace.login ?? bot } }
}

const getScheme = (entry: WebhookEntry): SignatureScheme => {
  const { delivery_id_header: header, timestamp_tolerance: tolerance, late } = entry
  const { issuer, claims } = entry
  const { audience = entry.webhook_id, service_account: account = entry.client_id } = entry
  const scheme = readScheme(entry)
  const expected = {
    ...(issuer !== undefined && { issuer }),
    ...(audience !== undefined && { audience }),
    ...(account && { account }),
    ...(claims && { claims }),
  }
  return {
    ...scheme,
    ...readDescribed(entry),
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
const checkPaths = (
  entries: ReadonlyMap<string, WebhookEntry>,
  { file, problems }: WebhookContext,
): void => {
  const taken = new Map<string, { readonly path: string; readonly line: number }>()
  for (const [index, { path }] of entries) {
    const at = (reason: string, hint: string) =>
      file.problemAt(['webhooks', Number(index), 'path'], reason, hint)
    const segment = path.split('/')[1] ?? ''
    if (reservedSegments.includes(segment))
      problems.push(at(`/${segment} is reserved`, `use /webhook${path}`))
    const urlPaths = getUrlPaths(path)
    const clash = urlPaths.find((urlPath) => taken.has(urlPath)) ?? ''
    const other = taken.get(clash)
    if (other)
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
  }
}
