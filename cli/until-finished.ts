import type { EventDetail, EventRecord } from '../shared/api.ts'
import type { Client } from '../shared/client/client.ts'
import { DoorwardError } from '../shared/errors.ts'
import { isFinished } from './event-line.ts'
import { openEventStream } from './event-stream.ts'

/**
 * Does what makes an event (`send` gives its id) and waits until that event is finished; the stream is
 * opened first, so that nothing is missed. `changed` gets each change before the end. Throws
 * `interrupted`, or `daemon-unreachable`.
 */
export const untilFinished = async (
  client: Client,
  send: () => Promise<string>,
  interrupt: AbortSignal,
  changed: (record: EventRecord) => void = () => undefined,
): Promise<EventDetail> => {
  const control = new AbortController()
  const signal = AbortSignal.any([interrupt, control.signal])
  const stream = await openEventStream(client, signal)
  try {
    const id = await send()
    const detail = () => client.get<EventDetail>(`/events/${encodeURIComponent(id)}`)
    const now = await detail()
    if (isFinished(now.state)) return now
    for await (const { record } of stream) {
      if (record.id !== id) continue
      if (isFinished(record.state)) return await detail()
      changed(record)
    }
  } catch (error) {
    if (interrupt.aborted) throw new DoorwardError('interrupted', 'interrupted')
    throw error
  } finally {
    control.abort()
  }
  throw new DoorwardError('daemon-unreachable', 'the daemon ended before the event was finished')
}
