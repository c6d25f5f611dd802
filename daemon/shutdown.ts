import type { LiveConfig } from './config/live-config.ts'
import type { DaemonFile } from './daemon-file.ts'
import { isFinal } from './events/event-record.ts'
import type { EventStore } from './events/event-store.ts'
import type { Listeners } from './http/server.ts'
import type { EventStream } from './http/sse.ts'
import type { Intake } from './intake.ts'
import type { Leadership } from './leadership.ts'
import type { Log } from './log/log.ts'
import type { Home } from '../shared/home/home.ts'
import type { Predecessor } from './restart/new-process.ts'
import type { Succession, Successor } from './restart/succession.ts'
import { nameMainProcess, type StandIn, standIn } from './restart/supervisor.ts'
import type { Sources } from './sources/sources.ts'
import type { DeliveryWaiters } from './webhook/payload-shape.ts'
import type { Approvals } from './webhook/approvals/approvals.ts'
import type { Tunnel } from './tunnel/tunnel.ts'
import type { RejectionLog } from './webhook/rejection-log.ts'

type ShutdownParts = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  /** What started this process watches it. */
  readonly isForeground: boolean
  readonly predecessor: Pick<Predecessor, 'ended' | 'stop'> | undefined
  readonly succession: Pick<Succession, 'successor' | 'settled'>
  readonly intake: Pick<Intake, 'queue' | 'unfinished' | 'drain'>
  readonly live: Pick<LiveConfig, 'close'>
  readonly leadership: Pick<Leadership, 'refuseLogins' | 'close' | 'release'>
  readonly listeners: Pick<Listeners, 'leave' | 'cut' | 'close'>
  readonly daemonFile: Pick<DaemonFile, 'remove'>
  readonly stream: Pick<EventStream, 'hint' | 'close'>
  readonly approvals: Pick<Approvals, 'close' | 'release'>
  readonly tunnel: Pick<Tunnel, 'close' | 'release'>
  readonly sources: Pick<Sources, 'stop' | 'leaveChats'>
  readonly learners: Pick<DeliveryWaiters, 'close'>
  readonly refusals: Pick<RejectionLog, 'close'>
  readonly memory: { readonly events: Pick<EventStore, 'list' | 'record'> }
  readonly log: Log
  readonly closeLog: () => Promise<void>
}

/** How long connections from before a restart are served: longer than a request may take. */
const leaveLimitMs = 35_000

/** Output that is not read must not keep the process alive. */
const exitDelayMs = 1000

/**
 * How a daemon exits. The one that serves drains, closes everything and removes its files in `run/`. One
 * that a restart has replaced retires: it finishes what it had accepted, and leaves those files alone. A
 * stop always means the daemon that serves: where that is another process, the stop is passed on.
 */
export class Shutdown {
  readonly #parts: ShutdownParts
  readonly #stopping = new AbortController()
  #stopped: Promise<void> | undefined
  #retired: Promise<void> | undefined
  /** What remains of this process for what watches it. */
  #standIn: StandIn | undefined

  constructor(parts: ShutdownParts) {
    this.#parts = parts
  }

  /** Aborted once the daemon stops. */
  get signal(): AbortSignal {
    return this.#stopping.signal
  }

  /** Finishes what was accepted, then closes everything, so that the process exits. */
  async stop(): Promise<void> {
    return this.#standIn ? this.#standIn.stop() : this.#stopHere()
  }

