import type { EventDetail } from '../shared/api.ts'
import { duration } from '../shared/duration.ts'
import { plainLines } from '../shared/plain-text.ts'
import type { Context } from './context.ts'
import { stateCell } from './event-line.ts'
import { withDaemon } from './reach-daemon.ts'
import { type Cell, tableLines } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Prints everything that is known of one event. Throws `event-not-found`. */
export const showEvent = async (context: Context, [id = '']: string[]): Promise<void> => {
  const { terminal } = context
  const event = await withDaemon(context, (client) =>
    client.get<EventDetail>(`/events/${encodeURIComponent(id)}`),
  )
  if (terminal.json) {
    terminal.printJson(event)
    return
  }
  for (const line of tableLines(fieldsOf(event, terminal))) terminal.print(line)
  printText('prompt', event.prompt, terminal)
  printText('answer', event.result, terminal)
}

const fieldsOf = (event: EventDetail, terminal: Terminal): Cell[][] => {
  const { queuedMs, agentMs, deliverMs } = event.durations
  const optional = (name: string, value: string | number | null | undefined): Cell[][] =>
    value === undefined || value === null ? [] : [[name, String(value)]]
  const time = (name: string, ms?: number) => optional(name, ms === undefined ? ms : duration(ms))
  return [
    ['id', event.id],
    ['kind', event.kind],
    ['state', stateCell(event.state, terminal.paint)],
    ...optional('stage', event.stage),
    ...optional('code', event.code),
    ...optional('detail', event.detail),
    ...optional('webhook', event.webhook),
    ['received', new Date(event.receivedAt).toISOString()],
    ...optional('delivery', event.deliveryId),
    ...optional('signature', signatureOf(event)),
    ...optional('bytes', event.size),
    ...optional('agent', event.agent),
    ...(event.attempts > 0 ? optional('attempts', event.attempts) : []),
    ...time('queued for', queuedMs),
    ...time('agent took', agentMs),
    ...time('delivery took', deliverMs),
    ...event.targets.map(({ target, state, attempts, detail }) => [
      'target',
      `${target}: ${state}${attempts > 1 ? ` after ${attempts} attempts` : ''}${detail ? `: ${reasonOf(target, detail)}` : ''}`,
    ]),
  ]
}

const signatureOf = ({ signed }: EventDetail): string | undefined =>
  signed === undefined ? undefined : signed ? 'valid' : 'none: no secret is set'

/** A reason that begins with the name of its target stands after that name. */
const reasonOf = (target: string, detail: string): string =>
  detail.startsWith(`${target} `) ? detail.slice(target.length + 1) : detail

const printText = (name: string, text: string | undefined, terminal: Terminal): void => {
  if (text === undefined) return
  terminal.print(`\n${terminal.paint('bold', name)}`)
  terminal.print(plainLines(text).replace(/^/gm, '  ').trimEnd())
}
