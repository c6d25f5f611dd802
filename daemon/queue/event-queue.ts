import { DoorwardError } from '../../shared/errors.ts'
import { deferToTickEnd } from '../http/turn-batching.ts'
import { cancelled, longTimeout } from '../util/concurrency.ts'
import type { ByteBudget } from '../util/byte-budget.ts'
import type { Job, Queue, QueueLimits, QueueResult, RemoteLoad } from './queue.ts'

/** The abort reason for a job whose program gets little time to exit on its own (`agents/process.ts`). */
const immediately = 'immediately'

type QueueOptions = QueueLimits & {
  readonly budget: ByteBudget
  /** How long aborted jobs are waited for, in milliseconds. */
  readonly lastWaitMs?: number
  /** How long a job whose agent is done may keep others from theirs, in milliseconds. */
  readonly withoutAgentMs?: number
}

/** A job that runs. */
type Run = {
  readonly job: Job
  readonly control: AbortController
  hasAgent: boolean
  /** It is one of the `maxWithoutAgent`. */
  isWithoutAgent: boolean
  timer?: NodeJS.Timeout
}

/** At most so many jobs deliver without their agent; more keep it, so that answers cannot pile up. */
const maxWithoutAgent = 16
/** The time in which a target is tried again. A mail server that takes longer blocks no agent for more. */
const usualWithoutAgentMs = 210_000

/** How long jobs may start one after another before requests are served again, in milliseconds. */
const longestTurnMs = 5

/** The queue in memory: first in, first out per agent; agents take turns under the global limit. */
export class EventQueue implements Queue {
  #maxEvents: number
  #concurrency: number
  readonly #budget: ByteBudget
  readonly #lastWaitMs: number
  readonly #withoutAgentMs: number
  #remote: RemoteLoad | undefined
  readonly #waitingOf = new Map<string, Job[]>()
  readonly #agentsBusy = new Map<string, number>()
  readonly #runs: Run[] = []
  /** Once the daemon does not wait any longer for what runs. */
  #stopped: { readonly reason: string | undefined } | undefined
  #waiting = 0
  #busy = 0
  #withoutAgent = 0
  /** Runs that need no agent and keep it until one of the `maxWithoutAgent` ends, the oldest first. */
  readonly #keepingAgent: Run[] = []
  #isDraining = false
  #isPaused = false
  #pumpScheduled = false
  #isStarting = false
  #turnEndsAt = 0
  #idle: Promise<void> | undefined
  #whenIdle: (() => void) | undefined
  #lastWait: NodeJS.Timeout | undefined
  /** The last wait is over: what still runs is not waited for. */
  #hasGivenUp = false

  constructor(options: QueueOptions) {
    this.#maxEvents = options.maxEvents
    this.#concurrency = options.concurrency
    this.#budget = options.budget
    this.#lastWaitMs = options.lastWaitMs ?? 10_000
    this.#withoutAgentMs = options.withoutAgentMs ?? usualWithoutAgentMs
  }

  add(job: Job): void {
    this.#take([job])
  }

  async addAll(jobs: readonly Job[]): Promise<readonly QueueResult[]> {
    this.#take(jobs)
    return jobs.map(() => 'queued')
  }

