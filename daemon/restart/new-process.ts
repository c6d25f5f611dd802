import type { EventRecord } from '../../shared/api/api.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { currentStage } from '../../shared/event-stages.ts'
import type { History } from '../history/history.ts'
import type { Listeners, Place } from '../http/server.ts'
import type { Intake } from '../intake.ts'
import type { Log } from '../log/log.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { RemoteLoad } from '../queue/queue.ts'
import { handoverVersion } from '../../shared/version.ts'
import type { Memory } from '../state.ts'
import { type Address, type Channel, type FromNew, type FromOld } from './protocol.ts'
import { copyError } from '../util/error-copy.ts'
import { restoreEnded, restoreSnapshot, type Snapshot } from './snapshot.ts'

/*
 * A restart, in the new process: `hello` from the old one (which sockets it has) -> bind the others ->
 * ready -> take over the lock and the tokens -> the sockets and a snapshot of the memory -> serve -> learn
 * how each event ended that the old one still ran.
 *
 * If the old process is killed before the end, this one goes on as if a person had started it.
 */

type Queued = Snapshot['queued'][number]

type FollowParts = {
  readonly memory: Memory
  readonly history: Pick<History, 'restore'>
  readonly intake: Pick<Intake, 'queue'>
  readonly listeners: Pick<Listeners, 'take'>
  readonly log: Log
  /** Queues an event that the old process has accepted. */
  readonly requeue: (queued: Queued) => void
  /** The old process was killed after it handed over. */
  readonly onKilled: () => void
}

/** The old process, as the new one sees it. */
export class Predecessor {
  readonly #channel: Channel<FromNew, FromOld>
  /** The places of the sockets that it can pass. */
  readonly places: readonly Place[]
  readonly #runs = new RemoteRuns()
  #hasFinished = false

  private constructor(channel: Channel<FromNew, FromOld>, places: readonly Place[]) {
    this.#channel = channel
    this.places = places
  }

  /** Waits for its first message. Throws `restart-failed` when its version is too different. */
  static async meet(channel: Channel<FromNew, FromOld>): Promise<Predecessor> {
    const hello = await channel.next('hello')
    if (hello && hello.protocol !== handoverVersion) {
      const error = new DoorwardError(
        'restart-failed',
        'the running daemon is of a version that cannot hand over to this one',
        { hint: 'doorward daemon stop, then: doorward daemon start' },
      )
      await channel.send({ kind: 'failed', error: copyError(error) })
      throw error
    }
    return new Predecessor(channel, hello?.places ?? [])
  }

  /** Resolves when it has exited, or was killed. */
  get ended(): Promise<void> {
    return this.#channel.closed
  }

  /** Applies what it sends from now on. */
  follow(parts: FollowParts): void {
    const { memory, intake, log, onKilled } = parts
    // Nothing of the snapshot may run before the old process knows that this one serves.
    intake.queue.pause()
    intake.queue.share(this.#runs)
    this.#channel.listen((message, socket) => {
      if (message.kind === 'socket' && socket) parts.listeners.take(message.place, socket, log)
      else if (message.kind === 'serve') this.#restore(message.snapshot, parts)
      else if (message.kind === 'ended') {
        this.#runs.end(message.record.id)
        restoreEnded(memory, message)
        intake.queue.trigger()
      } else if (message.kind === 'finished') this.#hasFinished = true
    })
    const awaitEnd = async (): Promise<void> => {
      await this.#channel.closed
      if (this.#hasFinished) return
      this.#runs.drop(memory)
      intake.queue.trigger()
      log.warn('the daemon before the restart was killed')
      onKilled()
    }
    void awaitEnd()
  }

  /** Reports that it can serve; resolves with the unsaved tokens, or undefined when the old one was killed. */
  async awaitLeadership(
    ready: Pick<FromNew & { kind: 'ready' }, 'version' | 'lockToken' | 'places'>,
  ): Promise<readonly TokenRecord[] | undefined> {
    const lead = this.#channel.next('lead')
    void this.#channel.send({ kind: 'ready', protocol: handoverVersion, ...ready })
    return (await lead)?.unsaved
  }

  /** Resolves when `follow` has the snapshot and the sockets, or when the old one was killed. */
  async awaitSockets(): Promise<void> {
    const serve = this.#channel.next('serve')
    void this.#channel.send({ kind: 'leading' })
    await serve
  }

  #restore(snapshot: Snapshot, { memory, history, requeue }: FollowParts): void {
    restoreSnapshot(memory, snapshot)
    history.restore(snapshot.history ?? [])
    this.#runs.start(snapshot.events.events.map(({ record }) => record))
    for (const queued of snapshot.queued) requeue(queued)
  }

  async serving(address: Address): Promise<void> {
    await this.#channel.send({ kind: 'serving', ...address })
  }

  async failed(error: unknown): Promise<void> {
    await this.#channel.send({ kind: 'failed', error: copyError(error) })
  }

  /** Stops it too, `now` without waiting for agents; resolves when it has exited. */
  async stop(now: boolean): Promise<void> {
    void this.#channel.send({ kind: 'stop', now })
    await this.#channel.closed
  }
}

/** The events that the old process still runs: they count towards the limits of agents here. */
export class RemoteRuns implements RemoteLoad {
  readonly #records = new Map<string, EventRecord>()

  start(records: readonly EventRecord[]): void {
    for (const record of records) {
      const { id, kind, state, machine } = record
      const isThere = state === 'delivering' || (state === 'running' && machine === undefined)
      if (kind === 'webhook' && isThere) this.#records.set(id, record)
    }
  }

  end(id: string): void {
    this.#records.delete(id)
  }

  of(agentName: string): number {
    return this.#running().filter(({ agent }) => agent === agentName).length
  }

  agents(): number {
    return this.#running().length
  }

  events(): number {
    return this.#records.size
  }

  /** The old process was killed: drops what it had not finished. */
  drop({ events, kept, deliveries }: Pick<Memory, 'events' | 'kept' | 'deliveries'>): void {
    for (const { id, state } of this.#records.values()) {
      const delivery = kept.get(id)?.delivery
      if (delivery) deliveries.forget(delivery, id)
      events.update(id, {
        state: 'dropped',
        // With the answer in memory a retry only delivers.
        stage: currentStage[state] ?? 'queue',
        code: 'event-dropped',
        detail: 'the daemon that ran it was killed: retry it, or deliver it again from the sender',
      })
    }
    this.#records.clear()
  }

  #running(): readonly EventRecord[] {
    return [...this.#records.values()].filter(({ state }) => state === 'running')
  }
}
