import type { IncomingMessage } from 'node:http'
import { createParser } from 'eventsource-parser'
import type { EventRecord } from '../../shared/api/api.ts'
import type { Client } from '../../shared/client/client.ts'

/** One message of `/events/stream`. */
export type StreamMessage = { readonly id: string | undefined; readonly record: EventRecord }

/**
 * Opens the event stream and reads its messages until it ends. The stream is open when this returns, so
 * no later event is missed. `lastId` resumes.
 */
export const openEventStream = async (
  client: Client,
  signal: AbortSignal,
  lastId?: string,
): Promise<AsyncGenerator<StreamMessage>> => {
  const headers = {
    accept: 'text/event-stream',
    ...(lastId === undefined ? {} : { 'last-event-id': lastId }),
  }
  // A heartbeat comes every 15 s; a stream that is silent for longer is dead.
  const response = await client.open('/events/stream', { headers, signal, timeoutMs: 45_000 })
  return readMessages(response)
}

async function* readMessages(response: IncomingMessage): AsyncGenerator<StreamMessage> {
  const waiting: StreamMessage[] = []
  const parser = createParser({
    onEvent: ({ event, id, data }) => {
      if (event === 'event') waiting.push({ id, record: JSON.parse(data) as EventRecord })
    },
  })
  response.setEncoding('utf8')
  for await (const chunk of response as AsyncIterable<string>) {
    parser.feed(chunk)
    yield* waiting.splice(0)
  }
}
