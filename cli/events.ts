import type { EventRecord } from '../shared/api.ts'
import { DoorwardError } from '../shared/errors.ts'
import { nearest } from '../shared/nearest.ts'
import type { Context } from './context.ts'
import { eventLines } from './event-line.ts'
import { withDaemon } from './reach-daemon.ts'

export type EventsOptions = {
  readonly follow?: boolean
  readonly webhook?: string
  readonly limit: number
}

/** Prints the events, newest first, or follows what happens from now on. */
export const listEvents = async (
  context: Context,
  [command]: (string | undefined)[],
  options: EventsOptions,
): Promise<void> => {
  if (command !== undefined)
    throw new DoorwardError('usage', `unknown command 'events ${command}'`, {
      hint: nearest(command, ['show', 'open', 'retry']) ?? 'doorward events --help',
    })
  if (options.follow) {
    const { followEvents } = await import('./events-follow.ts')
    return followEvents(context, options.webhook)
  }
  const { terminal } = context
  const query = new URLSearchParams({ limit: String(options.limit) })
  if (options.webhook !== undefined) query.set('webhook', options.webhook)
  const answer = await withDaemon(context, (client) =>
    client.get<{ events: EventRecord[] }>(`/events?${query.toString()}`),
  )
  if (terminal.json) {
    terminal.printJson(answer)
    return
  }
  if (answer.events.length === 0) {
    terminal.say('nothing has come in yet')
    return
  }
  const shape = { columns: terminal.columns, header: true }
  for (const line of eventLines(answer.events, new Date(), terminal.paint, shape))
    terminal.print(line)
}
