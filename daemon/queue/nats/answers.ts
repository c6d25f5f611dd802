import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import type { EventRecord } from '../../../shared/api/api.ts'
import { DoorwardError, type ErrorCode, errorName } from '../../../shared/errors.ts'
import type { Inspected } from '../../delivery/secrets/inspect.ts'
import { isFinal } from '../../events/event-record.ts'
import { type Log, oncePerMinute } from '../../log/log.ts'
import { toError } from '../../util/error-copy.ts'
import type { Memory } from '../../state.ts'
import { cancelled } from '../../util/concurrency.ts'
import {
  type AcceptedEvent,
  type EventOnWire,
  fromWire,
  toCounted,
} from '../../webhook/events/accepted-event.ts'
import type { RunEvent } from '../../webhook/events/runner.ts'
import type { Engine } from '../../webhook/engine.ts'
import { toPreview } from '../../webhook/events/run-to-end.ts'
import { waitingFor } from '../../webhook/targets.ts'
import type { EventQueue } from '../event-queue.ts'
import {
  answersStream,
  type Broker,
  cancelSubject,
  doneSubject,
  type Link,
  progressSubject,
} from './broker.ts'
import { ensureConsumer } from './consumers.ts'
import { type Held, keepWorking } from './keep-working.ts'
import type { Identity } from '../../util/identity.ts'
import {
  type Done,
  type Outcome,
  type Progress,
  readDone,
  readEnvelope,
  readProgress,
  readTicket,
  writeNote,
} from './messages.ts'

/*
 * What workers say to the receiver: that a run has started, and the answer. The queue in memory delivers it, and
 * its message is acknowledged when the event is over, so that no answer is lost with this process.
 */

export type AnswersParts = {
  readonly broker: Broker
  readonly local: EventQueue
  readonly memory: Memory
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly toJob: RunEvent['toJob']
  readonly current: () => Pick<Engine, 'inspect'>
  /** Resolves when an event that was just published is in the store. */
  readonly settled: (id: string) => Promise<void>
  readonly log: Log
}

/** Those that wait for an approval count too. */
const maxAnswers = 256
/** How many runs of one event are noted: a worker can report any number. */
const maxHeard = 50

