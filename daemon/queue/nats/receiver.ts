import { hash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import type { EventRecord } from '../../../shared/api/api.ts'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import { isFinal } from '../../events/event-record.ts'
import { cancelled, isCancelled } from '../../util/concurrency.ts'
import type { ByteBudget } from '../../util/byte-budget.ts'
import type { Engine } from '../../webhook/engine.ts'
import type { AcceptedEvent } from '../../webhook/events/accepted-event.ts'
import { duplicateEnd } from '../../webhook/events/runner.ts'
import type { Job, QueueResult } from '../queue.ts'
import { describeMissing } from './agent-faults.ts'
import { Answers, type AnswersParts } from './answers.ts'
import { type Link, runsStream, terminatedSubject, toRunSubject } from './broker.ts'
import { removeStrayAnswers, RunConsumers } from './consumers.ts'
import { HeldEvents } from './held-events.ts'
import { writeRun } from './messages.ts'
import { BoundedMap } from '../../util/collections.ts'

/*
 * The side of the receiver: an event that needs an agent is published before its sender gets the 202, and is
 * `queued` from then on. What waits for a newer event with its key (`held-events.ts`), or is run again by its owner,
 * waits in the queue in memory, and is published when its turn comes.
 */

type ReceiverParts = Omit<AnswersParts, 'settled' | 'current'> & {
  readonly budget: ByteBudget
  readonly current: () => Pick<Engine, 'config' | 'runEvent' | 'inspect'>
  /** True where no machine runs this agent. */
  readonly isMissing: (agent: string) => boolean
}

const dayMs = 86_400_000
const againMs = 2000
const maxFailed = 10_000
/** How long workers have to say what they run, after the broker has lost what waited. */
const graceMs = 5000

export class Receiver {
  readonly #parts: ReceiverParts
  readonly answers: Answers
  /** What workers may take. */
  readonly consumers: RunConsumers
  readonly #held: HeldEvents
  #connection: Link['nc'] | undefined
  /** Events that are being published: they are in the store when that is done. */
  readonly #publishing = new Map<string, Promise<unknown>>()
  /** Where published events are in the stream, and since when. */
  readonly #waiting = new Map<string, { readonly seq: number; readonly at: number }>()
  /** Deliveries whose event failed, which their sender may send again, each with that event. */
  readonly #failed = new BoundedMap<string, string>(maxFailed)
  /** Runs that the broker has lost, and when to publish them again. */
  readonly #lost = new Map<string, { readonly at: number; readonly messageId: string }>()
  /** Events that are told that no machine runs their agent. */
  readonly #untaken = new Set<string>()
  #isDraining = false
  /** The broker has lost runs that this process has not looked for. */
  #hasLost = false

  constructor(parts: ReceiverParts) {
    this.#parts = parts
    this.answers = new Answers({ ...parts, settled: async (id) => this.#settled(id) })
    this.consumers = new RunConsumers(parts)
    this.#held = new HeldEvents({
      ...parts,
      requeue: (...given) => parts.current().runEvent.requeue(...given),
    })
    parts.memory.events.follow(({ record }) => this.#follow(record))
    parts.broker.onLink(({ nc }, isNew) => {
      void this.consumers.ensure()
      this.#listen(nc)
      this.#hasLost ||= isNew
      this.#findLost()
    })
  }

  start(): void {
    this.answers.start()
    this.#held.start()
    this.#findLost()
  }

  drain(): void {
    this.#isDraining = true
    this.answers.drain()
  }

  async addAll(jobs: readonly Job[]): Promise<readonly QueueResult[]> {
    return Promise.all(
      jobs.map(async (job) => {
        try {
          return await this.#add(job)
        } catch (error) {
          if (error instanceof DoorwardError) return error
          throw error
        }
      }),
    )
  }

  /** A job for the queue in memory that is published when its turn comes. */
  hold(job: Job): Job {
    // Its owner may run one again that another receiver has run.
    const messageId = this.#held.isRestored(job.id)
      ? this.#toMessageId(job)
      : `${job.id} ${randomUUID()}`
    return this.#hold(job, messageId)
  }

  #hold(job: Job, messageId: string): Job {
    const { id, event } = job
    if (!event) return job
    const drop: Job['drop'] = (why) => {
      // It waits at the broker for the next process.
      if (why === undefined && this.#held.isPlaced(id))
        this.#parts.log.info({ event: id }, 'an event waits at NATS for the next start')
      else job.drop(why)
    }
    const run: Job['run'] = async (signal, agentIsDone) => {
      try {
        await this.#publishHeld({ ...job, drop }, event, messageId, signal, agentIsDone)
      } catch (error) {
        this.#parts.log.error({ event: id, error: errorName(error) }, 'internal error')
        job.fail(error)
      }
    }
    return { ...job, run, drop }
  }

  /** False for an event that is neither with a worker nor on its way to one. */
  cancel(id: string): boolean {
    const { memory, toJob, broker } = this.#parts
    const record = memory.events.record(id)
    const event = memory.kept.get(id)
    if (!record || !event) return false
    if (record.state === 'running' && record.machine !== undefined) {
      this.answers.cancel(id)
      return true
    }
    if (record.state !== 'queued') return false
    const seq = this.#waiting.get(id)?.seq
    if (seq !== undefined)
      void broker.link?.jsm.streams.deleteMessage(runsStream, seq).catch(() => false)
    // A worker that has it already is told, now or when it says so.
    this.answers.tellCancel(id)
    toJob(id, event).drop(cancelled)
    return true
  }

  /** Every 10 seconds: publishes what the broker has lost, and gives up what it no longer has. */
  async tick(): Promise<void> {
    const { memory, toJob, broker } = this.#parts
    const now = Date.now()
    void this.consumers.ensure()
    void this.#held.tick()
    this.noteMissing()
    const { link } = broker
    if (link) void removeStrayAnswers(link).catch(() => undefined)
    // A list: what fails is added again.
    const due = [...this.#lost].filter(([, { at }]) => at <= now)
    for (const [id, lost] of due) {
      // First: the next tick may come before this one ends.
      this.#lost.delete(id)
      const { state } = memory.events.record(id) ?? {}
      const event = memory.kept.get(id)
      const isLost = state === 'queued' || (state === 'running' && !this.answers.isHeard(id))
      try {
        if (event && isLost) await this.#publish(id, event, lost.messageId)
      } catch {
        // The next time, unless it was lost once more meanwhile.
        if (!this.#lost.has(id)) this.#lost.set(id, lost)
      }
    }
    for (const [id, { at }] of this.#waiting) {
      const event = memory.kept.get(id)
      if (now - at < dayMs || !event || this.answers.isHeard(id)) continue
      this.#waiting.delete(id)
      const why = 'no machine has finished it within 24 hours'
      toJob(id, event).fail(new DoorwardError('event-dropped', why))
    }
  }

  /** Tells events for whose agent there is no machine, and those for which there is one now. */
  noteMissing(ids: Iterable<string> = this.#waiting.keys()): void {
    const { memory, isMissing } = this.#parts
    for (const id of ids) {
      const { state, agent } = memory.events.record(id) ?? {}
      if (state !== 'queued' || !agent || isMissing(agent) === this.#untaken.has(id)) continue
      if (this.#untaken.delete(id)) memory.events.update(id, { detail: undefined })
      else {
        this.#untaken.add(id)
        memory.events.update(id, { detail: describeMissing(agent) })
      }
    }
  }

  async #add(job: Job): Promise<QueueResult> {
    const { event, isReady } = job
    if (this.#isDraining)
      throw new DoorwardError('stopping', 'the daemon is stopping', {
        localDetail: 'the daemon was stopping',
      })
    if (event && !isReady) return this.#place(job, event)
    const [added = 'queued'] = event
      ? await this.#held.place(this.#hold(job, this.#toMessageId(job)), event)
      : await this.#parts.local.addAll([job])
    return added
  }

  async #place(job: Job, event: AcceptedEvent): Promise<QueueResult> {
    const { budget } = this.#parts
    const { id, bytes } = job
    if (!budget.take(bytes))
      throw new DoorwardError('queue-full', 'the queue is full', {
        localDetail: 'queue.max_bytes is used up by bodies being read and prompts being sent',
      })
    const publishing = this.#publish(id, event, this.#toMessageId(job)).then((result) => {
      if (result === 'queued') job.accepted?.()
      this.noteMissing([id])
      return result
    })
    this.#publishing.set(id, publishing)
    try {
      return await publishing
    } finally {
      budget.giveBack(bytes)
      this.#publishing.delete(id)
    }
  }

  async #publish(
    id: string,
    event: AcceptedEvent,
    messageId: string,
  ): Promise<'queued' | 'duplicate'> {
    const { broker, identity, keys } = this.#parts
    await broker.untilReady()
    const { id: door, key } = identity()
    const message = writeRun({ id, door, run: randomUUID() }, event, keys(), key)
    const subject = toRunSubject(event.webhook.agentName)
    const { seq, duplicate } = await broker.publish(subject, message, messageId)
    this.#waiting.set(id, { seq, at: Date.now() })
    return duplicate ? 'duplicate' : 'queued'
  }

  async #publishHeld(
    job: Job,
    event: AcceptedEvent,
    messageId: string,
    signal: AbortSignal,
    agentIsDone: () => void,
  ): Promise<void> {
    const { events } = this.#parts.memory
    const { id } = job
    // It may be there without its acknowledgement.
    let isUnsure = this.#held.isRestored(id)
    while (!signal.aborted) {
      try {
        const placed = await this.#publish(id, event, messageId)
        if (placed === 'duplicate' && !isUnsure) events.update(id, duplicateEnd)
        else if (isCancelled(signal)) this.cancel(id)
        else if (events.record(id)?.state === 'queued') events.update(id, { detail: undefined })
        this.#held.release(id)
        this.noteMissing([id])
        return
      } catch (error) {
        if (!(error instanceof DoorwardError)) throw error
        if (error.code === 'body-too-large') return job.fail(error)
        // Answers that only have to be delivered do not wait for the broker.
        if (!isUnsure) agentIsDone()
        isUnsure = true
        events.update(id, { detail: `it waits: ${error.localDetail ?? error.message}` })
      }
      await sleep(againMs, undefined, { signal }).catch(() => undefined)
    }
    job.drop(isCancelled(signal) ? cancelled : undefined)
  }

  /** Two receivers behind one address, or a sender that is impatient, make one run. */
  #toMessageId({ id, event }: Job): string {
    if (!event?.delivery) return id
    const name = toDeliveryName(event.delivery)
    const failed = this.#failed.get(name)
    return failed === undefined ? name : `${name} ${failed}`
  }

  #follow({ id, state }: EventRecord): void {
    if (!isFinal(state)) return
    this.#held.release(id)
    this.#waiting.delete(id)
    this.#untaken.delete(id)
    if (state !== 'failed' && state !== 'dropped') return
    const { delivery } = this.#parts.memory.kept.get(id) ?? {}
    if (delivery) this.#failed.set(toDeliveryName(delivery), id)
  }

  /** After a restart of the broker, which has lost what waited there. */
  #findLost(): void {
    const { memory, local, broker } = this.#parts
    // Another process may have taken over, and does this.
    if (!this.#hasLost || !this.answers.isActive) return
    this.#hasLost = false
    const now = Date.now()
    // Places in the stream before, which others have now.
    this.#waiting.clear()
    for (const { id, state, machine } of memory.events.list({ limit: Infinity, kind: 'webhook' })) {
      if (isFinal(state) || local.has(id)) continue
      // The same in each attempt, as one may be there without its acknowledgement.
      const messageId = `${id} ${randomUUID()}`
      // A worker may have it, or its answer, which comes first then.
      if (state === 'queued')
        this.#lost.set(id, { at: now + Math.min(graceMs, broker.lostAfterMs), messageId })
      // Its worker goes on, if it is still there.
      if (state === 'running' && machine !== undefined)
        this.#lost.set(id, { at: now + broker.lostAfterMs, messageId })
    }
    void this.tick()
  }

  /** Where the permissions of the broker allow it, this receiver hears of runs that a worker has ended. */
  #listen(nc: Link['nc']): void {
    if (this.#connection === nc) return
    this.#connection = nc
    nc.subscribe(terminatedSubject, {
      callback: (error, message) => {
        const seq = error ? undefined : parseTerminated(message.data)
        const [id] = [...this.#waiting].find(([, waiting]) => waiting.seq === seq) ?? []
        if (id !== undefined) void this.#ended(id)
      },
    })
  }

  async #ended(id: string): Promise<void> {
    await this.#settled(id)
    // Another worker runs it.
    if (this.answers.isHeard(id)) return
    const why = 'a worker could not open it: the machines use different queue keys'
    this.answers.fail(id, new DoorwardError('event-dropped', why))
  }

  /** Resolves when an event that was just published is in the store. */
  async #settled(id: string): Promise<void> {
    await this.#publishing.get(id)?.catch(() => undefined)
  }
}

const toDeliveryName = ({ webhook, hash: of }: NonNullable<AcceptedEvent['delivery']>): string =>
  hash('sha256', `${webhook} ${of}`)

/** The place in the stream of what an advisory is about. */
const parseTerminated = (data: Uint8Array): number | undefined => {
  try {
    return z.object({ stream_seq: z.int() }).parse(JSON.parse(Buffer.from(data).toString()))
      .stream_seq
  } catch {
    return undefined
  }
}
