import type { AcceptedEvent } from '../../webhook/events/accepted-event.ts'
import type { RunEvent } from '../../webhook/events/runner.ts'
import { withDeadline } from '../../../shared/deadline.ts'
import { errorName } from '../../../shared/errors.ts'
import { type Log, oncePerMinute } from '../../log/log.ts'
import type { Memory } from '../../state.ts'
import type { EventQueue } from '../event-queue.ts'
import type { Job, QueueResult } from '../queue.ts'
import { restoreAccepted } from './answers.ts'
import { type Broker, getCode, heldStream, heldSubject, type Link, unavailable } from './broker.ts'
import type { Identity } from '../../util/identity.ts'
import { readHeld, writeHeld } from './messages.ts'

/*
 * An event that waits for a newer one with its key is in the queue in memory, and with the broker, for the next
 * process where this one is killed: in a stream of its own, from which no worker takes anything. It is deleted
 * there once it is published as a run, or over.
 */

type HeldEventsParts = {
  readonly broker: Broker
  readonly local: EventQueue
  readonly memory: Memory
  readonly identity: () => Identity
  readonly requeue: RunEvent['requeue']
  readonly log: Log
}

/** How long a sender waits for what waited before. */
const readLimitMs = 2000

export class HeldEvents {
  readonly #parts: HeldEventsParts
  /** Where in the stream each of them is; undefined while it is not there. */
  readonly #places = new Map<string, number | undefined>()
  /** Those of the process before, which may have published them as runs. */
  readonly #restored = new Set<string>()
  readonly #toDelete = new Set<number>()
  /** This process knows of nothing: it has taken over from no other. */
  #isFirst: boolean | undefined
  #reading: Promise<void> | undefined
  #hasRead = false
  readonly #refused = oncePerMinute((count) =>
    this.#parts.log.warn(
      { count },
      'what waits at NATS cannot be opened: another program has written it',
    ),
  )

  constructor(parts: HeldEventsParts) {
    this.#parts = parts
    const { broker } = parts
    broker.onLink((link, isNew) => {
      if (isNew) this.#forgetPlaces()
      this.#ensureRead(link)
    })
  }

  start(): void {
    const { memory, broker } = this.#parts
    this.#isFirst ??= memory.runs.madeAt === undefined
    this.#ensureRead(broker.link)
  }

  /** The process before may have published it as a run. */
  isRestored(id: string): boolean {
    return this.#restored.has(id)
  }

  /** True for one that the next process would have again. */
  isPlaced(id: string): boolean {
    return this.#places.get(id) !== undefined
  }

  /** Adds a job to the queue in memory, once the broker has its event. Throws as `Broker.publish`. */
  async place(job: Job, event: AcceptedEvent): Promise<readonly QueueResult[]> {
    const { broker, local } = this.#parts
    const { id } = job
    await broker.untilReady()
    // What waited before comes first, so that this one replaces it.
    this.#ensureRead(broker.link)
    if (this.#reading) await withDeadline(readLimitMs, this.#reading, () => undefined)
    if (!this.#hasRead) throw unavailable('what waits at NATS cannot be read')
    this.#places.set(id, await this.#publish(id, event))
    try {
      return await local.addAll([job])
    } catch (error) {
      this.release(id)
      throw error
    }
  }

  /** It was published as a run, or is over. */
  release(id: string): void {
    const seq = this.#places.get(id)
    this.#places.delete(id)
    this.#restored.delete(id)
    if (seq !== undefined) this.#delete(seq)
  }

  /** Every 10 seconds: brings to the broker what it has lost, and deletes what it still has. */
  async tick(): Promise<void> {
    this.#ensureRead(this.#parts.broker.link)
    for (const seq of this.#toDelete) this.#delete(seq)
    for (const [id, seq] of this.#places) {
      const event = this.#parts.memory.kept.get(id)
      if (seq !== undefined || !event) continue
      try {
        const placed = await this.#publish(id, event)
        if (this.#places.has(id)) this.#places.set(id, placed)
        else this.#delete(placed)
      } catch {
        // The next time.
      }
    }
  }

  async #publish(id: string, event: AcceptedEvent): Promise<number> {
    const { broker, identity } = this.#parts
    const { id: receiver, key } = identity()
    const message = writeHeld(id, event, key)
    const { seq } = await broker.publish(`${heldSubject}.${receiver}`, message, id)
    return seq
  }

  #delete(seq: number): void {
    const { link } = this.#parts.broker
    this.#toDelete.add(seq)
    link?.jsm.streams.deleteMessage(heldStream, seq).then(
      () => this.#toDelete.delete(seq),
      // With a code, the broker says that it is not there.
      (error: unknown) => getCode(error) !== undefined && this.#toDelete.delete(seq),
    )
  }

  /** The stream is another one: others have these places now. */
  #forgetPlaces(): void {
    this.#toDelete.clear()
    for (const id of this.#places.keys()) this.#places.set(id, undefined)
    void this.tick()
  }

  #ensureRead(link: Link | undefined): void {
    if (!link || this.#isFirst === undefined || this.#hasRead) return
    this.#reading ??= this.#read(link).finally(() => (this.#reading = undefined))
  }

  /** Never rejects. */
  async #read({ jsm }: Link): Promise<void> {
    const { identity, log } = this.#parts
    const subject = `${heldSubject}.${identity().id}`
    try {
      for (let seq = 1; ;) {
        // The broker finds the next of this subject; the types do not know it.
        const query = { seq, next_by_subj: subject }
        const message = await jsm.streams.getMessage(heldStream, query)
        if (!message) break
        seq = message.seq + 1
        this.#take(message.seq, message.data)
      }
      this.#hasRead = true
    } catch (error) {
      log.warn({ error: errorName(error) }, 'what waits at NATS cannot be read')
    }
  }

  #take(seq: number, bytes: Uint8Array): void {
    const { memory, local, identity, requeue } = this.#parts
    const held = readHeld(bytes, identity().key)
    if (!held) {
      this.#refused()
      return this.#delete(seq)
    }
    const { id, event } = held
    if (local.has(id)) this.#places.set(id, seq)
    else if (memory.events.record(id)) this.#delete(seq)
    else if (this.#isFirst) {
      this.#places.set(id, seq)
      this.#restored.add(id)
      restoreAccepted(memory, id, event)
      requeue(id, event)
    }
  }
}
