import { type ChildProcess, spawn } from 'node:child_process'
import type { Restarted } from '../../shared/api/api.ts'
import { daemonMain, nodeOptions } from '../../shared/client/spawn.ts'
import { DoorwardError, errorName, systemCode } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import type { Listeners, Place } from '../http/server.ts'
import type { History } from '../history/history.ts'
import type { EventStream } from '../http/sse.ts'
import type { Intake } from '../intake.ts'
import type { Leadership } from '../leadership.ts'
import type { Log } from '../log/log.ts'
import type { TokenRecord } from '../oauth/tokens/token-record.ts'
import type { Shutdown } from '../shutdown.ts'
import { handoverVersion } from '../../shared/version.ts'
import type { Memory } from '../state.ts'
import { Channel, type FromNew, type FromOld } from './protocol.ts'
import { isFinal } from '../events/event-record.ts'
import { copyEnded, takeSnapshot } from './snapshot.ts'
import type { Succession, Successor } from './succession.ts'

/*
 * A restart, in the process that runs:
 *
 *   read the configuration -> start the new process -> it is ready -> refresh no more tokens -> pass the
 *   lock -> it leads -> start no more jobs, send a snapshot and the listening sockets -> it serves ->
 *   close the sockets, finish what runs, exit
 *
 * Until the new process serves, the sockets are open here too, so no connection is refused. A failure
 * before that kills the new process, and this one goes on. Afterwards this one runs what had begun, and what it
 * accepts on a connection from before, and sends how each event ended. It reads the tokens that the new process
 * stores.
 */

type RestarterParts = {
  readonly home: Home
  readonly listeners: Pick<Listeners, 'places' | 'sockets'>
  readonly memory: Memory
  readonly history: Pick<History, 'paused' | 'unwritten'>
  readonly stream: Pick<EventStream, 'silence' | 'close'>
  readonly intake: Pick<Intake, 'queue' | 'unfinished'>
  readonly leadership: Pick<Leadership, 'suspend' | 'transferTo' | 'resume'>
  readonly succession: Succession
  readonly log: Log
  /** Throws what is wrong with the configuration. */
  readonly check: () => Promise<unknown>
  /** Serves again after a new process that failed. */
  readonly serveAgain: () => Promise<void>
  readonly shutdown: Pick<Shutdown, 'signal' | 'retire' | 'stopWithSuccessor'>
}

const readyLimitMs = 15_000
const stepLimitMs = 10_000

export class Restarter {
  readonly #parts: RestarterParts

  constructor(parts: RestarterParts) {
    this.#parts = parts
  }

  /** Throws `config-invalid` or `restart-failed`; this daemon goes on then. */
  readonly restart = async (): Promise<Restarted> => {
    const { succession } = this.#parts
    if (succession.successor())
      throw new DoorwardError('stopping', 'the daemon was restarted just now')
    return succession.track(async () => this.#run())
  }

  async #run(): Promise<Restarted> {
    const { home, listeners, intake, succession, shutdown, log } = this.#parts
    this.#refuseWhenStopping()
    await this.#parts.check()
    const child = await NewProcess.start(home, listeners.places)
    log.info({ successor: child.pid }, 'restarting')
    const kill = () => void child.kill()
    shutdown.signal.addEventListener('abort', kill)
    try {
      // A stop cancels the restart until then; what follows takes seconds at most.
      const ready = await child
        .next('ready', readyLimitMs)
        .finally(() => shutdown.signal.removeEventListener('abort', kill))
      this.#refuseWhenStopping()
      if (ready.protocol !== handoverVersion)
        throw failed('this daemon cannot hand over to its version', stopAndStart)
      const successor = await succession.decide(this.#switchTo(child, ready))
      shutdown.retire(successor)
      const { pid, url, publicUrl, version, startedAt } = successor
      return {
        status: 'restarted',
        pid,
        url,
        ...(publicUrl !== undefined && { publicUrl }),
        version,
        startedAt,
        previous: { pid: process.pid, unfinished: intake.unfinished() },
      }
    } catch (error) {
      await child.kill()
      log.warn({ error: errorName(error) }, 'restart failed')
      if (shutdown.signal.aborted)
        throw new DoorwardError('stopping', 'the daemon was stopped during its restart', {
          hint: 'doorward daemon start',
        })
      throw error instanceof DoorwardError ? error : failed(errorName(error))
    }
  }

  async #switchTo(child: NewProcess, ready: FromNew & { kind: 'ready' }): Promise<Successor> {
    const { leadership, intake, memory, history, listeners, stream, shutdown } = this.#parts
    const { channel } = child
    let unfollow = (): void => undefined
    const unsaved = await leadership.suspend()
    try {
      await leadership.transferTo(ready.lockToken)
      void channel.send({ kind: 'lead', unsaved })
      await child.next('leading', stepLimitMs)
      await history.paused()
      // In one turn: an end is either in the snapshot or sent after it. From here on the new process numbers
      // the changes.
      stream.silence(true)
      const snapshot = takeSnapshot(memory, intake.queue.pause(), history.unwritten())
      unfollow = this.#sendEnds(channel)
      const sockets = listeners.sockets()
      for (const place of ready.places)
        void channel.send({ kind: 'socket', place }, sockets.get(place))
      channel.listen((message) => {
        if (message.kind === 'stop') shutdown.stopWithSuccessor(message.now)
      })
      void channel.send({ kind: 'serve', snapshot })
      const { url, publicUrl, startedAt } = await child.next('serving', stepLimitMs)
      intake.queue.handOver(new Set(snapshot.queued.map(({ id }) => id)))
      const { pid, stop, finish } = child
      return { pid, version: ready.version, url, publicUrl, startedAt, stop, finish }
    } catch (error) {
      unfollow()
      // First, so that no two processes do the same.
      await child.kill()
      await this.#goOn(unsaved)
      throw error
    }
  }

