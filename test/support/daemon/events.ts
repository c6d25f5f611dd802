import type { EventRecord } from '../../../shared/api/api.ts'
import type { RunningDaemon } from './daemon.ts'

/** Follows the event stream; `next` waits for a change that fits, from the moment of the call to `follow` on. */
export type Followed = {
  readonly next: (fits: (record: EventRecord) => boolean) => Promise<EventRecord>
  readonly close: () => void
}

/** Opens the stream; changes that `next` has passed over are not looked at again. */
export const followEvents = async (daemon: RunningDaemon): Promise<Followed> => {
  const control = new AbortController()
  const stream = await daemon.client.open('/events/stream', { signal: control.signal })
  const records = recordsOf(stream as AsyncIterable<Buffer>)
  return {
    next: async (fits) => {
      for (let step = await records.next(); !step.done; step = await records.next())
        if (fits(step.value)) return step.value
      throw new Error('the event stream ended early')
    },
    close: () => {
      stream.once('error', () => undefined)
      control.abort()
    },
  }
}

const recordsOf = async function* (stream: AsyncIterable<Buffer>): AsyncGenerator<EventRecord> {
  let text = ''
  for await (const chunk of stream) {
    text += chunk.toString()
    const lines = text.split('\n')
    text = lines.pop() ?? ''
    for (const line of lines)
      if (line.startsWith('data:')) {
        const record = JSON.parse(line.slice(5)) as EventRecord | undefined
        if (record?.id !== undefined) yield record
      }
  }
}
