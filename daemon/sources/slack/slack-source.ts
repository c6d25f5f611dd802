import type { StatusProblem } from '../../../shared/api/api.ts'
import { describeFeed } from '../../../shared/sources/feed.ts'
import { type DoorwardError, toStatusProblem } from '../../../shared/errors.ts'
import {
  giveToAll,
  type Source,
  SourceFault,
  type SourceServices,
  type SourceStatus,
  toPause,
} from '../source.ts'
import { openSocket, requestSocketUrl } from './connect.ts'
import { findPress, type SlackPress, toDelivery } from './envelope.ts'
import { type Envelope, SlackSocket, type SocketTimes, usualSocketTimes } from './socket.ts'

/*
 * The story of a socket of Slack:
 *
 *   apps.connections.open -> socket -> hello -> envelopes: the queue has it, then it is acknowledged
 *     -> Slack announces the end (every hour or so): a second socket, then the first one goes
 *     -> it falls silent or breaks: a pause that grows, and again
 *     -> Slack refuses the token or the app: the end, which status, doctor and an event tell
 *
 * Slack gives each envelope to any one of the open sockets, so all of them are heard until they are closed.
 */

export type SlackSourceParts = SourceServices & {
  readonly apiUrl: string
  /** The app-level token, and the variable that has it. */
  readonly token: { readonly token: string; readonly name: string }
  /** A press of one of our own buttons. */
  readonly pressed: (press: SlackPress) => Promise<void>
  readonly times?: Partial<SlackTimes>
}

type SlackTimes = SocketTimes & {
  /** A socket that lived as long was no failure. */
  readonly steady: number
  /** How long an older socket is heard after a newer one said hello. */
  readonly overlap: number
  /** After a crash Slack counts the lost sockets for a while. */
  readonly recount: number
}

const usualTimes: SlackTimes = {
  ...usualSocketTimes,
  steady: 30_000,
  overlap: 10_000,
  recount: 60_000,
}

export class SlackSource implements Source {
  readonly #parts: SlackSourceParts
  readonly #times: SlackTimes
  readonly #control = new AbortController()
  /** All that said hello and are not closed, the oldest first, with the time of that. */
  readonly #open = new Map<SlackSocket, number>()
  readonly #timers = new Set<NodeJS.Timeout>()
  #isOpening = false
  #isRetrying = false
  #failures = 0
  #state: SourceStatus['state'] = 'connecting'
  #since: number | undefined
  #lastEvent: number | undefined
  #fault: DoorwardError | undefined
  /** How many sockets of the app were those of other programs, at the last two greetings. */
  #others: readonly number[] = []

  constructor(parts: SlackSourceParts) {
    this.#parts = parts
    this.#times = { ...usualTimes, ...parts.times }
  }

  start(): void {
    void this.#connect()
  }