  #take(jobs: readonly Job[]): void {
    const bytes = jobs.reduce((sum, job) => sum + job.bytes, 0)
    if (this.#isDraining)
      throw new DoorwardError('stopping', 'the daemon is stopping', {
        localDetail: 'the daemon was stopping',
      })
    if (this.#waiting + jobs.length > this.#maxEvents)
      throw queueFull(`queue.max_events (${this.#maxEvents}) events were waiting`)
    if (!this.#budget.couldTake(bytes))
      throw new DoorwardError('body-too-large', 'the prompt made of this payload is too long', {
        localDetail: `the prompt has ${bytes} bytes, and queue.max_bytes is less`,
      })
    if (!this.#budget.take(bytes))
      throw queueFull('queue.max_bytes is used up by bodies being read and events waiting')
    for (const job of jobs) this.#append(job)
    for (const { accepted } of jobs) accepted?.()
  }

  addAccepted(job: Job): void {
    this.#append(this.#budget.take(job.bytes) ? job : { ...job, bytes: 0 })
  }

  cancel(id: string): boolean {
    const run = this.#runs.find(({ job }) => job.id === id)
    run?.control.abort(cancelled)
    if (run) return true
    for (const jobs of this.#waitingOf.values()) {
      const job = jobs.find((waiting) => waiting.id === id)
      if (!job) continue
      jobs.splice(jobs.indexOf(job), 1)
      this.#waiting -= 1
      this.#budget.giveBack(job.bytes)
      job.drop(cancelled)
      this.#schedulePump()
      return true
    }
    return false
  }

  /** True for an event that waits or runs here. */
  has(id: string): boolean {
    const isIt = (job: Job) => job.id === id
    return (
      this.#runs.some(({ job }) => isIt(job)) ||
      [...this.#waitingOf.values()].some((jobs) => jobs.some(isIt))
    )
  }

  counts(): { readonly waiting: number; readonly running: number } {
    return { waiting: this.#waiting, running: this.#runs.length + (this.#remote?.events() ?? 0) }
  }

  trigger(): void {
    this.#schedulePump()
  }

  resize({ maxEvents, concurrency }: QueueLimits): void {
    this.#maxEvents = maxEvents
    this.#concurrency = concurrency
    this.#schedulePump()
  }

  pause(): readonly Job[] {
    this.#isPaused = true
    return [...this.#waitingOf.values()].flat()
  }

  resume(): void {
    this.#isPaused = false
    this.#schedulePump()
  }

  handOver(ids: ReadonlySet<string>): void {
    for (const [name, jobs] of this.#waitingOf) {
      const kept = jobs.filter(({ id }) => !ids.has(id))
      for (const { id, bytes } of jobs) if (ids.has(id)) this.#budget.giveBack(bytes)
      this.#waiting -= jobs.length - kept.length
      this.#waitingOf.set(name, kept)
    }
    this.resume()
  }

  share(remote: RemoteLoad): void {
    this.#remote = remote
  }

  /** Without a time it waits for as long as the jobs take; a second call can still set one. */
  async drain(timeoutMs?: number): Promise<void> {
    this.#isDraining = true
    this.#idle ??= new Promise<void>((resolve) => {
      this.#whenIdle = resolve
      if (this.#hasGivenUp) resolve()
    })
    this.#schedulePump()
    const timer =
      timeoutMs === undefined ? undefined : longTimeout(() => this.#abortRuns(), timeoutMs)
    await this.#idle
    clearTimeout(timer)
    clearTimeout(this.#lastWait)
  }

  abort(): void {
    this.#isDraining = true
    this.#abortRuns(immediately)
  }

  async close(): Promise<void> {
    // There is no connection.
  }

  #append(job: Job): void {
    const jobs = this.#waitingOf.get(job.agentName)
    if (jobs) jobs.push(job)
    else {
      // The row of an agent that is alone is kept when it is empty: it is used for each of its jobs.
      for (const [name, row] of this.#waitingOf) if (row.length === 0) this.#waitingOf.delete(name)
      this.#waitingOf.set(job.agentName, [job])
    }
    this.#waiting += 1
    this.#schedulePump()
  }

  #schedulePump(): void {
    if (this.#pumpScheduled) return
    this.#pumpScheduled = true
    deferToTickEnd(this.#pump)
  }

  readonly #pump = (): void => {
    this.#pumpScheduled = false
    this.#turnEndsAt = performance.now() + longestTurnMs
    this.#startJobs()
  }

  #startJobs(): void {
    this.#isStarting = true
    for (let job = this.#nextJob(); job; job = this.#nextJob()) {
      this.#start(job)
      if (performance.now() < this.#turnEndsAt) continue
      // Starting a program takes milliseconds: serve requests in between.
      this.#schedulePump()
      break
    }
    this.#isStarting = false
    if (this.#waiting === 0 && this.#runs.length === 0) this.#whenIdle?.()
  }

  /** After a job: starts the next in the same turn while that is short, so that quick agents keep up. */
  #startNext(): void {
    if (this.#isStarting) return
    if (performance.now() < this.#turnEndsAt) this.#startJobs()
    else this.#schedulePump()
  }

  /** The first waiting job that may start now, agents in turn. */
  #nextJob(): Job | undefined {
    if (this.#isPaused || this.#busy + (this.#remote?.agents() ?? 0) >= this.#concurrency)
      return undefined
    for (const [agentName, jobs] of this.#waitingOf) {
      const job = jobs.find(({ isReady }) => isReady?.(this.#isDraining) ?? true)
      const busy = (this.#agentsBusy.get(agentName) ?? 0) + (this.#remote?.of(agentName) ?? 0)
      if (job && busy < job.agentConcurrency) return job
    }
    return undefined
  }

  #start(job: Job): void {
    const { agentName } = job
    const jobs = this.#waitingOf.get(agentName) ?? []
    jobs.splice(jobs.indexOf(job), 1)
    if (this.#waitingOf.size > 1) {
      // To the end of the row of agents, so that a busy one cannot starve the others.
      this.#waitingOf.delete(agentName)
      if (jobs.length > 0) this.#waitingOf.set(agentName, jobs)
    }
    this.#waiting -= 1
    this.#budget.giveBack(job.bytes)
    this.#busy += 1
    this.#agentsBusy.set(agentName, (this.#agentsBusy.get(agentName) ?? 0) + 1)
    const control = new AbortController()
    if (this.#stopped) control.abort(this.#stopped.reason)
    const run: Run = { job, control, hasAgent: true, isWithoutAgent: false }
    this.#runs.push(run)
    void job.run(control.signal, () => this.#agentIsDone(run)).then(() => this.#ended(run))
  }

  #agentIsDone(run: Run): void {
    run.timer = setTimeout(() => this.#stopCounting(run), this.#withoutAgentMs)
    if (this.#withoutAgent < maxWithoutAgent) this.#goOnWithoutAgent(run)
    else this.#keepingAgent.push(run)
  }

  #goOnWithoutAgent(run: Run): void {
    this.#withoutAgent += 1
    run.isWithoutAgent = true
    this.#freeAgent(run)
  }

  /** The run takes neither an agent nor a place without one any more. */
  #stopCounting(run: Run): void {
    const place = this.#keepingAgent.indexOf(run)
    if (place >= 0) this.#keepingAgent.splice(place, 1)
    if (run.isWithoutAgent) {
      run.isWithoutAgent = false
      this.#withoutAgent -= 1
      const next = this.#keepingAgent.shift()
      if (next) this.#goOnWithoutAgent(next)
    }
    this.#freeAgent(run)
  }

  #freeAgent(run: Run): void {
    if (!run.hasAgent) return
    run.hasAgent = false
    const { agentName } = run.job
    this.#busy -= 1
    this.#agentsBusy.set(agentName, (this.#agentsBusy.get(agentName) ?? 1) - 1)
    this.#startNext()
  }

  #ended(run: Run): void {
    clearTimeout(run.timer)
    this.#stopCounting(run)
    this.#runs.splice(this.#runs.indexOf(run), 1)
    this.#startNext()
  }

  /** After the last wait the daemon exits without the jobs that hang. */
  #abortRuns(reason?: string): void {
    this.#removeWaiting((job) => job.drop())
    this.#stopped ??= { reason }
    for (const { control } of this.#runs) control.abort(reason)
    this.#schedulePump()
    this.#lastWait ??= setTimeout(() => {
      this.#hasGivenUp = true
      for (const { job } of this.#runs) job.drop()
      this.#whenIdle?.()
    }, this.#lastWaitMs)
  }

  #removeWaiting(remove: (job: Job) => void): void {
    const jobs = [...this.#waitingOf.values()].flat()
    this.#waitingOf.clear()
    this.#waiting = 0
    for (const job of jobs) {
      this.#budget.giveBack(job.bytes)
      remove(job)
    }
  }
}

const queueFull = (localDetail: string): DoorwardError =>
  new DoorwardError('queue-full', 'the queue is full', { localDetail })
