import type { EventDetail } from '../shared/api.ts'
import { localTime } from '../shared/local-time.ts'
import { plainLine, plainLines } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { stateCell } from './event-line.ts'
import { nextStep } from './next-step.ts'
import { withDaemon } from './reach-daemon.ts'
import { fromNow } from './show-time.ts'
import { stageLines } from './stage-lines.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'
import { wrapLine } from './wrap.ts'

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
    printTitle('stages', terminal)
    for (const line of stageLines(event, { paint: terminal.paint, columns }))
      terminal.print(`  ${line}`)
  }
  printText('prompt', event.prompt, terminal)
  if (event.result !== undefined) printText('answer', event.result, terminal)
  else printText('answer (only its beginning is still in memory)', event.resultPreview, terminal)
  const hint = nextStep(event)
  if (hint !== undefined) terminal.say(`hint: ${hint}`)
}

type Field = readonly [name: string, value: Cell]

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
    ...event.targets.map(({ target, state, attempts, detail }): Field => [
      'target',
      `${target}: ${state}${attempts > 1 ? ` after ${attempts} attempts` : ''}${detail ? `: ${reasonOf(target, detail)}` : ''}`,
    ]),
  ]
}

const nameColumns = 9

/** Long values go on below where they began; those of a pipe stay in one line. */
const printFields = (fields: readonly Field[], { print, columns }: Terminal): void => {
  const width = (columns ?? 0) - nameColumns - 2
  for (const [name, value] of fields) {
    const isLong = typeof value === 'string' && width > 0 && value.length > width
    const shown = isLong ? wrapLine(plainLine(value), width).split('\n') : [value]
    for (const line of tableLines(
      shown.map((text, index) => [index === 0 ? name : '', text]),
      undefined,
      [nameColumns],
    ))
      print(line)
  }
}

const signatureOf = ({ signed }: EventDetail): string | undefined =>
  signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'

/** A reason that begins with the name of its target stands after that name. */
const reasonOf = (target: string, detail: string): string =>
  detail.startsWith(`${target} `) ? detail.slice(target.length + 1) : detail

const printTitle = (name: string, { print, paint }: Terminal): void =>
  print(`\n${paint('bold', name)}`)

const printText = (name: string, text: string | undefined, terminal: Terminal): void => {
  if (text === undefined) return
  const { print, columns } = terminal
  printTitle(name, terminal)
  const lines = plainLines(text).trimEnd().split('\n')
  const fitted = columns === undefined ? lines : lines.map((line) => wrapLine(line, columns - 2))
  print(fitted.join('\n').replace(/^(?=.)/gm, '  '))
}
