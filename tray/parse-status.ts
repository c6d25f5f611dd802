import type {
  EventRecord,
  Machine,
  ProviderSummary,
  Status,
  StatusProblem,
  TargetResult,
  TokenSummary,
  WebhookSummary,
} from '../shared/api/api.ts'
import type { ScheduleSummary } from '../shared/api/schedules.ts'
import { eventStates, stages } from '../shared/event-states.ts'

/*
 * Parses what a daemon of any version sends. Unknown fields are ignored, and an unknown value becomes the
 * known one that claims least. The result is safe to show: texts and lists are bounded, times are valid.
 * Parsed by hand: `zod/mini` would take 4 MB of the tray's 60, zod 10.
 */

type Parser<Value> = (value: unknown) => Value | undefined

/**
 * Parses an object field by field, and leaves out the fields that are undefined. Undefined when one of
 * the needed fields is; those have no value that claims least.
 */
const object =
  <Value extends object>(
    needed: readonly (keyof Value)[],
    parsers: { readonly [Name in keyof Value]: Parser<Value[Name]> },
  ): Parser<Value> =>
  (value) => {
    const fields = getFields(value)
    const found = Object.entries<Parser<unknown>>(parsers).flatMap(([key, parse]) => {
      const field = parse(fields[key])
      return field === undefined ? [] : [[key, field] as const]
    })
    const parsed = Object.fromEntries(found)
    return needed.every((key) => key in parsed) ? (parsed as Value) : undefined
  }

const objectIfAny =
  <Value extends object>(parsers: {
    readonly [Name in keyof Value]: Parser<Value[Name]>
  }): Parser<Value> =>
  (value) =>
    Object(value) === value ? object<Value>([], parsers)(value) : undefined

/** The fields of an object; empty for any other value. */
const getFields = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {}

const or =
  <Value>(parse: Parser<Value>, otherwise: Value) =>
  (value: unknown): Value =>
    parse(value) ?? otherwise

const maxText = 4000

const text: Parser<string> = (value) =>
  typeof value === 'string' ? value.slice(0, maxText) : undefined

/** A text that must not be truncated. */
const name: Parser<string> = (value) =>
  typeof value === 'string' && value.length <= maxText ? value : undefined

const number: Parser<number> = (value) =>
  typeof value === 'number' && Number.isFinite(value) ? value : undefined

const count = (value: unknown): number =>
  Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0

const boolean: Parser<boolean> = (value) => (typeof value === 'boolean' ? value : undefined)

/** A valid time, ISO 8601. */
const time: Parser<string> = (value) =>
  typeof value === 'string' &&
  /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/.test(value) &&
  Number.isFinite(Date.parse(value))
    ? value
    : undefined

const oneOf =
  <Known extends string>(known: readonly Known[]): Parser<Known> =>
  (value) =>
    known.find((one) => one === value)

/** The valid items of a list; empty for any other value. */
const list =
  <Item>(parse: Parser<Item>, maxItems: number) =>
  (value: unknown): Item[] =>
    Array.isArray(value)
      ? value.slice(0, maxItems).flatMap((one) => {
          const item = parse(one)
          return item === undefined ? [] : [item]
        })
      : []

/** A list that may be absent. */
const listIfAny =
  <Item>(parse: Parser<Item>, maxItems: number): Parser<Item[]> =>
  (value) =>
    Array.isArray(value) ? list(parse, maxItems)(value) : undefined

const parseTarget = object<TargetResult>(['target'], {
  target: text,
  state: or(oneOf<TargetResult['state']>(['done', 'failed', 'previewed']), 'waiting'),
  attempts: count,
  code: text,
  detail: text,
})

const parseSubject = object<NonNullable<EventRecord['subject']>>(['key', 'title', 'kind'], {
  key: text,
  title: text,
  url: name,
  kind: text,
})

/** An address must not be cut. */
const parseLink = object<NonNullable<EventRecord['links']>[number]>(['target', 'what', 'url'], {
  target: text,
  what: text,
  url: name,
})

const parseApproval = object<NonNullable<EventRecord['approval']>>(['state'], {
  state: oneOf(['waiting', 'approved', 'declined', 'expired']),
  digest: or(text, ''),
  askedAt: or(text, ''),
  expiresAt: or(text, ''),
  asked: list(text, 20),
  by: text,
  where: text,
  remark: text,
})

const parseEvent = object<EventRecord>(['id', 'receivedAt'], {
  id: name,
  kind: or(oneOf<EventRecord['kind']>(['webhook', 'oauth']), 'daemon'),
  webhook: or<string | null>(text, null),
  rule: text,
  subject: parseSubject,
  receivedAt: time,
  // For an unknown state: the event was at least accepted.
  state: or(oneOf(eventStates), 'accepted'),
  stage: oneOf(stages),
  code: text,
  detail: text,
  deliveryId: text,
  size: number,
  agent: or<string | null>(text, null),
  machine: text,
  target: text,
  attempts: count,
  durations: object([], { queuedMs: number, agentMs: number, deliverMs: number }),
  targets: list(parseTarget, 100),
  links: listIfAny(parseLink, 100),
  approval: parseApproval,
  resultPreview: text,
})

