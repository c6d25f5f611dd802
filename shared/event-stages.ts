import type {
  EventDetail,
  EventState,
  OutputResult,
  PastEvent,
  RunInput,
  TargetResult,
  UsageSum,
} from './api/api.ts'

/** The size of the prompt of a run, and of its contexts: `12345 bytes: diff 10000, files 2000 (the files leave out …)`. */
export const describePrompt = ({ promptSize, context = [] }: RunInput): string | undefined => {
  if (promptSize === undefined) return undefined
  const inside = context.map(({ name, bytes, leftOut }) =>
    leftOut === null ? `${name} ${bytes}` : `${name} ${bytes} (${leftOut})`,
  )
  return [`${promptSize} bytes`, inside.join(', ')].filter(Boolean).join(': ')
}

/** The sandbox of a program; undefined where none ran. */
export const describeSandbox = ({ sandbox }: RunInput): string | undefined => {
  if (sandbox === undefined) return undefined
  if (!sandbox) return 'none'
  const { kind, network, refused = [], unbounded } = sandbox
  return [
    `${kind}, network ${network}`,
    ...(unbounded ? ['processes not bounded by the kernel'] : []),
    ...(refused.length > 0 ? [`refused ${refused.join(', ')}`] : []),
  ].join(', ')
}

/** What a run has used: `$0.42, 12345 tokens in (8000 cached), 678 out, 3 turns, claude-opus-5`. */
export const describeUsage = ({ usage }: RunInput): string | undefined => {
  if (usage === undefined) return undefined
  const { inputTokens, outputTokens, cachedTokens, costUsd, model, turns } = usage
  const cached = cachedTokens === undefined ? '' : ` (${cachedTokens} cached)`
  return [
    costUsd === undefined ? '' : formatUsd(costUsd),
    inputTokens === undefined ? '' : `${inputTokens} tokens in${cached}`,
    outputTokens === undefined ? '' : `${outputTokens} out`,
    turns === undefined ? '' : `${turns} ${turns === 1 ? 'turn' : 'turns'}`,
    model ?? '',
  ]
    .filter(Boolean)
    .join(', ')
}

/** What a run cost, short: `$0.42`, where that is not known `12k tokens`, else `-`. */
export const formatCost = ({ usage }: RunInput): string => {
  if (usage?.costUsd !== undefined) return formatUsd(usage.costUsd)
  const { inputTokens, outputTokens } = usage ?? {}
  if (inputTokens === undefined && outputTokens === undefined) return '-'
  return `${formatTokens((inputTokens ?? 0) + (outputTokens ?? 0))} tokens`
}

/** `$0.42 today`, or where no run says what it costs, `1200 tokens today`. */
export const describeToday = ({ costUsd, inputTokens, outputTokens }: UsageSum): string =>
  costUsd === undefined
    ? `${formatTokens(inputTokens + outputTokens)} tokens today`
    : `${formatUsd(costUsd)} today`

/** `$0.42`; less than a cent has two digits that say something. */
export const formatUsd = (usd: number): string =>
  `$${usd > 0 && usd < 0.01 ? Number(usd.toPrecision(2)).toFixed(7).replace(/0+$/, '') : usd.toFixed(2)}`

/** `940`, `12k`, `1.2m` */
export const formatTokens = (count: number): string => {
  if (count < 1000) return String(count)
  const [by, unit] = count < 999_500 ? ([1000, 'k'] as const) : ([1_000_000, 'm'] as const)
  const short = count / by
  return `${short < 10 ? Number(short.toFixed(1)) : Math.round(short)}${unit}`
}

/** One stage of an event, for a picture. */
export type StageRow = {
  readonly name: string
  readonly state: 'done' | 'failed' | 'now' | 'ahead' | 'none'
  readonly ms?: number
  /** Text in place of the time. */
  readonly note?: string
}

/** The origin of an event: the path of its webhook, with the name of the rule that runs. */
export const describeOrigin = ({
  webhook,
  rule,
  kind,
}: Pick<EventDetail, 'webhook' | 'rule' | 'kind'>): string =>
  rule === undefined ? (webhook ?? kind) : `${webhook ?? kind} ${rule}`

/** A reload of the configuration that went well: while someone edits, there is one for each save. */
export const isReload = ({ code }: Pick<EventDetail, 'code'>): boolean => code === 'config-reloaded'

/** What an event is called: by what it is about, of which a past one may have the kind alone, else by where it came in. */
export const describeWhat = (
  event: Pick<PastEvent, 'webhook' | 'rule' | 'kind' | 'subject' | 'past'>,
): string => event.subject?.title ?? event.past?.subjectKind ?? describeOrigin(event)

