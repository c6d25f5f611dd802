import { randomUUID } from 'node:crypto'
import type { EventRecord, EventState } from '../../shared/api/api.ts'
import { createByteBudget } from '../util/byte-budget.ts'
import { createFifo } from '../util/collections.ts'

/** The fields of a new event. */
export type EventFields = Partial<Omit<EventRecord, 'id' | 'receivedAt'>> & {
  readonly state: EventState
}

/** A field that changes to undefined is removed. */
export type EventChanges = { readonly [Key in keyof EventRecord]?: EventRecord[Key] | undefined }

/** One step of an event. */
export type EventChange = {
  readonly sequence: number
  /** The record after this change; it is never modified. */
  readonly record: EventRecord
  /** The state before; undefined for a new event, or where it is no longer known. */
  readonly before?: EventState | undefined
}

/**
 * A record with every field in one order, set or not: V8 creates and reads objects of one shape much
 * faster. In JSON there is no difference; `plainRecord` makes the public form.
 */
export type FullRecord = { [Key in keyof Required<EventRecord>]: EventRecord[Key] }

/** The first record of an event. */
export const newRecord = (id: string, receivedAt: string, fields: EventFields): FullRecord => ({
  id,
  kind: fields.kind ?? 'webhook',
  webhook: fields.webhook ?? null,
  rule: fields.rule,
  subject: fields.subject,
  receivedAt,
  state: fields.state,
  stage: fields.stage,
  code: fields.code,
  detail: fields.detail,
  deliveryId: fields.deliveryId,
  about: fields.about,
  signed: fields.signed,
  source: fields.source,
  size: fields.size,
  agent: fields.agent ?? null,
  machine: fields.machine,
  target: fields.target,
  attempts: fields.attempts ?? 0,
  durations: fields.durations ?? noDurations,
  targets: fields.targets ?? noTargets,
  promptSize: fields.promptSize,
  context: fields.context,
  sandbox: fields.sandbox,
  usage: fields.usage,
  session: fields.session,
  links: fields.links,
  approval: fields.approval,
  outputs: fields.outputs,
  resultPreview: fields.resultPreview,
})

// Records are never modified, so they can share these.
const noDurations: EventRecord['durations'] = {}
const noTargets: EventRecord['targets'] = []

/** The record after a change. Spreading so many fields is slow on Node 20: 2 % of a delivery. */
export const changedRecord = (record: FullRecord, changes: EventChanges): FullRecord =>
  Object.assign(newRecord(record.id, record.receivedAt, record), changes)

/** The record without the fields that are not set. */
export const plainRecord = (record: FullRecord): EventRecord => {
  const plain: EventRecord = { ...record }
  for (const key in plain) {
    const name = key as keyof EventRecord
    if (plain[name] === undefined) delete plain[name]
  }
  return plain
}

/** True for the states in which an event stays unless somebody retries it. */
export const isFinal = (state: EventState): boolean => {
  switch (state) {
    case 'done':
    case 'failed':
    case 'dropped':
    case 'filtered':
    case 'duplicate':
    case 'rejected':
    case 'declined':
    case 'expired':
      return true
    case 'accepted':
    case 'queued':
    case 'running':
    case 'waiting':
    case 'delivering':
      return false
  }
}

/** 72 random bits; the name of an event in lists, links and logs. */
export const newEventId = (): string => {
  // Node makes these 128 at a time, so one costs a tenth of `randomBytes`. The middle is not random.
  const uuid = randomUUID()
  return `evt_${uuid.slice(24)}${uuid.slice(0, 6)}`
}

/** The prompt for an agent and its answer. */
export type Detail = {
  readonly prompt?: string
  readonly result?: string
  /** The text for each target, in their order. */
  readonly previews?: readonly string[]
  /** The prompt with its contexts, where it has some. Only `EventStore.agentPrompt` shows it. */
  readonly asked?: string
}

/** An event whose prompt and answer may be kept with it. */
export type EventWithTexts = {
  readonly record: EventRecord
  prompt: string | undefined
  result: string | undefined
  previews: readonly string[] | undefined
  asked: string | undefined
}

const maxCharacters = 32 * 1024 * 1024
const maxAskedBytes = 8 * 1024 * 1024

/**
 * Keeps prompts and answers under one limit; those of events that finished first are removed first. Prompts with
 * their contexts have a limit of their own, as no run needs them again: the oldest go first.
 */
export class EventTexts<Event extends EventWithTexts> {
  readonly #onForget: (event: Event) => void
  /** Finished events that still have their texts, in the order in which they finished. */
  readonly #finished = createFifo<Event>()
  #characters = 0
  readonly #asked = createFifo<Event>()
  readonly #askedBudget = createByteBudget(maxAskedBytes)

  /** `onForget` is called with each event whose texts are removed. */
  constructor(onForget: (event: Event) => void) {
    this.#onForget = onForget
  }

  /** Sets the given texts. A prompt begins a run, which has no answer yet. */
  set(event: Event, { prompt, result, previews, asked }: Detail): void {
    this.#characters -= countCharacters(event)
    if (prompt !== undefined) {
      event.prompt = prompt
      event.result = event.previews = undefined
      this.#forgetAsked(event)
    }
    if (asked !== undefined) this.#keepAsked(event, asked)
    if (result !== undefined) event.result = result
    if (previews !== undefined) event.previews = previews
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
    event.prompt = event.result = event.previews = undefined
    this.#forgetAsked(event)
    this.#onForget(event)
  }

  #keepAsked(event: Event, asked: string): void {
    this.#forgetAsked(event)
    const bytes = Buffer.byteLength(asked)
    if (!this.#askedBudget.couldTake(bytes)) return
    while (!this.#askedBudget.take(bytes)) {
      const oldest = this.#asked.first()
      if (!oldest) return
      this.#forgetAsked(oldest)
    }
    event.asked = asked
    this.#asked.add(event)
  }

  #forgetAsked(event: Event): void {
    if (event.asked === undefined) return
    this.#askedBudget.giveBack(Buffer.byteLength(event.asked))
    event.asked = undefined
    if (this.#asked.first() === event) this.#asked.shift()
    else this.#asked.remove(event)
  }
}

/** The texts that an event is shown with. */
export const toDetail = ({ prompt, result }: EventWithTexts): Detail => ({
  ...(prompt === undefined ? {} : { prompt }),
  ...(result === undefined ? {} : { result }),
})

/** All texts, for another process. */
export const toWholeDetail = (event: EventWithTexts): Detail => ({
  ...toDetail(event),
  ...(event.previews && { previews: event.previews }),
  ...(event.asked === undefined ? {} : { asked: event.asked }),
})

const hasTexts = ({ prompt, result }: EventWithTexts): boolean =>
  prompt !== undefined || result !== undefined

const countCharacters = ({ prompt, result, previews = [] }: EventWithTexts): number =>
  previews.reduce((sum, { length }) => sum + length, (prompt?.length ?? 0) + (result?.length ?? 0))
