import { DoorwardError } from '../../../shared/errors.ts'
import type { LiveCheck } from '../../delivery/sender.ts'
import type { AcceptedEvent } from '../events/accepted-event.ts'
import type { Acknowledge } from './acknowledge.ts'
import { type Checks, type CheckRequest, type CheckState, toWaiting } from './check.ts'

/*
 * What people at the sender see of an event while it waits and runs. Best effort: what cannot be shown is a note
 * of the event.
 */

type Marked = {
  readonly note: string | undefined
  readonly remove: (() => Promise<void>) | undefined
}

type Opened = {
  note: string | undefined
  /** Undefined where it could not be made. */
  readonly check: Promise<LiveCheck | undefined>
  /** The last that was said in it. */
  last: Promise<void>
}

const describe = (error: unknown): string => {
  const { message, hint } =
    error instanceof DoorwardError ? error : { message: 'something went wrong', hint: undefined }
  return hint === undefined ? message : `${message} (${hint})`
}

const timeoutMs = 10_000

const toAsking = () => ({ signal: new AbortController().signal, timeoutMs })

export class Signs {
  readonly #acknowledge: Acknowledge
  readonly #checks: Checks
  readonly #marked = new Map<string, Promise<Marked>>()
  readonly #opened = new Map<string, Opened>()

  constructor(acknowledge: Acknowledge, checks: Checks) {
    this.#acknowledge = acknowledge
    this.#checks = checks
  }

  /** Shows that an event waits, once it may run. */
  begin(id: string, { seen, check }: AcceptedEvent): void {
    if (seen) this.#marked.set(id, this.#mark(seen))
    if (!check) return
    if (this.#opened.has(id)) this.#update(id, { status: 'queued' })
    else this.#opened.set(id, this.#open(id, check, { status: 'queued' }))
  }

  /** Shows again that an event goes on, where the process before a restart had shown it. */
  resume(id: string, event: AcceptedEvent): void {
    if (event.check && !this.#opened.has(id)) this.begin(id, { ...event, seen: undefined })
  }

  /** Its answer waits for an approval. */
  wait(id: string, digest: string, hasButtons: boolean): void {
    this.#update(id, toWaiting(digest, hasButtons))
  }

  /** Its agent runs. */
  started(id: string): void {
    this.#update(id, { status: 'in_progress' })
  }

  /** Shows that an event does not run. */
  skip(id: string, request: CheckRequest, state: CheckState): void {
    void this.#open(id, request, state).check
  }

  async checkOf(id: string): Promise<LiveCheck | undefined> {
    return this.#opened.get(id)?.check
  }

  /** Says something in a check whose event is no longer known. */
  async say(eventId: string, check: Parameters<Checks['update']>[1], title: string): Promise<void> {
    const state = { status: 'completed', conclusion: 'neutral', title } as const
    await this.#checks.update(eventId, check, state).catch(() => undefined)
  }

  /** What could not be shown. */
  async noteOf(id: string): Promise<string | undefined> {
    const opened = this.#opened.get(id)
    await opened?.check
    const notes = [(await this.#marked.get(id))?.note, opened?.note]
    const all = notes.filter((note) => note !== undefined)
    return all.length === 0 ? undefined : all.join('; ')
  }

  /** The event is over. Never rejects. */
  async end(id: string, state: CheckState | undefined): Promise<void> {
    const marked = this.#marked.get(id)
    this.#marked.delete(id)
    if (state) this.#update(id, state)
    const last = this.#opened.get(id)?.last
    this.#opened.delete(id)
    await (await marked)?.remove?.()
    await last
  }

  /** One after the other, as GitHub keeps what it gets last. */
  #update(id: string, state: CheckState): void {
    const opened = this.#opened.get(id)
    if (!opened) return
    const { last } = opened
    const say = async (): Promise<void> => {
      await last
      const check = await opened.check
      if (check) await this.#checks.update(id, check, state).catch(() => undefined)
    }
    opened.last = say()
  }

  #open(id: string, request: CheckRequest, state: CheckState): Opened {
    const opened: Opened = {
      note: undefined,
      last: Promise.resolve(),
      check: this.#checks.open(id, request, state).catch((error: unknown) => {
        opened.note = `no check: ${describe(error)}`
        return undefined
      }),
    }
    return opened
  }

  async #mark(seen: NonNullable<AcceptedEvent['seen']>): Promise<Marked> {
    try {
      const remove = await this.#acknowledge(seen, toAsking())
      return { note: undefined, remove: async () => remove(toAsking()).catch(() => undefined) }
    } catch (error) {
      const known = error instanceof DoorwardError ? error : undefined
      const isNeeded = seen.isAsked || known?.code !== 'not-logged-in'
      return {
        note: isNeeded ? `not acknowledged: ${describe(error)}` : undefined,
        remove: undefined,
      }
    }
  }
}
