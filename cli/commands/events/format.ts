import type { EventRecord, EventState, PastEvent } from '../../../shared/api/api.ts'
import {
  describeMade,
  describeOrigin,
  describeWhat,
  formatCost,
} from '../../../shared/event-stages.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { cut, formatDuration, didYouMean, toPlainLine } from '../../../shared/text.ts'
import { moment } from '../../terminal/format.ts'
import { type Cell, narrowed, tableLines, toText } from '../../terminal/table.ts'
import type { Style } from '../../terminal/terminal.ts'

type Paint = (style: Style, text: string) => string

const marks: Readonly<Record<EventState, readonly [string, Style]>> = {
  accepted: ['○', 'cyan'],
  queued: ['○', 'cyan'],
  running: ['●', 'cyan'],
  waiting: ['?', 'yellow'],
  delivering: ['●', 'cyan'],
  done: ['✓', 'green'],
  filtered: ['-', 'gray'],
  duplicate: ['-', 'gray'],
  rejected: ['✗', 'yellow'],
  failed: ['✗', 'red'],
  dropped: ['✗', 'red'],
  declined: ['-', 'gray'],
  expired: ['✗', 'yellow'],
}

/** Every state that an event can be in. */
export const eventStates = Object.keys(marks) as readonly EventState[]

/** True for a final state. */
export const isFinished = (state: EventState): boolean =>
  !['accepted', 'queued', 'running', 'waiting', 'delivering'].includes(state)

const eventHeader = ['ID', 'TIME', 'STATE', 'WHAT', 'RULE', 'TOOK', 'COST']
const whatPlace = eventHeader.indexOf('WHAT')

/** The state with its mark, as a cell. */
export const stateCell = (state: EventState, paint: Paint): Cell => {
  const [mark, style] = marks[state] ?? ['?', 'reset']
  return { text: `${mark} ${state}`, paint: (text) => paint(style, text) }
}

/** This is for a column whose rows share one width, also where no terminal limits it. */
const mostColumns = 160

/** Enough of an id to name an event; a command takes any unique beginning. */
const shortId = (id: string): string => id.replace(/^evt_/, '').slice(0, 8)

/** One event as a row of a table: id, time, state, what it is about and what became of it, rule, duration, cost. */
export const eventRow = (event: PastEvent, now: Date, paint: Paint): Cell[] => [
  shortId(event.id),
  moment(event.receivedAt, now),
  stateCell(event.state, paint),
  cut(
    [
      event.past ? 'past' : '',
      event.kind === 'webhook' ? describeWhat(event) : '',
      toPlainLine(describeEvent(event)),
    ]
      .filter(Boolean)
      .join(': '),
    mostColumns,
  ),
  describeOrigin(event),
  event.durations.agentMs === undefined ? '-' : formatDuration(event.durations.agentMs),
  formatCost(event),
]

/**
 * Events as table lines. A narrow terminal drops the cost, the duration, then the rule; where that is not enough, each event
 * gets several lines.
 */
export const eventLines = (
  events: readonly PastEvent[],
  now: Date,
  paint: Paint,
  { columns, header = false, atLeast }: Shape,
): string[] => {
  const all = events.map((event) => eventRow(event, now, paint))
  if (header) all.unshift(eventHeader)
  const places = [
    eventHeader.indexOf('COST'),
    eventHeader.indexOf('TOOK'),
    eventHeader.indexOf('RULE'),
  ]
  const shown = narrowed(all, columns, places, 30, atLeast, whatPlace)
  if (columns !== undefined && shown.room < leastRoom)
    return events.flatMap((event) => stackedLines(event, now, paint, columns))
  return tableLines(shown.rows, columns, shown.atLeast, whatPlace)
}

/** Below this width the column is too short to be useful. */
const leastRoom = 14

const stackedLines = (event: PastEvent, now: Date, paint: Paint, columns: number): string[] => {
  const [id = '', time = '', state = '', what = '', rule = '', took = '', cost = ''] = eventRow(
    event,
    now,
    paint,
  )
  const more = [rule, took, cost]
    .map(toText)
    .filter((text) => text !== '-')
    .join(' ')
  return tableLines([[state, time, id]], columns).concat(
    ...[[[more]], ...(what === '' ? [] : [[[what]]])].map((rows) =>
      tableLines(rows, columns - 2).map((line) => `  ${line}`),
    ),
  )
}

type Shape = {
  readonly columns: number | undefined
  readonly header?: boolean
  /** Least widths of the columns, for lines that are printed one by one. */
  readonly atLeast?: readonly number[]
}

/** Why the event failed, else what it made, else its answer. */
const describeEvent = ({
  state,
  stage,
  code,
  detail,
  resultPreview,
  links,
}: EventRecord): string => {
  if (state === 'failed' || state === 'rejected' || state === 'dropped')
    return [stage ? `at ${stage}:` : '', detail ?? code ?? ''].join(' ')
  const made = describeMade({ links })
  if (made !== undefined) return made
  return (resultPreview?.trim() === '' ? emptyAnswer : resultPreview) ?? detail ?? ''
}

/** Shown for an empty answer: the agent may have written to standard error only. */
export const emptyAnswer = 'the answer is empty'

/** Shows only events of this webhook and in this state. */
export type EventFilter = {
  readonly webhook?: string | undefined
  readonly state?: EventState | undefined
}

export const isChosen = ({ webhook, state }: EventFilter, record: EventRecord): boolean =>
  (webhook === undefined || record.webhook === webhook) &&
  (state === undefined || record.state === state)

/** Parses a state. Throws `usage` with the nearest one. */
export const parseState = (typed: string): EventState => {
  const state = eventStates.find((known) => known === typed)
  if (state) return state
  throw new DoorwardError('usage', `there is no state "${typed}"`, {
    hint: didYouMean(typed, eventStates) ?? `one of ${eventStates.join(', ')}`,
  })
}

/** What to do about a failed event, as a hint; undefined when there is nothing to do. */
export const nextStep = ({
  id,
  kind,
  state,
  code,
  prompt,
  about,
  machine,
  targets,
  past,
}: PastEvent): string | undefined => {
  if (kind !== 'webhook') return undefined
  if (past)
    return ['failed', 'dropped', 'expired'].includes(state)
      ? 'it is past and cannot run from here: deliver it again from the sender'
      : undefined
  if (state === 'duplicate' && about?.event !== undefined)
    return `to run it once more, as the webhook is now: doorward events retry ${about.event} --again`
  if (state === 'rejected')
    return code === 'signature-invalid'
      ? 'fix what the reason names, then deliver it again from the sender'
      : 'nothing was run; deliver it again from the sender'
  if (state === 'waiting')
    return `to send it: doorward events approve ${id}; or events reject, or events again --remark`
  if (state === 'done' && targets.some((target) => target.state === 'previewed'))
    return `to send it after all: doorward events deliver ${id}`
  if (state !== 'failed' && state !== 'dropped' && state !== 'expired') return undefined
  if (prompt === undefined)
    return 'its prompt is no longer in memory: deliver it again from the sender'
  const retry = `doorward events retry ${id}`
  if (code === 'approval-mismatch') return `to run it as its rule is now: ${retry} --again`
  if (code === 'workspace-ref-not-found')
    return `a retry cannot fetch it: a newer event brings what is there now; if the rule names a wrong ref, change it, then: ${retry} --again`
  if (code !== 'needs-login' && code !== 'not-logged-in') return retry
  return machine === undefined
    ? `log in (doorward oauth list shows where), then: ${retry}`
    : `log in on ${toPlainLine(machine)}, then: ${retry}`
}