export class Answers {
  readonly #parts: AnswersParts
  /** The runs that were heard of, by event in memory: two machines may run it at once. */
  readonly #attempts = new Map<string, Set<string>>()
  /** When each run was last heard of. */
  readonly #heardAt = new Map<string, number>()
  readonly #cancelling = new Set<string>()
  /** Those that are being delivered. */
  readonly #delivering = new Map<string, Held>()
  #consuming: ConsumerMessages | undefined
  #connection: Link['nc'] | undefined
  isActive = false
  #isDraining = false
  /** How many runs were given to a second machine. */
  redelivered = 0
  readonly #refused = oncePerMinute((count) =>
    this.#parts.log.warn({ count }, 'refused answers to events that this receiver did not send'),
  )

  constructor(parts: AnswersParts) {
    this.#parts = parts
    parts.memory.events.follow(({ record, before }) => {
      // The agent runs again with a remark: its next answer is another message.
      if (before === 'waiting' && !record.approval) this.#release(record.id, 'ack')
      this.#follow(record)
    })
    parts.memory.events.onForget((id) => this.#attempts.delete(id))
    parts.broker.onLink((link) => {
      if (this.isActive) void this.#listen(link)
    })
  }

  start(): void {
    this.isActive = true
    const { link } = this.#parts.broker
    if (link) void this.#listen(link)
  }

  /** Takes no more: those that are on their way come again, here or to the next process. */
  stop(): void {
    this.isActive = false
    void this.#consuming?.close()
    this.#consuming = undefined
  }

  drain(): void {
    this.#isDraining = true
    this.stop()
  }

  /** True for an event whose run was heard of a short time ago. */
  isHeard(id: string): boolean {
    return Date.now() - (this.#heardAt.get(id) ?? 0) < this.#parts.broker.lostAfterMs
  }

  cancel(id: string): void {
    this.#cancelling.add(id)
    this.tellCancel(id)
  }

  tellCancel(id: string): void {
    const { broker, keys } = this.#parts
    broker.link?.nc.publish(cancelSubject, writeNote('cancel', id, {}, keys()))
  }

  /** Fails an event that is with a worker. */
  fail(id: string, why: DoorwardError): void {
    const { memory, local, toJob } = this.#parts
    const { state } = memory.events.record(id) ?? {}
    const event = memory.kept.get(id)
    const isThere = (state === 'queued' || state === 'running') && !local.has(id)
    if (event && isThere) toJob(id, event).fail(why)
  }

  async #listen(link: Link): Promise<void> {
    const { broker, identity, log } = this.#parts
    const { nc, js } = link
    const { id } = identity()
    // An older version of this machine may have made it.
    const name = `door-${id}`
    if (this.#connection !== nc) {
      this.#connection = nc
      nc.subscribe(`${progressSubject}.${id}`, {
        callback: (error, message) => {
          if (!error && this.isActive) void this.#noteProgress(message.data)
        },
      })
    }
    try {
      await this.#consuming?.close()
      const { lostAfterMs } = broker
      const limits = { filter: `${doneSubject}.${id}`, maxAckPending: maxAnswers, lostAfterMs }
      await ensureConsumer(link, answersStream, name, limits)
      const consumer = await js.consumers.get(answersStream, name)
      this.#consuming = await consumer.consume({
        max_messages: 32,
        callback: (message) => {
          this.#take(message).catch((error: unknown) =>
            log.warn({ error: errorName(error) }, 'an answer cannot be taken'),
          )
        },
      })
      if (!this.isActive) this.stop()
    } catch (error) {
      log.warn({ error: errorName(error) }, 'answers of workers cannot be read')
    }
  }

  async #noteProgress(bytes: Uint8Array): Promise<void> {
    const note = readProgress(bytes, this.#parts.keys())
    if (!note) return
    const { id, progress } = note
    await this.#parts.settled(id)
    const record = this.#parts.memory.events.record(id)
    if (!record) return
    if (!isFinal(record.state)) this.#heardAt.set(id, Date.now())
    if (isFinal(record.state)) this.#noteLate(id, progress)
    if (isFinal(record.state) || this.#cancelling.has(id)) this.tellCancel(id)
    else this.#started(id, progress)
  }

  /** Marks a run that another one has overtaken: its event is over already, and stays as it is. */
  #noteLate(id: string, { run, machine, attempt }: Progress): void {
    const heard = this.#attempts.get(id)
    const key = `${run} ${machine} ${attempt}`
    if (!heard || heard.has(key) || heard.size >= maxHeard) return
    heard.add(key)
    const detail = `${id} was over when ${machine} said that it runs it too: it may have run twice`
    this.#parts.memory.events.add(new Date(), { kind: 'daemon', state: 'done', detail })
  }

  /** A run that was given to a second machine may have run before. */
  #started(id: string, { run, machine, attempt, queuedMs }: Progress): void {
    const { events } = this.#parts.memory
    const record = events.record(id)
    const key = `${run} ${machine} ${attempt}`
    const heard = this.#attempts.get(id) ?? new Set()
    if (!record || heard.has(key) || heard.size >= maxHeard) return
    // It was heard of before a restart.
    const isKnown = record.state === 'running' && record.machine === machine && heard.size === 0
    this.#attempts.set(id, heard.add(key))
    if (isKnown) return
    const before = record.state === 'running' && record.machine ? ` on ${record.machine}` : ''
    if (attempt > 1) this.redelivered += 1
    events.update(id, {
      state: 'running',
      machine,
      attempts: record.attempts + 1,
      durations: { queuedMs },
      detail: attempt > 1 || before ? `it may have run before${before}` : undefined,
    })
  }

  async #take(message: JsMsg): Promise<void> {
    const { memory, identity, keys, settled } = this.#parts
    const envelope = readEnvelope(message.data)
    const ticket = envelope && readTicket(envelope.ticket, envelope.id, identity().key)
    // Ended at once: any number of them would be in the way of all answers.
    if (!ticket) {
      this.#refused()
      return message.term()
    }
    const { id } = envelope
    await settled(id)
    const done = readDone(message.data, keys())
    if (!done) {
      this.fail(id, otherKey())
      return message.term()
    }
    const looked = await this.#look(done, ticket)
    const known = this.#delivering.get(id)
    if (known) return known.replace(message)
    // It came in the last moment: the next process takes it.
    if (!this.isActive) return message.nak()
    const record = memory.events.record(id)
    if (record && isFinal(record.state) && record.code !== 'event-dropped') return message.ack()
    // The owner is asked, or has answered: the job is here, and the message is released at the end.
    if (record && !isFinal(record.state) && record.approval) {
      this.#delivering.set(id, keepWorking(message, this.#parts.broker))
      return
    }
    // By the process before a restart.
    if (record?.state === 'delivering') return message.nak(10_000)
    if (!record || !memory.kept.get(id)) restore(memory, done, ticket)
    this.#delivering.set(id, keepWorking(message, this.#parts.broker))
    this.#finish(done, looked, message.info.deliveryCount > 1)
  }

  /** The worker has searched the answer for its own secrets, and this machine does for those that it holds. */
  async #look({ id, outcome }: Done, { webhook }: EventOnWire): Promise<Inspected | undefined> {
    const { text } = outcome
    if (text === undefined) return undefined
    const { signal } = new AbortController()
    const allowed = webhook.allowSecrets
    return this.#parts.current().inspect({ eventId: id, text, allowed, signal })
  }

  #finish({ id, outcome }: Done, looked: Inspected | undefined, mayBeDelivered: boolean): void {
    const { memory, local, toJob } = this.#parts
    const event = memory.kept.get(id)
    if (!event) return this.#release(id, 'ack')
    this.#started(id, outcome)
    const { error, seen, queuedMs, agentMs } = outcome
    const had = this.#compareSession(id, outcome)
    const durations = { queuedMs, agentMs }
    if (had?.usage) memory.usage.count(toCounted(event), had.usage)
    const isCancelled = this.#cancelling.has(id)
    if (!looked || isCancelled) {
      memory.events.update(id, { durations, ...had })
      const why = error
        ? this.#toWorkerError(error, outcome.machine)
        : new DoorwardError('event-cancelled', 'it was cancelled while its agent ran')
      return toJob(id, event).fail(why, isCancelled ? cancelled : undefined)
    }
    const { text, refusal } = looked
    const answered = { ...event, code: seen, coalesced: undefined }
    memory.kept.keep(id, answered)
    const details = [
      memory.events.record(id)?.detail,
      mayBeDelivered && 'its answer may have been delivered before',
      outcome.detail,
      had?.session?.state === 'anew' &&
        outcome.had?.session?.state === 'new' &&
        `a new conversation was started: ${had.session.why}`,
    ].filter(Boolean)
    const detail = details.length > 0 ? details.join('; ') : undefined
    const changes = { ...had, durations, resultPreview: toPreview(text), detail }
    memory.events.update(id, changes, { result: text })
    if (refusal) toJob(id, answered).fail(refusal)
    else local.addAccepted(toJob(id, answered, text))
  }

  /** Conversations stay on their worker, which does not know of those that others have. */
  #compareSession(id: string, { had, machine }: Outcome): Outcome['had'] {
    const { events } = this.#parts.memory
    const session = had?.session
    const record = events.record(id)
    if (session?.state !== 'new' || !record?.webhook) return had
    const earlier = events
      .list({ limit: Infinity, webhook: record.webhook })
      .find(
        (other) =>
          other.id !== id && other.rule === record.rule && other.session?.key === session.key,
      )
    if (earlier?.machine === undefined || earlier.machine === machine) return had
    const why = `the earlier one is on the machine ${earlier.machine}`
    return { ...had, session: { ...session, state: 'anew', why } }
  }

  /** Names the machine, as status does, where it is another one. */
  #toWorkerError(error: NonNullable<Outcome['error']>, machine: string): DoorwardError {
    const { code, message, localDetail, about } = error
    // No fault of the machine.
    const isElsewhere = machine !== this.#parts.identity().name && code !== 'paths-unmatched'
    if (!isElsewhere) return toError(error)
    const fix =
      about?.provider !== undefined && loginCodes.has(code)
        ? `; on that machine: doorward oauth login ${about.provider}`
        : ''
    return toError({
      ...error,
      message: `on ${machine}: ${message}${fix}`,
      localDetail: `on ${machine}: ${localDetail ?? message}${fix}`,
    })
  }

  #follow({ id, state, code }: EventRecord): void {
    if (!isFinal(state)) return
    this.#heardAt.delete(id)
    this.#cancelling.delete(id)
    // What a stop has interrupted is delivered after the next start.
    const isOpen = code === 'event-dropped' || (state === 'failed' && this.#isDraining)
    this.#release(id, isOpen ? 'nak' : 'ack')
    // A newer event with its key may have waited for it.
    this.#parts.local.trigger()
  }

  #release(id: string, how: 'ack' | 'nak'): void {
    this.#delivering.get(id)?.release(how)
    this.#delivering.delete(id)
  }
}

/** What a login on the machine of the worker mends. */
const loginCodes = new Set<ErrorCode>(['not-logged-in', 'needs-login', 'workspace-refused'])

const otherKey = () =>
  new DoorwardError(
    'agent-failed',
    'its answer cannot be opened: the worker uses a different queue key',
  )

/** Adds an event that was accepted before this process, with what its answer says of it. */
const restore = (memory: Memory, { id, outcome }: Done, wire: EventOnWire): void =>
  restoreAccepted(memory, id, fromWire(wire, outcome.prompt ?? ''))

export const restoreAccepted = (memory: Memory, id: string, event: AcceptedEvent): void => {
  const { events, kept, deliveries } = memory
  const { receivedAt, known, targets, delivery, prompt, detail } = event
  // Both steps, as each is counted.
  const fields = { ...known, ...waitingFor(targets), detail, state: 'accepted' } as const
  if (!events.record(id)) events.add(receivedAt, fields, id)
  events.update(id, { ...waitingFor(targets), state: 'queued' }, { prompt })
  kept.keep(id, event)
  if (delivery) deliveries.remember(delivery, id, performance.now())
}
