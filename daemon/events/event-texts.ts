import type { EventRecord } from '../../shared/api.ts'
import { createFifo } from '../util/fifo.ts'

/** The prompt for an agent and its answer. */
export type Detail = { readonly prompt?: string; readonly result?: string }

/** An event whose prompt and answer may be kept with it. */
export type EventWithTexts = {
  readonly record: EventRecord
  prompt: string | undefined
  result: string | undefined
}

const maxCharacters = 32 * 1024 * 1024

/** Keeps prompts and answers under one limit; those of events that finished first are removed first. */
export class EventTexts<Event extends EventWithTexts> {
  readonly #onForget: (event: Event) => void
  /** Finished events that still have their texts, in the order in which they finished. */
  readonly #finished = createFifo<Event>()
  #characters = 0

  /** `onForget` is called with each event whose texts are removed. */
  constructor(onForget: (event: Event) => void) {
    this.#onForget = onForget
  }

  /** Sets the given texts. A prompt begins a run, which has no answer yet. */
  set(event: Event, { prompt, result }: Detail): void {
    this.#characters -= countCharacters(event)
    if (prompt !== undefined) {
      event.prompt = prompt
      event.result = undefined
    }
    if (result !== undefined) event.result = result
    this.#characters += countCharacters(event)
    while (this.#characters > maxCharacters) {
      const oldest = this.#finished.first()
      if (!oldest) return
      this.forget(oldest)
    }
  }

  /** From now on its texts may be removed. */
  finished(event: Event): void {
    if (hasTexts(event)) this.#finished.add(event)
  }

  /** It runs again, so its texts stay. */
  reopened(event: Event): void {
    this.#finished.remove(event)
  }

  forget(event: Event): void {
    if (this.#finished.first() === event) this.#finished.shift()
    else if (hasTexts(event)) this.#finished.remove(event)
    this.#characters -= countCharacters(event)
    event.prompt = event.result = undefined
    this.#onForget(event)
  }
}

export const toDetail = ({ prompt, result }: EventWithTexts): Detail => ({
  ...(prompt === undefined ? {} : { prompt }),
  ...(result === undefined ? {} : { result }),
})

const hasTexts = ({ prompt, result }: EventWithTexts): boolean =>
  prompt !== undefined || result !== undefined

const countCharacters = ({ prompt, result }: EventWithTexts): number =>
  (prompt?.length ?? 0) + (result?.length ?? 0)
