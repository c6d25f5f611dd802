import type { EventDetail, TargetResult } from '../shared/api.ts'
import { targetWord } from '../shared/event-stages.ts'
import { localTime, plainLines } from '../shared/text.ts'
import type { Context } from './context.ts'
import { emptyAnswer, stateCell } from './event-line.ts'
import { nextStep } from './next-step.ts'
import { type Field, printFields, printSection } from './print-fields.ts'
import { withDaemon } from './reach-daemon.ts'
import { fromNow } from './show-time.ts'
import { stageLines } from './stage-lines.ts'
import type { Terminal } from './terminal.ts'

/** Prints everything that is known of one event, and what helps where it failed. Throws `event-not-found`. */
export const showEvent = async (context: Context, [id = '']: string[]): Promise<void> => {
  const { terminal } = context
  const event = await withDaemon(context, (client) =>
    client.get<EventDetail>(`/events/${encodeURIComponent(id)}`),
  )
  if (terminal.json) {
    terminal.printJson(event)
    return
  }
  printFields(fieldsOf(event, terminal, new Date()), terminal)
  if (event.kind === 'webhook') {
    const columns = terminal.columns === undefined ? undefined : terminal.columns - 2
    terminal.print(`\n${terminal.paint('bold', 'stages')}`)
    for (const line of stageLines(event, { paint: terminal.paint, columns }))
      terminal.print(`  ${line}`)
  }
  const { prompt, result, resultPreview } = event
  if (prompt !== undefined) printSection('prompt', plainLines(prompt), terminal)
  if (result?.trim() === '') terminal.print(`\n${terminal.paint('gray', emptyAnswer)}`)
  else if (result !== undefined) printSection('answer', plainLines(result), terminal)
  else if (resultPreview !== undefined)
    printSection(
      'answer (only its beginning is still in memory)',
      plainLines(resultPreview),
      terminal,
    )
  const hint = nextStep(event)
  if (hint !== undefined) terminal.say(`hint: ${hint}`)
}

const fieldsOf = (event: EventDetail, { paint }: Terminal, now: Date): Field[] => {
  const optional = (name: string, value: string | number | null | undefined): Field[] =>
    value === undefined || value === null ? [] : [[name, String(value)]]
  return [
    ['id', event.id],
    ['kind', event.kind],
    ['state', stateCell(event.state, paint)],
    ...optional('stage', event.stage),
    ...optional('code', event.code),
    ...optional('detail', event.detail),
    ...optional('webhook', event.webhook),
    ['received', `${localTime(event.receivedAt)} (${fromNow(event.receivedAt, now)})`],
    ...optional('delivery', event.deliveryId),
    ...optional('signature', signatureOf(event)),
    ...optional('bytes', event.size),
    ...optional('agent', event.agent),
    ...(event.attempts > 0 ? optional('attempts', event.attempts) : []),
    ...event.targets.map((result): Field => [
      'target',
      targetText(result, targetWord(event, result)),
    ]),
  ]
}

const signatureOf = ({ signed }: EventDetail): string | undefined =>
  signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'

const targetText = ({ target, attempts, detail }: TargetResult, word: string): string =>
  `${target}: ${word}${attempts > 1 ? ` after ${attempts} attempts` : ''}${detail ? `: ${reasonOf(target, detail)}` : ''}`

/** A reason that begins with the name of its target stands after that name. */
const reasonOf = (target: string, detail: string): string =>
  detail.startsWith(`${target} `) ? detail.slice(target.length + 1) : detail
