import type { Status } from '../../shared/api/api.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import type { cancelled } from '../util/concurrency.ts'
import type { AcceptedEvent } from '../webhook/events/accepted-event.ts'
import type { AgentFault } from './nats/agent-faults.ts'

/*
 * Where accepted events wait for their agent. There are two engines: `EventQueue` in memory, and for several
 * machines NATS, which has the first for what it delivers.
 */

/** One accepted event on its way to its agent. */
export type Job = {
  /** The event's id. */
  readonly id: string
  readonly agentName: string
  /** How many jobs of this agent may run at once. */
  readonly agentConcurrency: number
  /** Called once the queue has the job, in the same turn and before it runs. */
  readonly accepted?: (() => void) | undefined
  /** The memory that it takes while it waits. */
  readonly bytes: number
  /** What its agent is asked, on another machine too; undefined where no agent has to run. */
  readonly event?: AcceptedEvent | undefined
  /** False for one that waits for something else than its agent. */
  readonly isReady?: ((isStopping: boolean) => boolean) | undefined
  /** A retry that only delivers the answer of an earlier run. */
  readonly onlyDelivers: boolean
  /**
   * Never rejects. The signal says that the daemon cannot wait any longer, or that the event is cancelled.
   * `agentIsDone`, called at most once, says that the rest needs no agent, so that the next job may have it.
   */
  readonly run: (signal: AbortSignal, agentIsDone: () => void) => Promise<void>
  /**
   * Called instead of `run` when the daemon stops before the job starts, or when it is cancelled; and
   * after `run` when a job does not end although it was aborted, and the daemon exits without it.
   */
  readonly drop: (why?: typeof cancelled) => void
  /** Called instead of `run` when its agent has failed on another machine. */
  readonly fail: (error: unknown, why?: typeof cancelled) => void
}

/** What another process still runs for the same agents: the limits apply to both together. */
export type RemoteLoad = {
  /** How many runs of this agent. */
  readonly of: (agentName: string) => number
  /** How many agents, over all names. */
  readonly agents: () => number
  /** How many events, those included whose agent is done. */
  readonly events: () => number
}

export type QueueLimits = {
  /** How many events may wait. */
  readonly maxEvents: number
  /** How many agents may run at once. */
  readonly concurrency: number
}

export type Queue = {
  /**
   * Takes all jobs or none; each then runs or is dropped. Throws `queue-full` (count or bytes),
   * `body-too-large` where they could never fit, or `stopping`. Where another machine has to confirm them,
   * some can be refused.
   */
  readonly addAll: (jobs: readonly Job[]) => Promise<readonly QueueResult[]>
  /** Takes one that its owner runs again. */
  readonly add: (job: Job) => void
  /** Takes a job that another process has accepted, whatever the limits are here. */
  readonly addAccepted: (job: Job) => void
  /** Drops the job of this event, or stops it when it runs; false when it is not here. */
  readonly cancel: (id: string) => boolean
  /** What waits and runs here, with the jobs of another process. */
  readonly counts: () => { readonly waiting: number; readonly running: number }
  /** Starts what may start now: a job of another process has ended. */
  readonly trigger: () => void
  /** Sets other limits; jobs that wait or run stay. */
  readonly resize: (limits: QueueLimits) => void
  /** Starts nothing until `resume`; returns what waits here. */
  readonly pause: () => readonly Job[]
  readonly resume: () => void
  /** Another process runs these waiting jobs; the others, and those that are added, run here. */
  readonly handOver: (ids: ReadonlySet<string>) => void
  /** The limits of agents apply to what another process runs as well. */
  readonly share: (remote: RemoteLoad) => void
  /** Takes no more and waits for what there is; after `timeoutMs` drops what waits and aborts what runs. */
  readonly drain: (timeoutMs?: number) => Promise<void>
  /** Aborts what runs without giving it much time; for a second signal. */
  readonly abort: () => void
  /** The last step of the process: no job runs any more. */
  readonly close: () => Promise<void>
  /** Of several machines. */
  readonly machines?: () => Pick<Status, 'broker' | 'machines'> & {
    readonly agentFaults: readonly AgentFault[]
  }
}

/** What became of a job: another machine may have it already, or cannot confirm it. */
export type QueueResult = 'queued' | 'duplicate' | DoorwardError
