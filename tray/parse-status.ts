import type {
  EventRecord,
  Machine,
  ProviderSummary,
  Status,
  StatusProblem,
  TargetResult,
  TokenSummary,
  WebhookSummary,
} from '../shared/api.ts'
import { eventStates, stages } from '../shared/event-states.ts'

/*
 * Parses what a daemon of any version sends. Unknown fields are ignored, and an unknown value becomes the
 * known one that claims least. The result is safe to show: texts and lists are bounded, times are valid.
 * Parsed by hand, because zod would take a tenth of the tray's memory limit.
 */

const parseTarget = (value: unknown): TargetResult | undefined => {
  const { target: read, state, attempts, code, detail } = getFields(value)
  const target = text(read)
  if (target === undefined) return undefined
  return compact<TargetResult>({
    target,
    state: parseOneOf(['done', 'failed'], state) ?? 'waiting',
    attempts: count(attempts),
    code: text(code),
    detail: text(detail),
  })
}

const parseEvent = (value: unknown): EventRecord | undefined => {
  const fields = getFields(value)
  const id = name(fields['id'])
  const receivedAt = time(fields['receivedAt'])
  if (id === undefined || receivedAt === undefined) return undefined
  const { queuedMs, agentMs, deliverMs } = getFields(fields['durations'])
  return compact<EventRecord>({
    id,
    kind: parseOneOf(['webhook', 'oauth'], fields['kind']) ?? 'daemon',
    webhook: text(fields['webhook']) ?? null,
    rule: text(fields['rule']),
    receivedAt,
    // For an unknown state: the event was at least accepted.
    state: parseOneOf(eventStates, fields['state']) ?? 'accepted',
    stage: parseOneOf(stages, fields['stage']),
    code: text(fields['code']),
    detail: text(fields['detail']),
    deliveryId: text(fields['deliveryId']),
    size: number(fields['size']),
    agent: text(fields['agent']) ?? null,
    machine: text(fields['machine']),
    target: text(fields['target']),
    attempts: count(fields['attempts']),
    durations: compact({
      queuedMs: number(queuedMs),
      agentMs: number(agentMs),
      deliverMs: number(deliverMs),
    }),
    targets: parseList(fields['targets'], parseTarget, 100),
    resultPreview: text(fields['resultPreview']),
  })
}

const parseAccount = (value: unknown): ProviderSummary['account'] => {
  const fields = getFields(value)
  const id = text(fields['id'])
  const name = text(fields['name'])
  return id === undefined || name === undefined ? null : { id, name }
}

const parseProvider = (value: unknown): ProviderSummary | undefined => {
  const fields = getFields(value)
  const provider = name(fields['provider'])
  if (provider === undefined) return undefined
  const account = parseAccount(fields['account'])
  return {
    provider,
    clientKnown: yes(fields['clientKnown'], false),
    // For an unknown status: the account shows whether there is a login.
    status:
      parseOneOf(['ok', 'expired', 'needs-login', 'not-logged-in'], fields['status']) ??
      (account ? 'ok' : 'not-logged-in'),
    account,
  }
}

const parseToken = (value: unknown): TokenSummary | undefined => {
  const fields = getFields(value)
  const provider = name(fields['provider'])
  if (provider === undefined) return undefined
  const { missingScopes } = fields
  return compact<TokenSummary>({
    provider,
    status: parseOneOf(['expired', 'needs-login'], fields['status']) ?? 'ok',
    account: parseAccount(fields['account']),
    scopes: parseList(fields['scopes'], text, 1000),
    missingScopes: Array.isArray(missingScopes) ? parseList(missingScopes, text, 1000) : undefined,
    expiresAt: time(fields['expiresAt']) ?? null,
    refreshable: yes(fields['refreshable'], true),
    obtainedAt: text(fields['obtainedAt']) ?? '',
  })
}

const parseWebhook = (value: unknown): WebhookSummary | undefined => {
  const fields = getFields(value)
  const path = text(fields['path'])
  if (path === undefined) return undefined
  const counts = getFields(fields['counts'])
  return {
    path,
    url: text(fields['url']) ?? '',
    agent: text(fields['agent']) ?? '',
    enabled: yes(fields['enabled'], true),
    scheme: text(fields['scheme']) ?? '',
    secret: parseOneOf(['unset', 'none'], fields['secret']) ?? 'set',
    deliverTo: parseList(fields['deliverTo'], text, 100),
    counts: {
      accepted: count(counts['accepted']),
      filtered: count(counts['filtered']),
      duplicate: count(counts['duplicate']),
      rejected: count(counts['rejected']),
      done: count(counts['done']),
      failed: count(counts['failed']),
      dropped: count(counts['dropped']),
    },
    lastEventAt: time(fields['lastEventAt']) ?? null,
  }
}

