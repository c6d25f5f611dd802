import { DoorwardError } from '../../shared/errors.ts'
import type { Listeners, Place } from '../http/server.ts'
import type { Intake } from '../intake.ts'
import type { Log } from '../log/log.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { Memory } from '../state.ts'
import { type Address, type Channel, type FromNew, type FromOld, protocol } from './protocol.ts'
import { copyError } from '../util/error-copy.ts'
import { restoreEvent, restoreLateEvent, restoreSnapshot, type Snapshot } from './snapshot.ts'

/*
 * A restart, in the new process: `hello` from the old one (which sockets it has) -> bind the others ->
 * ready -> take over the lock and the tokens -> the sockets and a snapshot of the memory -> serve -> follow
 * the events that the old one still runs.
 *
 * If the old process is killed before the end, this one goes on as if a person had started it.
 */

type Queued = Snapshot['queued'][number]

type FollowParts = {
  readonly memory: Memory
  readonly intake: Pick<Intake, 'remote' | 'queue'>
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
  #hasFinished = false

  private constructor(channel: Channel<FromNew, FromOld>, places: readonly Place[]) {
    this.#channel = channel
    this.places = places
  }

  /** Waits for its first message. Throws `restart-failed` when its version is too different. */
  static async meet(channel: Channel<FromNew, FromOld>): Promise<Predecessor> {
    const hello = await channel.next('hello')
    if (hello && hello.protocol !== protocol) {
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
    this.#channel.listen((message, socket) => {
      if (message.kind === 'socket' && socket) parts.listeners.take(message.place, socket, log)
      else if (message.kind === 'serve') restore(message.snapshot, parts)
      else if (message.kind === 'event') {
        restoreEvent(memory, message)
        intake.remote.note(message.record)
        intake.queue.trigger()
      } else if (message.kind === 'late') {
        restoreLateEvent(memory, message)
        parts.requeue(message)
      } else if (message.kind === 'finished') this.#hasFinished = true
    })
    const awaitEnd = async (): Promise<void> => {
      await this.#channel.closed
      if (this.#hasFinished) return
      intake.remote.drop(memory)
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
    void this.#channel.send({ kind: 'ready', protocol, ...ready })
    return (await lead)?.unsaved
  }

  /** Resolves when `follow` has the snapshot and the sockets, or when the old one was killed. */
  async awaitSockets(): Promise<void> {
    const serve = this.#channel.next('serve')
    void this.#channel.send({ kind: 'leading' })
    await serve
  }

  async serving(address: Address): Promise<void> {
    await this.#channel.send({ kind: 'serving', ...address })
  }

  async failed(error: unknown): Promise<void> {
    await this.#channel.send({ kind: 'failed', error: copyError(error) })
  }

  /** Cancels an event that it still runs. */
  cancel(id: string): void {
    void this.#channel.send({ kind: 'cancel', id })
  }

  /** Stops it too, `now` without waiting for agents; resolves when it has exited. */
  async stop(now: boolean): Promise<void> {
    void this.#channel.send({ kind: 'stop', now })
    await this.#channel.closed
  }
}

const restore = (snapshot: Snapshot, { memory, intake, requeue }: FollowParts): void => {
  restoreSnapshot(memory, snapshot)
  for (const { record } of snapshot.events.events) intake.remote.note(record)
  for (const queued of snapshot.queued) requeue(queued)
}