  stop(): Promise<void> {
    this.#control.abort()
    for (const timer of this.#timers) clearTimeout(timer)
    for (const socket of this.#open.keys()) socket.close()
    return Promise.resolve()
  }

  status(): SourceStatus {
    const problem = this.#problem()
    return {
      how: describeFeed('slack'),
      state: this.#state,
      ...(this.#state === 'connected' && { since: toTime(this.#since) }),
      ...(this.#lastEvent !== undefined && { lastEventAt: toTime(this.#lastEvent) }),
      ...(problem && { problem }),
    }
  }

  #problem(): StatusProblem | undefined {
    if (this.#fault) return toStatusProblem(this.#fault, 'doorward help slack')
    if (this.#others.length < 2 || this.#others.includes(0)) return undefined
    return {
      code: 'source-shared',
      detail: 'another program has a socket of this Slack app: each event goes to only one of them',
      hint: 'stop the other one, or make an app for each: doorward help slack',
    }
  }

  #isStopped(): boolean {
    return this.#control.signal.aborted || this.#state === 'failed'
  }

  async #connect(): Promise<void> {
    if (this.#isOpening || this.#isStopped()) return
    this.#isOpening = true
    const { apiUrl, token, now } = this.#parts
    const { signal } = this.#control
    try {
      const url = await requestSocketUrl(apiUrl, token, signal)
      const ws = await openSocket(url, signal)
      const end = () => ws.terminate()
      signal.addEventListener('abort', end, { once: true })
      const socket: SlackSocket = new SlackSocket(
        ws,
        {
          hello: (connections) => {
            signal.removeEventListener('abort', end)
            this.#greeted(socket, connections)
          },
          envelope: (envelope) => void this.#take(socket, envelope),
          ending: (reason) => this.#ending(socket, reason),
          closed: (fault) => {
            signal.removeEventListener('abort', end)
            this.#closed(socket, fault)
          },
        },
        now,
        this.#times,
      )
    } catch (error) {
      this.#isOpening = false
      if (signal.aborted) return
      this.#failed(
        error instanceof SourceFault ? error : new SourceFault('slack cannot be reached'),
      )
    }
  }

  #greeted(socket: SlackSocket, connections: number | undefined): void {
    const nowMs = this.#parts.now()
    const older = [...this.#open.keys()]
    this.#isOpening = false
    this.#open.set(socket, nowMs)
    if (this.#state !== 'connected') this.#since = nowMs
    this.#state = 'connected'
    this.#fault = undefined
    for (const one of older) this.#after(this.#times.overlap, () => one.close())
    if (connections === undefined) return
    const others = Math.max(0, connections - this.#open.size)
    const isFirst = others > 0 && (this.#others.at(-1) ?? 0) === 0
    this.#others = [...this.#others, others].slice(-2)
    if (isFirst) this.#after(this.#times.recount, () => void this.#connect())
  }

  #ending(socket: SlackSocket, reason: string): void {
    if (reason === 'link_disabled') {
      this.#fail(
        new SourceFault('Socket Mode is switched off for this Slack app', {
          hint: 'switch it on: the app, Socket Mode, Enable Socket Mode',
          isFinal: true,
        }),
      )
      return
    }
    if (this.#isNewest(socket)) this.#again(this.#open.get(socket))
  }

  #closed(socket: SlackSocket, fault: SourceFault | undefined): void {
    const sinceMs = this.#open.get(socket)
    const wasNewest = this.#isNewest(socket)
    this.#open.delete(socket)
    if (sinceMs === undefined) this.#isOpening = false
    if (this.#isStopped()) return
    if (this.#open.size === 0) this.#state = 'waiting'
    if (fault) this.#failed(fault)
    else if (wasNewest) this.#again(sinceMs)
  }

  #isNewest(socket: SlackSocket): boolean {
    return [...this.#open.keys()].at(-1) === socket
  }

  /** Opens another socket: immediately after one that was steady, else after a pause that grows. */
  #again(sinceMs = 0): void {
    const livedMs = this.#parts.now() - sinceMs
    this.#failures = livedMs < this.#times.steady ? this.#failures + 1 : 0
    this.#retry(this.#failures === 0 ? 0 : toPause(this.#failures))
  }

  /** A socket could not be opened. */
  #failed(fault: SourceFault): void {
    if (fault.isFinal) return this.#fail(fault)
    this.#failures += 1
    if (this.#open.size === 0) {
      this.#state = 'waiting'
      // One short break is no news.
      if (this.#failures > 1) this.#fault = fault
    }
    this.#retry(toPause(this.#failures, fault.retryAfterMs))
  }

  /** A socket that is being opened, or waits for that, is enough. */
  #retry(ms: number): void {
    if (this.#isOpening || this.#isRetrying) return
    this.#isRetrying = true
    this.#after(ms, () => {
      this.#isRetrying = false
      void this.#connect()
    })
  }

  /** The end: only a change of the configuration helps. */
  #fail(fault: SourceFault): void {
    if (this.#isStopped()) return
    this.#state = 'failed'
    this.#fault = fault
    for (const timer of this.#timers) clearTimeout(timer)
    for (const socket of this.#open.keys()) socket.close()
    this.#parts.tell(fault)
  }

  async #take(socket: SlackSocket, envelope: Envelope): Promise<void> {
    // Slack sends again what is not acknowledged: to the daemon that takes over.
    if (!this.#parts.isServing() || this.#control.signal.aborted) return
    this.#lastEvent = this.#parts.now()
    const press = findPress(envelope, this.#parts.apiUrl)
    if (press) {
      socket.acknowledge(envelope.id)
      await this.#parts.pressed(press)
    } else if (await giveToAll(toDelivery(envelope), this.#parts)) socket.acknowledge(envelope.id)
  }

  #after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      work()
    }, ms)
    this.#timers.add(timer)
  }
}

const toTime = (ms = 0): string => new Date(ms).toISOString()
