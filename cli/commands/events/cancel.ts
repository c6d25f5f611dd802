import type { EventRecord } from '../../../shared/api.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import type { Context } from '../../context.ts'
import { withDaemon } from '../../daemon-client/ensure.ts'
import { interruptSignal } from '../../terminal/spinner.ts'
import { isFinished } from './format.ts'
import { untilFinished } from './wait.ts'

/**
 * Cancels an event and waits until it has ended. Throws `event-not-found`, or `event-not-cancellable` for
 * one that is final, also where it finished before it could be stopped.
 */
export const cancelEvent = async (
  context: Context,
  [id = '']: (string | undefined)[],
): Promise<void> => {
  const { terminal } = context
  const event = await withDaemon(context, async (client) =>
    untilFinished(
      client,
      async () => {
        const { state } = await client.post<EventRecord>(`/events/${encodeURIComponent(id)}/cancel`)
        if (!isFinished(state)) terminal.say('stopping what runs ...')
        return id
      },
      interruptSignal(),
    ),
  )
  if (event.code !== 'event-cancelled')
    throw new DoorwardError(
      'event-not-cancellable',
      `this event cannot be cancelled: it was ${event.state} before it could be stopped`,
      { hint: `doorward events show ${id}` },
    )
  if (terminal.json) terminal.printJson(event)
  else terminal.print(`${event.id} ${event.state}`)
}
