import { stripVTControlCharacters } from 'node:util'
import type { AgentPrompt, EventDetail, PastEvent, TargetResult } from '../../../shared/api/api.ts'
import {
  type Bar,
  describeOutput,
  describePrompt,
  describeSandbox,
  describeUsage,
  toBars,
  toStages,
  describeTargetState,
} from '../../../shared/event-stages.ts'
import { describeFeed } from '../../../shared/sources/feed.ts'
import { formatDuration, formatLocalTime, toPlainLine, toPlainText } from '../../../shared/text.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { fromNow } from '../../terminal/format.ts'
import { type Field, printFields, printSection } from '../../terminal/table.ts'
import type { Terminal } from '../../terminal/terminal.ts'
import { emptyAnswer, nextStep, stateCell } from './format.ts'

/**
 * Prints one event, and what to do if it failed; or its whole prompt. Throws `event-not-found` and
 * `prompt-not-found`.
 */
export const showEvent = async (
  context: Context,
  [id = '']: string[],
  { prompt: onlyPrompt = false }: { readonly prompt?: boolean },
): Promise<void> => {
  const { terminal } = context
  if (onlyPrompt) return showPrompt(context, id)
  const event = await withDaemon(context, (client) =>
    client.get<PastEvent>(`/events/${encodeURIComponent(id)}`),
  )
  if (terminal.json) return terminal.printJson(event)
  printFields(getFields(event, terminal, new Date()), terminal)
  if (event.kind === 'webhook') {
    const columns = terminal.columns === undefined ? undefined : terminal.columns - 2
    terminal.print(`\n${terminal.paint('bold', 'stages')}`)
    for (const line of stageLines(event, { paint: terminal.paint, columns }))
      terminal.print(`  ${line}`)
  }
  const { prompt, result, resultPreview } = event
  if (prompt !== undefined) printSection('prompt', toPlainText(prompt), terminal)
  if (result?.trim() === '') terminal.print(`\n${terminal.paint('gray', emptyAnswer)}`)
  else if (result !== undefined)
    printSection(event.state === 'filtered' ? 'token' : 'answer', toPlainText(result), terminal)
  else if (resultPreview !== undefined)
    printSection('answer (only its beginning is kept)', toPlainText(resultPreview), terminal)
  for (const { target, state, preview } of event.targets)
    if (preview !== undefined && (state === 'previewed' || event.state === 'waiting'))
      printSection(`would be sent to ${toPlainLine(target)}`, toPlainText(preview), terminal)
  const hint = nextStep(event)
  if (hint !== undefined) terminal.say(`hint: ${hint}`)
}

const showPrompt = async (context: Context, id: string): Promise<void> => {
  const { terminal } = context
  const whole = await withDaemon(context, (client) =>
    client.get<AgentPrompt>(`/events/${encodeURIComponent(id)}/prompt`),
  )
  if (terminal.json) terminal.printJson(whole)
  else terminal.print(toPlainText(whole.prompt))
}

const getFields = (event: PastEvent, { paint }: Terminal, now: Date): Field[] => {
  const optional = (name: string, value: string | number | null | undefined): Field[] =>
    value === undefined || value === null ? [] : [[name, String(value)]]
  return [
    ['id', event.id],
    ['kind', event.kind],
    ['state', stateCell(event.state, paint)],
    ...optional('past', describePast(event)),
    ...optional('stage', event.stage),
    ...optional('code', event.code),
    ...optional('detail', event.detail),
    ...optional('about', event.subject?.title ?? event.past?.subjectKind),
    ...optional('page', event.subject?.url),
    ...optional('webhook', event.webhook),
    ...optional('rule', event.rule),
    ['received', `${formatLocalTime(event.receivedAt)} (${fromNow(event.receivedAt, now)})`],
    ...optional('delivery', event.deliveryId),
    ...optional('signature', describeSignature(event)),
    ...optional('bytes', event.size),
    ...optional('agent', event.agent),
    ...optional('machine', event.machine),
    ...optional('prompt', describePrompt(event)),
    ...optional('sandbox', describeSandbox(event)),
    ...optional('used', describeUsage(event)),
    ...optional('session', describeSession(event)),
    ...(event.attempts > 0 ? optional('attempts', event.attempts) : []),
    ...event.targets.map((result): Field => [
      'target',
      targetText(result, describeTargetState(event, result)),
    ]),
    ...optional('approval', describeApproval(event, now)),
    ...(event.links ?? []).map(({ what, url }): Field => ['made', `${what}: ${url}`]),
    ...(event.outputs ?? []).map((output): Field => ['output', describeOutput(output)]),
  ]
}

/** What the history has of it. */
const describePast = ({ past }: PastEvent): string | undefined => {
  if (!past) return undefined
  const ended = `ended ${formatLocalTime(past.endedAt)}`
  if (past.texts === 'kept') return ended
  return past.texts === 'none'
    ? `${ended}; its title, prompt and answer are not kept`
    : `${ended}; its title, prompt and answer are sealed with a key that is not here`
}

