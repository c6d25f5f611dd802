import type { EventRecord } from '../../shared/api.ts'
import { createFifo } from '../util/fifo.ts'
import { type KeptText, createTextRoom } from './text-room.ts'

/** What an agent was asked and what it said. */
export type Detail = { readonly prompt?: string; readonly result?: string }

/** In the room of texts once the event is done: who waits or has failed may run, with the same string. */
type Text = string | KeptText

/** An event whose prompt and answer may be kept with it. */
export type Detailed = {
  readonly record: EventRecord
  prompt: Text | undefined
  result: Text | undefined
}

/** Prompts and answers of events, under a limit of their own. */
export type EventDetails<Event extends Detailed> = {
  /** What is not in it stays. Lets the oldest ones of finished events go when there are too many. */
  readonly set: (event: Event, detail: Detail) => void
  readonly of: (event: Event) => Detail
  /** It has ended, so that its own may be let go from now on. */
  readonly finished: (event: Event) => void
  /** It runs again. */
  readonly reopened: (event: Event) => void
  /** Lets go of its own. */
  readonly forget: (event: Event) => void
}

const maxCharacters = 32 * 1024 * 1024

/** Keeps none yet; `forgotten` is called with each event whose prompt and answer are let go. */
export const createEventDetails = <Event extends Detailed>(
  forgotten: (event: Event) => void,
): EventDetails<Event> => {
  const texts = createTextRoom()
  /** Finished events that still have theirs, in the order they ended. */
  const finished = createFifo<Event>()
  let characters = 0

  const isOverLimit = () => characters > maxCharacters
  const asString = (text: Text) => (typeof text === 'string' ? text : texts.read(text))
  const putAway = (text: Text | undefined) => (typeof text === 'string' ? texts.put(text) : text)
  const free = (text: Text | undefined) => {
    if (typeof text === 'object') texts.free(text)
  }
  const forget = (event: Event) => {
    // They are let go in the order in which they ended.
    if (finished.first() === event) finished.shift()
    characters -= getSize(event)
    free(event.prompt)
    free(event.result)
    event.prompt = event.result = undefined
    forgotten(event)
  }

  return {
    set: (event, { prompt, result }) => {
      characters -= getSize(event)
      if (prompt !== undefined) {
        free(event.prompt)
        event.prompt = prompt
      }
      if (result !== undefined) {
        free(event.result)
        event.result = result
      }
      characters += getSize(event)
      while (isOverLimit()) {
        const oldest = finished.first()
        if (!oldest) return
        forget(oldest)
      }
    },
    of: ({ prompt, result }) => ({
      ...(prompt === undefined ? {} : { prompt: asString(prompt) }),
      ...(result === undefined ? {} : { result: asString(result) }),
    }),
    finished: (event) => {
      finished.add(event)
      if (event.record.state !== 'done') return
      event.prompt = putAway(event.prompt)
      event.result = putAway(event.result)
    },
    reopened: (event) => finished.remove(event),
    forget,
  }
}

const getSize = ({ prompt, result }: Detailed): number =>
  (prompt?.length ?? 0) + (result?.length ?? 0)
