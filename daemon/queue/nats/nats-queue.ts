import { parseQueueKeys } from '../../../shared/config/queue.ts'
import { errorName } from '../../../shared/errors.ts'
import type { Home } from '../../../shared/home/home.ts'
import type { Log } from '../../log/log.ts'
import type { Memory } from '../../state.ts'
import type { ByteBudget } from '../../util/byte-budget.ts'
import type { Engine } from '../../webhook/engine.ts'
import { EventQueue } from '../event-queue.ts'
import type { Job, Queue, QueueLimits, QueueResult, RemoteLoad } from '../queue.ts'
import { neededAgents } from './agent-faults.ts'
import { Broker, type QueueSettings, unavailable } from './broker.ts'
import { Receiver } from './receiver.ts'
import { type Identity, readIdentity } from '../../util/identity.ts'
import { Machines } from './machines.ts'
import { Worker } from './worker.ts'

export type NatsQueueParts = {
  /** Runs and delivers here. */
  readonly local: EventQueue
  readonly budget: ByteBudget
  /** Those at the start. */
  readonly settings: QueueSettings
  readonly home: Home
  readonly memory: Memory
  readonly current: () => Engine
  readonly log: Log
}

const tickMs = 10_000
const measureMs = 2000

/** The queue of several machines: a receiver, a worker, or both, on one connection to NATS. */
export class NatsQueue implements Queue {
  readonly #parts: NatsQueueParts
  readonly #broker: Broker
  readonly #machines: Machines
  readonly #receiver: Receiver | undefined
  readonly #worker: Worker | undefined
  /** Runs of the worker, beside what the receiver delivers. */
  readonly #runs: EventQueue
  #identity: Identity | undefined
  #isStarted = false
  #timers: NodeJS.Timeout[] = []

  constructor(parts: NatsQueueParts) {
    this.#parts = parts
    const { local, budget, memory, log, settings, current } = parts
    const { role } = settings
    const env = () => current().env
    const live = () => current().config.gateway.queue
    const identity = () => {
      if (!this.#identity) throw unavailable('run/machine cannot be read')
      return this.#identity
    }
    // While the variable holds no keys, those from before.
    let known: readonly Buffer[] = []
    const keys = () => (known = parseQueueKeys(env()[live().key_env] ?? '') ?? known)
    const broker = new Broker({ settings: live, env, keys, runs: memory.runs, log })
    const shared = { broker, identity, keys, log }
    this.#broker = broker
    this.#runs = new EventQueue({ maxEvents: Infinity, concurrency: settings.concurrency, budget })
    this.#worker =
      role === 'receiver'
        ? undefined
        : new Worker({
            ...shared,
            runs: this.#runs,
            current,
            hasReceiver: () => this.#machines.hasReceiver(),
            events: memory.events,
            showsRuns: role === 'worker',
          })
    this.#machines = new Machines({
      broker,
      identity,
      keys,
      role,
      agents: () => this.#worker?.agents() ?? [],
      redelivered: () => this.#receiver?.answers.redelivered ?? 0,
      notOffered: () => this.#worker?.requests.notOffered(),
      needed: () => neededAgents(current().config),
      heard: () => {
        this.#worker?.requests.changed()
        this.#receiver?.noteMissing()
      },
    })
    this.#receiver =
      role === 'worker'
        ? undefined
        : new Receiver({
            ...shared,
            local,
            budget,
            memory,
            current,
            toJob: (...given) => current().runEvent.toJob(...given),
            isMissing: (agent) => this.#machines.isMissing(agent),
          })
  }

  async addAll(jobs: readonly Job[]): Promise<readonly QueueResult[]> {
    return (this.#receiver ?? this.#parts.local).addAll(jobs)
  }

  add(job: Job): void {
    this.#parts.local.add(this.#hold(job))
  }

  addAccepted(job: Job): void {
    this.#parts.local.addAccepted(this.#hold(job))
  }

  cancel(id: string): boolean {
    const isHere = this.#parts.local.cancel(id) || this.#receiver?.cancel(id)
    return isHere || this.#runs.cancel(id)
  }

  counts(): ReturnType<Queue['counts']> {
    const [answers, runs] = [this.#parts.local.counts(), this.#runs.counts()]
    return {
      waiting: answers.waiting + runs.waiting,
      running: answers.running + runs.running,
    }
  }

  trigger(): void {
    this.#parts.local.trigger()
  }

  resize(limits: QueueLimits): void {
    this.#parts.local.resize(limits)
    this.#runs.resize({ ...limits, maxEvents: Infinity })
    this.#broker.applyLimits()
    void this.#receiver?.consumers.ensure()
  }

  pause(): readonly Job[] {
    this.#stop()
    return this.#parts.local.pause()
  }

  resume(): void {
    this.#parts.local.resume()
    void this.#start()
  }

  handOver(ids: ReadonlySet<string>): void {
    this.#parts.local.handOver(ids)
  }

  share(remote: RemoteLoad): void {
    this.#parts.local.share(remote)
  }

  async drain(timeoutMs?: number): Promise<void> {
    this.#worker?.stop()
    this.#receiver?.drain()
    await Promise.all([this.#runs.drain(timeoutMs), this.#parts.local.drain(timeoutMs)])
  }

  abort(): void {
    this.#runs.abort()
    this.#parts.local.abort()
  }

  async close(): Promise<void> {
    this.#stop()
    for (const timer of this.#timers.splice(0)) clearInterval(timer)
    await this.#broker.close()
  }

  machines(): ReturnType<NonNullable<Queue['machines']>> {
    return this.#machines.status()
  }

  #hold(job: Job): Job {
    return this.#receiver?.hold(job) ?? job
  }

  async #start(): Promise<void> {
    this.#isStarted = true
    try {
      this.#identity ??= await readIdentity(this.#parts.home)
    } catch (error) {
      this.#parts.log.error({ error: errorName(error) }, 'the queue cannot start')
      return
    }
    if (!this.#isStarted) return
    this.#receiver?.start()
    this.#worker?.start()
    this.#broker.start()
    if (this.#timers.length > 0) return
    const tick = () => {
      // Also while another process has taken over: what still runs here is not lost.
      this.#worker?.tick()
      if (!this.#isStarted) return
      void this.#machines.tick()
      void this.#receiver?.tick()
    }
    const measure = () => void (this.#isStarted && this.#machines.measure())
    this.#timers = [
      setInterval(tick, Math.min(tickMs, this.#broker.lostAfterMs / 3)).unref(),
      setInterval(measure, measureMs).unref(),
    ]
  }

  #stop(): void {
    this.#isStarted = false
    this.#receiver?.answers.stop()
    this.#worker?.stop()
  }
}