  #sendEnds(channel: NewProcess['channel']): () => void {
    const { memory } = this.#parts
    return memory.events.follow(({ record }) => {
      if (record.kind !== 'webhook' || !isFinal(record.state)) return
      const ended = copyEnded(memory, record)
      if (ended) void channel.send({ kind: 'ended', ...ended })
    })
  }

  /** After a new process that failed. On a full disk not all of it may work, but events go on. */
  async #goOn(unsaved: readonly TokenRecord[]): Promise<void> {
    const { leadership, intake, stream, serveAgain, log } = this.#parts
    try {
      await leadership.resume(unsaved)
      await serveAgain()
    } catch (error) {
      log.error({ error: errorName(error) }, 'cannot go on with everything after a failed restart')
    }
    intake.queue.resume()
    stream.silence(false)
    // Clients reconnect, and get what was not sent.
    stream.close()
  }

  #refuseWhenStopping(): void {
    if (this.#parts.shutdown.signal.aborted)
      throw new DoorwardError('stopping', 'the daemon is stopping')
  }
}

const stopAndStart = 'doorward daemon stop, then: doorward daemon start'

/** The new daemon as a child of this one. */
class NewProcess {
  readonly #child: ChildProcess
  readonly pid: number
  readonly channel: Channel<FromOld, FromNew>
  readonly exited: Promise<void>
  #how = 'said nothing'

  private constructor(child: ChildProcess, pid: number) {
    this.#child = child
    this.pid = pid
    this.channel = new Channel(child)
    this.exited = new Promise<void>((resolve) => {
      child.once('exit', (code, signal) => {
        this.#how = `exited with ${signal ?? code}`
        resolve()
      })
    })
  }

  /**
   * Starts the daemon that is on the disk now, with the same Node and environment. Throws `restart-failed`
   * when it cannot be started.
   */
  static async start(home: Home, places: readonly Place[]): Promise<NewProcess> {
    const args = [...nodeOptions, daemonMain, '--home', home.root, '--take-over']
    const child = spawn(process.execPath, args, {
      cwd: home.root,
      detached: true,
      windowsHide: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      // Dates and Maps stay what they are, which JSON would turn into text.
      serialization: 'advanced',
    })
    if (child.pid === undefined) {
      const error = await new Promise<unknown>((resolve) => child.once('error', resolve))
      throw failed(`${process.execPath} cannot be run (${systemCode(error)})`)
    }
    const started = new NewProcess(child, child.pid)
    void started.channel.send({ kind: 'hello', protocol: handoverVersion, places })
    return started
  }

  /** Waits for a message. Throws `restart-failed` when the process fails, exits or takes longer. */
  async next<Kind extends FromNew['kind']>(
    kind: Kind,
    limitMs: number,
  ): Promise<FromNew & { kind: Kind }> {
    const { channel, exited } = this
    let timer: NodeJS.Timeout | undefined
    let unlisten = (): unknown => undefined
    try {
      return await new Promise((resolve, reject) => {
        unlisten = channel.listen((message) => {
          if (message.kind === 'failed') reject(failed(message.error.message, message.error.hint))
          else if (message.kind === kind) resolve(message as FromNew & { kind: Kind })
        })
        const late = failed(`it was not ready within ${limitMs / 1000} s`)
        timer = setTimeout(() => reject(late), limitMs)
        void exited.then(() => reject(failed(`it ${this.#how}`)))
      })
    } finally {
      clearTimeout(timer)
      unlisten()
    }
  }

  /** Stops it, as a person would. */
  readonly stop = (): void => {
    this.#child.kill('SIGTERM')
  }

  /** Resolves when it has exited. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }

  /** Reports that everything here is finished; it no longer keeps this process alive. */
  readonly finish = async (): Promise<void> => {
    await this.channel.send({ kind: 'finished' })
    this.channel.close()
    this.#child.unref()
  }
}

/** Why the old daemon goes on. */
const failed = (why: string, hint = 'doorward daemon logs'): DoorwardError =>
  new DoorwardError('restart-failed', `the new daemon did not start, the old one goes on: ${why}`, {
    hint,
  })