/**
 * What targets have made, in a few words: `review, 3 comments`. Undefined where the answer itself says more, as of a
 * message or a file.
 */
export const describeMade = ({ links = [] }: Pick<EventDetail, 'links'>): string | undefined => {
  const things = links.filter(({ target }) => !/^(slack|telegram|file):/.test(target))
  return [...new Set(things.map(({ what }) => what))].join(', ') || undefined
}

/** `labels: dropped: not in allowed: wontfix` */
export const describeOutput = ({ kind, state, why }: OutputResult): string =>
  `${kind}: ${state}${why === undefined ? '' : `: ${why}`}`

type TimedStage = 'queue' | 'agent' | 'deliver'

/** The stages of a webhook event, from the checks to the delivery. */
export const toStages = (event: EventDetail): StageRow[] => [
  toCheckStage(event),
  timedRow(event, 'queue', 'Queue', event.durations.queuedMs),
  timedRow(event, 'agent', 'Agent', event.durations.agentMs),
  event.targets.length === 0 && reachedTargets(event)
    ? { name: 'Delivery', state: 'none', note: 'no target' }
    : timedRow(event, 'deliver', 'Delivery', event.durations.deliverMs),
]

/** An accepted event has its targets. */
const reachedTargets = ({ state, stage }: EventDetail): boolean =>
  !['rejected', 'filtered', 'duplicate'].includes(state) && stage !== 'deliver'

const toCheckStage = ({ state, stage, code }: EventDetail): StageRow => {
  const name = 'Checks'
  if (state === 'filtered') return { name, state: 'done', note: 'passed over' }
  if (state === 'duplicate') return { name, state: 'done', note: 'a repeat' }
  if (state !== 'rejected' || stage === 'queue') return { name, state: 'done', note: 'passed' }
  const where = code === 'signature-invalid' ? 'signature' : (stage ?? 'receive')
  return { name, state: 'failed', note: `refused at ${where}` }
}

const order: readonly TimedStage[] = ['queue', 'agent', 'deliver']

/** The stage of an unfinished event. */
export const currentStage: Partial<Record<EventState, TimedStage>> = {
  accepted: 'queue',
  queued: 'queue',
  running: 'agent',
  waiting: 'deliver',
  delivering: 'deliver',
}

const toNow: Partial<Record<EventState, string>> = {
  accepted: 'waiting',
  queued: 'waiting',
  waiting: 'waiting for approval',
}

const timedRow = (
  { state, stage }: EventDetail,
  own: TimedStage,
  name: string,
  ms: number | undefined,
): StageRow => {
  const time = ms === undefined ? {} : { ms }
  const at = currentStage[state]
  if (at !== undefined) {
    if (at === own) return { name, state: 'now', note: toNow[state] ?? 'running' }
    const isOver = order.indexOf(own) < order.indexOf(at)
    return isOver ? { name, state: 'done', ...time } : { name, state: 'ahead', note: 'not yet' }
  }
  if (state === 'done') return { name, state: 'done', ...time }
  if ((state === 'failed' || state === 'dropped' || state === 'rejected') && stage === own)
    return { name, state: 'failed', ...(ms === undefined ? { note: state } : time) }
  return ms === undefined
    ? { name, state: 'none', note: 'not reached' }
    : { name, state: 'done', ms }
}

/** A target of a finished event no longer waits. */
export const describeTargetState = (
  event: Pick<EventDetail, 'state'>,
  { state }: TargetResult,
): TargetResult['state'] | 'not reached' =>
  state === 'waiting' && currentStage[event.state] === undefined ? 'not reached' : state

/** The start and length of the bar of a row, in percent. */
export type Bar = { readonly row: StageRow; readonly from: number; readonly length: number }

const shortest = 0.8

/** Consecutive bars in proportion to their times; the running stage takes the rest. */
export const toBars = (rows: readonly StageRow[]): Bar[] => {
  const isRunning = rows.some(({ state }) => state === 'now')
  const times = rows.reduce((sum, { ms = 0 }) => sum + ms, 0)
  const room = isRunning && times > 0 ? 60 : 100
  const perMs = times > 0 ? room / times : 0
  let passed = 0
  return rows.map((row) => {
    const start = passed * perMs
    passed += row.ms ?? 0
    const wanted = row.state === 'now' ? 100 - start : (row.ms ?? 0) * perMs
    if (row.state !== 'now' && row.ms === undefined) return { row, from: 0, length: 0 }
    const length = Math.max(wanted, shortest)
    return { row, from: round(Math.min(start, 100 - length)), length: round(length) }
  })
}

const round = (value: number): number => Math.round(value * 100) / 100