type Account = ProviderSummary['account']
const account = or<Account>(
  object<NonNullable<Account>>(['id', 'name'], { id: text, name: text }),
  null,
)

const parseKnownProvider = object<ProviderSummary>(['provider'], {
  provider: name,
  clientKnown: or(boolean, false),
  status: oneOf(['ok', 'expired', 'needs-login', 'not-logged-in']),
  account,
})

/** For an unknown status the account shows whether there is a login. */
const parseProvider: Parser<ProviderSummary> = (value) => {
  const provider = parseKnownProvider(value)
  return (
    provider && {
      ...provider,
      status: provider.status ?? (provider.account ? 'ok' : 'not-logged-in'),
    }
  )
}

const parseToken = object<TokenSummary>(['provider'], {
  provider: name,
  status: or(oneOf<TokenSummary['status']>(['expired', 'needs-login']), 'ok'),
  account,
  scopes: list(text, 1000),
  missingScopes: listIfAny(text, 1000),
  expiresAt: or<string | null>(time, null),
  refreshable: or(boolean, true),
  obtainedAt: or(text, ''),
})

const parseWebhook = object<WebhookSummary>(['path'], {
  path: text,
  url: or(text, ''),
  agent: or(text, ''),
  enabled: or(boolean, true),
  scheme: or(text, ''),
  secret: or(oneOf<WebhookSummary['secret']>(['unset', 'none']), 'set'),
  deliverTo: list(text, 100),
  counts: object([], {
    accepted: count,
    filtered: count,
    duplicate: count,
    rejected: count,
    done: count,
    failed: count,
    dropped: count,
  }),
  lastEventAt: or<string | null>(time, null),
})

const parseSchedule = object<ScheduleSummary>(['name'], {
  name,
  agent: or(text, ''),
  timezone: or(text, ''),
  nextRuns: list(time, 3),
  paused: or(boolean, false),
  enabled: or(boolean, true),
  lastRunAt: or<string | null>(time, null),
  lastState: oneOf(eventStates),
  deliverTo: list(text, 100),
  missed: object<NonNullable<ScheduleSummary['missed']>>(['newestAt'], {
    count,
    newestAt: time,
  }),
})

const parseProblem = object<StatusProblem>(['code', 'detail'], {
  code: text,
  detail: text,
  hint: or(text, ''),
  // A daemon of an earlier version sends none.
  about: objectIfAny({ provider: name, file: name }),
})

const parseMachine = object<Machine>(['name'], {
  name: text,
  // A daemon of an earlier version says `door`.
  role: (value) =>
    value === 'door' ? 'receiver' : (oneOf(['receiver', 'worker'])(value) ?? 'both'),
  version: or(text, ''),
  seenAt: or(text, ''),
  agents: list(
    object<Machine['agents'][number]>([], { name: or(text, ''), running: count, free: count }),
    1000,
  ),
})

const parseSum = object<NonNullable<Status['today']>>(['runs'], {
  runs: count,
  inputTokens: or(number, 0),
  outputTokens: or(number, 0),
  cachedTokens: or(number, 0),
  costUsd: number,
})

const parseToday: Parser<NonNullable<Status['today']>> = (value) =>
  Object(value) === value ? parseSum(value) : undefined

/** Undefined when the value is not a status. */
export const readStatus = object<Status>(['version', 'queue'], {
  version: text,
  startedAt: or(text, ''),
  url: or(text, ''),
  publicUrl: text,
  stopping: (value) => value === true || undefined,
  // Another program may also answer with JSON that has a version.
  queue: objectIfAny({ waiting: count, running: count, bytes: count }),
  broker: object<NonNullable<Status['broker']>>(['connected'], {
    connected: boolean,
    server: text,
    waiting: number,
    redelivered: count,
  }),
  machines: listIfAny(parseMachine, 200),
  today: parseToday,
  providers: list(parseProvider, 200),
  tokens: list(parseToken, 200),
  webhooks: list(parseWebhook, 2000),
  schedules: listIfAny(parseSchedule, 100),
  events: list(parseEvent, 100),
  approvals: listIfAny(parseEvent, 100),
  lastRun: parseEvent,
  problems: list(parseProblem, 200),
})

/** One message of the stream; undefined when it is not an event. */
export const readEvent = (data: string): EventRecord | undefined => {
  try {
    return parseEvent(JSON.parse(data))
  } catch {
    return undefined
  }
}
