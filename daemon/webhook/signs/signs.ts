import { DoorwardError } from '../../../shared/errors.ts'
import type { AcceptedEvent } from '../events/accepted-event.ts'
import type { Acknowledge } from './acknowledge.ts'

/*
 * What people at the sender see of an event while it waits and runs. Best effort: what cannot be shown is a note
 * of the event.
 */

type Shown = {
  readonly note: string | undefined
  readonly remove: (() => Promise<void>) | undefined
}

const timeoutMs = 10_000

const toAsking = () => ({ signal: new AbortController().signal, timeoutMs })

export class Signs {
  readonly #acknowledge: Acknowledge
  readonly #shown = new Map<string, Promise<Shown>>()

  constructor(acknowledge: Acknowledge) {
    this.#acknowledge = acknowledge
  }

  /** Shows that an event waits, once it may run. */
  begin(id: string, { seen }: AcceptedEvent): void {
    if (seen) this.#shown.set(id, this.#mark(seen))
  }

  /** What could not be shown. */
  async noteOf(id: string): Promise<string | undefined> {
    return (await this.#shown.get(id))?.note
  }

  /** The event is over. Never rejects. */
  async end(id: string): Promise<void> {
    const shown = this.#shown.get(id)
    this.#shown.delete(id)
    await (await shown)?.remove?.()
  }

  async #mark(seen: NonNullable<AcceptedEvent['seen']>): Promise<Shown> {
    try {
      const remove = await this.#acknowledge(seen, toAsking())
      return { note: undefined, remove: async () => remove(toAsking()).catch(() => undefined) }
    } catch (error) {
      const known = error instanceof DoorwardError ? error : undefined
      const isNeeded = seen.isAsked || known?.code !== 'not-logged-in'
      const { message = 'something went wrong', hint } = known ?? {}
      const why = hint === undefined ? message : `${message} (${hint})`
      return { note: isNeeded ? `not acknowledged: ${why}` : undefined, remove: undefined }
    }
  }
}