/** `waiting, expires in 23 h`, `approved by owner (cli)` */
const describeApproval = ({ approval }: EventDetail, now: Date): string | undefined => {
  if (!approval) return undefined
  const { state, by, where, expiresAt, digest, remark } = approval
  const who = by === undefined ? '' : ` by ${by}${where === undefined ? '' : ` (${where})`}`
  const until = state === 'waiting' ? `, expires ${fromNow(expiresAt, now)}` : ''
  const words = remark === undefined ? '' : `, after your remark: ${remark}`
  return toPlainLine(`${state}${who}${until}, sha256 ${digest.slice(0, 12)}${words}`)
}

const describeSession = ({ session }: EventDetail): string | undefined => {
  if (!session) return undefined
  const { key, turn, state, why } = session
  const how = state === 'anew' ? `started over: ${why ?? ''}` : state
  return `${key}, event ${turn} (${how})`
}

const describeSignature = ({ signed, source }: EventDetail): string | undefined => {
  if (source === 'schedule') return 'none: begun by a schedule of this machine'
  if (source === 'api') return "none: read from the sender's API with your login"
  if (source !== undefined) return `none: ${describeFeed(source)}`
  return signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'
}

const targetText = ({ target, attempts, detail }: TargetResult, word: string): string =>
  `${target}: ${word}${attempts > 1 ? ` after ${attempts} attempts` : ''}${detail ? `: ${detail}` : ''}`

type Layout = { readonly paint: Terminal['paint']; readonly columns: number | undefined }

const styles = { done: 'green', failed: 'red', now: 'cyan', ahead: 'gray', none: 'gray' } as const
const checks = ['receive', 'verify', 'parse', 'filter', 'expand'] as const
const widestBar = 40
const narrowestBar = 8

/**
 * The stages of an event as a chart: the checks it passed, then a bar with a duration for each stage that
 * takes time. It contains no text from outside.
 */
export const stageLines = (event: EventDetail, { paint, columns = 80 }: Layout): string[] => {
  const bars = toBars(toStages(event))
  const timed = bars.slice(1)
  const said = timed.map(describeStage)
  const saidWidth = Math.max(...said.map(({ length }) => length))
  const room = columns - 'delivery'.length - saidWidth - 4
  const width = Math.max(narrowestBar, Math.min(widestBar, room))
  const lines = timed.map((bar, index) => {
    const { name, state } = bar.row
    const text = `${(said[index] ?? '').padEnd(saidWidth)}  ${drawn(bar, width)}`
    return `${name.toLowerCase().padEnd('delivery'.length)}  ${paint(styles[state], text.trimEnd())}`
  })
  return [...flowing(checkWords(event, bars[0]?.row.note, paint), columns), ...lines]
}

const describeStage = ({ row: { state, ms, note = '' } }: Bar): string =>
  `${state === 'failed' ? '✗ ' : ''}${ms === undefined ? note : formatDuration(ms)}`

/** `from` and `length` of a bar are percent. */
const drawn = ({ from, length }: Bar, width: number): string => {
  if (length === 0) return ''
  const cells = Math.round((length / 100) * width)
  const start = Math.min(Math.floor((from / 100) * width), width - Math.max(cells, 1))
  return ' '.repeat(start) + (cells === 0 ? '▏' : '█'.repeat(cells))
}

/** Each check with its mark, and a note where the event was filtered or a duplicate. */
const checkWords = (
  { state, stage = 'receive', signed }: EventDetail,
  note: string | undefined,
  paint: Terminal['paint'],
): string[] => {
  const last =
    state === 'filtered'
      ? 'filter'
      : state === 'duplicate'
        ? 'parse'
        : state === 'rejected' && stage !== 'queue'
          ? stage
          : 'expand'
  const passed = checks.slice(0, checks.findIndex((name) => name === last) + 1)
  const words = passed.map((name) => {
    if (name === last && state === 'rejected' && stage !== 'queue') return paint('red', `✗ ${name}`)
    if (name === 'filter' && state === 'filtered') return paint('gray', `- ${name}`)
    if (name === 'verify' && signed === false) return paint('yellow', `- ${name}`)
    return paint('green', `✓ ${name}`)
  })
  const isPassedOver = state === 'filtered' || state === 'duplicate'
  return isPassedOver && note !== undefined ? [...words, paint('gray', note)] : words
}

/** Joins words by two spaces, wrapped to the width. */
const flowing = (words: readonly string[], columns: number): string[] => {
  const lines: string[] = []
  for (const word of words) {
    const joined = lines.length === 0 ? word : `${lines.at(-1)}  ${word}`
    if (lines.length > 0 && stripVTControlCharacters(joined).length <= columns)
      lines[lines.length - 1] = joined
    else lines.push(word)
  }
  return lines
}