  /** For a second signal: does not wait for agents. */
  abort(): void {
    if (this.#standIn) void this.#standIn.stop()
    else this.#abortHere()
  }

  /** Stops as the home was deleted: no command could stop this daemon any more. */
  homeRemoved(): void {
    if (this.#stopped || this.#retired) return
    const { home, log } = this.#parts
    log.error('the home was deleted: stopping')
    process.stderr.write(`doorward: the home ${home.root} was deleted, so the daemon exits\n`)
    void this.#stopHere()
  }

  /** Another daemon has replaced this one. */
  retire(successor: Successor): void {
    this.#retired = this.#retire(successor).then(exitSoon)
  }

  /** The daemon that has replaced this one is being stopped. */
  stopWithSuccessor(now: boolean): void {
    if (now) this.#abortHere()
    else void this.#stopHere()
  }

  async #stopHere(): Promise<void> {
    const { succession } = this.#parts
    this.#stopping.abort()
    const wasServing = !this.#retired
    await succession.settled()
    // A restart was too far to be cancelled.
    if (wasServing && this.#retired) succession.successor()?.stop()
    this.#stopped ??= this.#retired
      ? this.#hurry(this.#retired)
      : this.#closeEverything().then(exitSoon)
    return this.#stopped
  }

  #abortHere(): void {
    void this.#parts.predecessor?.stop(true)
    this.#parts.intake.queue.abort()
  }

  /** Retires within `queue.drain_timeout`. */
  async #hurry(retired: Promise<void>): Promise<void> {
    const { predecessor, listeners, intake } = this.#parts
    void predecessor?.stop(false)
    listeners.cut()
    await intake.drain()
    await retired
  }

  async #retire(successor: Successor): Promise<void> {
    const { home, processEnv, isForeground, predecessor, intake, log } = this.#parts
    // First: from here on every new connection goes to the other process.
    const left = this.#parts.listeners.leave(leaveLimitMs)
    this.#parts.tunnel.release()
    this.#parts.approvals.release()
    this.#parts.sources.leaveChats()
    const disconnected = this.#parts.sources.stop()
    this.#parts.learners.close()
    this.#parts.stream.close()
    const isWatched = isForeground || !(await nameMainProcess(successor.pid, processEnv))
    if (isWatched) this.#standIn = standIn(home)
    log.info(
      { unfinished: intake.unfinished() },
      'another process serves, finishing what runs here',
    )
    await this.#parts.live.close()
    await Promise.all([left, disconnected])
    await Promise.all([intake.queue.drain(), predecessor?.ended])
    await intake.queue.close()
    this.#parts.refusals.close()
    log.info('finished')
    await this.#parts.closeLog()
    await successor.finish()
    if (this.#standIn) process.exitCode = (await this.#standIn.ended) ? 0 : 1
  }

  /** It answers until agents have ended, as they may ask it for tokens. */
  async #closeEverything(): Promise<void> {
    const { intake, predecessor, leadership, log } = this.#parts
    const { events } = this.#parts.memory
    log.info('stopping')
    const open = events.list({ limit: Infinity }).filter(({ state }) => !isFinal(state))
    const disconnected = this.#parts.sources.stop()
    const drained = Promise.all([intake.drain(), predecessor?.stop(false), disconnected])
    this.#parts.learners.close()
    leadership.refuseLogins()
    this.#parts.stream.hint()
    await this.#parts.live.close()
    await drained
    await this.#parts.approvals.close()
    this.#parts.sources.leaveChats()
    const isLost = (id: string) => ['failed', 'dropped'].includes(events.record(id)?.state ?? '')
    if (this.#parts.isForeground) printLost(open.filter(({ id }) => isLost(id)).length)
    await Promise.all([leadership.close(), intake.queue.close(), this.#parts.tunnel.close()])
    this.#parts.stream.close()
    await this.#parts.listeners.close()
    await this.#parts.daemonFile.remove()
    await leadership.release()
    this.#parts.refusals.close()
    log.info('stopped')
    await this.#parts.closeLog()
  }
}

const exitSoon = () => void setTimeout(() => process.exit(), exitDelayMs).unref()

/** The person at the terminal does not see the log, and with the memory goes what could be retried. */
const printLost = (count: number): void => {
  if (count === 0) return
  const [events, them] = count === 1 ? ['event', 'it'] : ['events', 'them']
  process.stderr.write(
    `doorward: ${count} accepted ${events} failed or did not run before the stop; the log names ${them}: deliver ${them} again from the sender\n`,
  )
}