const parseProblem = (value: unknown): StatusProblem | undefined => {
  const fields = getFields(value)
  const code = text(fields['code'])
  const detail = text(fields['detail'])
  return code === undefined || detail === undefined
    ? undefined
    : compact({
        code,
        detail,
        hint: text(fields['hint']) ?? '',
        about: parseAbout(fields['about']),
      })
}

/** A daemon of an earlier version sends none. */
const parseAbout = (value: unknown): StatusProblem['about'] => {
  const { provider, file } = getFields(value)
  return provider === undefined && file === undefined
    ? undefined
    : compact({ provider: name(provider), file: name(file) })
}

const parseMachine = (value: unknown): Machine | undefined => {
  const fields = getFields(value)
  const name = text(fields['name'])
  if (name === undefined) return undefined
  return {
    name,
    role:
      fields['role'] === 'door'
        ? 'receiver'
        : (parseOneOf(['receiver', 'worker'], fields['role']) ?? 'both'),
    version: text(fields['version']) ?? '',
    seenAt: text(fields['seenAt']) ?? '',
    agents: parseList(
      fields['agents'],
      (agent) => {
        const { name: read, running, free } = getFields(agent)
        return { name: text(read) ?? '', running: count(running), free: count(free) }
      },
      1000,
    ),
  }
}

const parseBroker = (value: unknown): Status['broker'] => {
  const { connected, server, waiting, redelivered } = getFields(value)
  if (typeof connected !== 'boolean') return undefined
  return compact<NonNullable<Status['broker']>>({
    connected,
    server: text(server),
    waiting: number(waiting),
    redelivered: count(redelivered),
  })
}

/** Undefined when the value is not a status. */
export const readStatus = (value: unknown): Status | undefined => {
  const fields = getFields(value)
  const version = text(fields['version'])
  const queue = getFields(fields['queue'])
  // Another program may also answer with JSON that has a version.
  if (version === undefined || Object(fields['queue']) !== fields['queue']) return undefined
  return compact<Status>({
    version,
    startedAt: text(fields['startedAt']) ?? '',
    url: text(fields['url']) ?? '',
    publicUrl: text(fields['publicUrl']),
    stopping: fields['stopping'] === true || undefined,
    queue: {
      waiting: count(queue['waiting']),
      running: count(queue['running']),
      bytes: count(queue['bytes']),
    },
    broker: parseBroker(fields['broker']),
    machines: Array.isArray(fields['machines'])
      ? parseList(fields['machines'], parseMachine, 200)
      : undefined,
    providers: parseList(fields['providers'], parseProvider, 200),
    tokens: parseList(fields['tokens'], parseToken, 200),
    webhooks: parseList(fields['webhooks'], parseWebhook, 2000),
    events: parseList(fields['events'], parseEvent, 100),
    lastRun: parseEvent(fields['lastRun']),
    problems: parseList(fields['problems'], parseProblem, 200),
  })
}

/** One message of the stream; undefined when it is not an event. */
export const readEvent = (data: string): EventRecord | undefined => {
  try {
    return parseEvent(JSON.parse(data))
  } catch {
    return undefined
  }
}

const maxText = 4000

/** The fields of an object; empty for any other value. */
const getFields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' ? value.slice(0, maxText) : undefined

/** A text that must not be truncated. */
const name = (value: unknown): string | undefined =>
  typeof value === 'string' && value.length <= maxText ? value : undefined

const number = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

const count = (value: unknown): number =>
  Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0

const yes = (value: unknown, otherwise: boolean): boolean =>
  typeof value === 'boolean' ? value : otherwise

/** A valid time, ISO 8601. */
const time = (value: unknown): string | undefined =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
  Number.isFinite(Date.parse(value))
    ? value
    : undefined

const parseOneOf = <Known extends string>(
  known: readonly Known[],
  value: unknown,
): Known | undefined => known.find((one) => one === value)

/** The valid items of a list; empty for any other value. */
const parseList = <Item>(
  value: unknown,
  read: (value: unknown) => Item | undefined,
  maxItems: number,
): Item[] =>
  Array.isArray(value)
    ? value.slice(0, maxItems).flatMap((one) => {
        const item = read(one)
        return item === undefined ? [] : [item]
      })
    : []

/** Removes undefined fields. */
const compact = <Value extends object>(value: Value): Value =>
  Object.fromEntries(Object.entries(value).filter(([, field]) => field !== undefined)) as Value
