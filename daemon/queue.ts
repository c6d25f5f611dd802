import { setMaxListeners } from 'node:events'
import { DoorwardError } from '../shared/errors.ts'
import type { ByteBudget } from './util/byte-budget.ts'
import { deferToTickEnd } from './http/turn-batching.ts'
import { longTimeout } from './util/abort.ts'

/** The reason of the signal of a job whose program is not given the usual time to end by itself. */
export const atOnce = 'at-once'

/** One accepted event on its way to its agent. */
export type Job = {
  readonly agentName: string
  /** How many jobs of this agent may run at once. */
  readonly agentConcurrency: number
  /** What it holds in memory while it waits. */
  readonly bytes: number
  /**
   * Never rejects. The signal says that the daemon cannot wait any longer; `agentIsDone`, called once at most,
   * that what is left needs no agent, so that the next job may have it.
   */
  readonly run: (signal: AbortSignal, agentIsDone: () => void) => Promise<void>
  /**
   * Called instead of `run` when the daemon stops before the turn comes; and after it, when a job that
   * was told to stop does not end and the daemon goes without it.
   */
  readonly drop: () => void
}

export type QueueLimits = {
  readonly maxEvents: number
  readonly concurrency: number
  readonly budget: ByteBudget
  /** How long jobs that were told to stop are waited for, in milliseconds. Default 10 s. */
  readonly lastWaitMs?: number
  /** How long a job whose agent is done may keep others from theirs, in milliseconds. */
  readonly withoutAgentMs?: number
  /** What another process still does for the same agents. */
  readonly elsewhere?: Elsewhere
}

/** Jobs of another process: the limits are meant for both together. */
export type Elsewhere = {
  /** How many of this agent are not through it yet. */
  readonly of: (agentName: string) => number
  /** How many agents they keep busy at once, at most. */
  readonly agents: () => number
  readonly counts: () => { readonly waiting: number; readonly running: number }
}

const nothing: Elsewhere = {
  of: () => 0,
  agents: () => 0,
  counts: () => ({ waiting: 0, running: 0 }),
}

export type Queue = {
  /**
   * Throws `queue-full` (count or bytes), `body-too-large` where there could never be room for it, or
   * `stopping`; otherwise the job runs or is dropped.
   */
  readonly add: (job: Job) => void
  /** With what another process does. */
  readonly counts: () => { readonly waiting: number; readonly running: number }
  /** Something has ended elsewhere. */
  readonly look: () => void
  /** Other limits from now on. What waits or runs already stays. */
  readonly resize: (limits: Pick<QueueLimits, 'maxEvents' | 'concurrency'>) => void
  /**
   * Takes no more, waits for what there is, and after the time drops and stops the rest; always ends.
   * Without a time it is not cut short; a second call can still do that.
   */
  readonly drain: (timeoutMs?: number) => Promise<void>
  /** Stops what runs without giving it much time; for a second signal. */
  readonly abort: () => void
}

/** Jobs that go on without their agent, at most; more keep it, so that no flood of answers piles up. */
const maxWithoutAgent = 16
/**
 * So long a target is tried again, and what takes longer is a mail server that may take ten minutes: it holds
 * up no agent for more than this.
 */
const usualWithoutAgentMs = 210_000

/** How long jobs may follow each other before the next request is looked at, in milliseconds. */
const longestTurnMs = 5

/** First in, first out per agent; agents share the global limit in the order their jobs came. */
export const createQueue = ({
  budget,
  lastWaitMs = 10_000,
  withoutAgentMs = usualWithoutAgentMs,
  elsewhere = nothing,
  ...initialLimits
}: QueueLimits): Queue => {
  let { maxEvents, concurrency } = initialLimits
  const waitingOf = new Map<string, Job[]>()
  const runningOf = new Map<string, number>()
  const runningJobs: Job[] = []
  const stop = new AbortController()
  // All that runs listens to it.
  setMaxListeners(0, stop.signal)
  let waiting = 0
  let running = 0
  let withoutAgent = 0
  /** Jobs that need their agent no more and keep it until there is a place without one, the oldest first. */
  const keepingAgent: (() => void)[] = []
  let draining = false
  let pumpScheduled = false
  let isStarting = false
  let turnEndsAt = 0
  let whenIdle: (() => void) | undefined
  let idle: Promise<void> | undefined
  let lastWait: NodeJS.Timeout | undefined
  /** It was over, and what runs is not waited for any more. */
  let isGivenUp = false

  const pump = () => {
    pumpScheduled = false
    turnEndsAt = performance.now() + longestTurnMs
    startJobs()
  }
  const startJobs = () => {
    isStarting = true
    for (let job = nextJob(); job; job = nextJob()) {
      start(job)
      if (performance.now() < turnEndsAt) continue
      // The start of a program takes milliseconds: what senders wait for comes in between.
      schedulePump()
      break
    }
    isStarting = false
    if (waiting === 0 && runningJobs.length === 0) whenIdle?.()
  }
  /** After a job: in the same turn while it is short, so that quick agents keep up with a flood. */
  const goOn = () => {
    if (isStarting) return
    if (performance.now() < turnEndsAt) startJobs()
    else schedulePump()
  }
  const schedulePump = () => {
    if (pumpScheduled) return
    pumpScheduled = true
    deferToTickEnd(pump)
  }
  /** The first waiting job that may start now, looking at agents in turn. */
  const nextJob = (): Job | undefined => {
    if (running + elsewhere.agents() >= concurrency) return undefined
    for (const [agentName, jobs] of waitingOf) {
      const [job] = jobs
      const busy = (runningOf.get(agentName) ?? 0) + elsewhere.of(agentName)
      if (job && busy < job.agentConcurrency) return job
    }
    return undefined
  }
  const start = (job: Job) => {
    const jobs = waitingOf.get(job.agentName) ?? []
    jobs.shift()
    if (waitingOf.size > 1) {
      // Back to the end of the row of agents, so that a busy one cannot starve the others.
      waitingOf.delete(job.agentName)
      if (jobs.length > 0) waitingOf.set(job.agentName, jobs)
    }
    waiting -= 1
    running += 1
    runningJobs.push(job)
    runningOf.set(job.agentName, (runningOf.get(job.agentName) ?? 0) + 1)
    budget.giveBack(job.bytes)
    let hasAgent = true
    const freeAgent = () => {
      if (!hasAgent) return
      hasAgent = false
      running -= 1
      runningOf.set(job.agentName, (runningOf.get(job.agentName) ?? 1) - 1)
      goOn()
    }
    let isCounted = false
    let timer: NodeJS.Timeout | undefined
    const goOnWithoutAgent = () => {
      withoutAgent += 1
      isCounted = true
      freeAgent()
    }
    const countNoMore = () => {
      const place = keepingAgent.indexOf(goOnWithoutAgent)
      if (place >= 0) keepingAgent.splice(place, 1)
      if (isCounted) {
        isCounted = false
        withoutAgent -= 1
        keepingAgent.shift()?.()
      }
      freeAgent()
    }
    const agentIsDone = () => {
      timer = setTimeout(countNoMore, withoutAgentMs)
      if (withoutAgent < maxWithoutAgent) goOnWithoutAgent()
      else keepingAgent.push(goOnWithoutAgent)
    }
    const ended = () => {
      if (timer) clearTimeout(timer)
      countNoMore()
      runningJobs.splice(runningJobs.indexOf(job), 1)
      goOn()
    }
    void job.run(stop.signal, agentIsDone).then(ended)
  }
  /** Whatever a job hangs on, a stop ends: after the last wait it goes on without it. */
  const stopRunning = (reason?: string) => {
    dropWaiting()
    stop.abort(reason)
    schedulePump()
    lastWait ??= setTimeout(() => {
      isGivenUp = true
      for (const job of runningJobs) job.drop()
      whenIdle?.()
    }, lastWaitMs)
  }
  /** An agent that is alone keeps its row, which is costly to make anew for each job. */
  const forgetEmptyRows = () => {
    for (const [agentName, jobs] of waitingOf) if (jobs.length === 0) waitingOf.delete(agentName)
  }
  const dropWaiting = () => {
    for (const job of [...waitingOf.values()].flat()) {
      budget.giveBack(job.bytes)
      job.drop()
    }
    waitingOf.clear()
    waiting = 0
  }

  return {
    add: (job) => {
      if (draining)
        throw new DoorwardError('stopping', 'the daemon is stopping', {
          localDetail: 'the daemon was stopping',
        })
      if (waiting >= maxEvents)
        throw new DoorwardError('queue-full', 'no room for this delivery now', {
          localDetail: `queue.max_events (${maxEvents}) events were waiting`,
        })
      if (!budget.couldTake(job.bytes))
        throw new DoorwardError('body-too-large', 'the prompt made of this payload is too long', {
          localDetail: `the prompt has ${job.bytes} bytes, and queue.max_bytes is less`,
        })
      if (!budget.take(job.bytes))
        throw new DoorwardError('queue-full', 'no room for this delivery now', {
          localDetail: 'queue.max_bytes is used up by bodies being read and events waiting',
        })
      const jobs = waitingOf.get(job.agentName)
      if (jobs) jobs.push(job)
      else {
        forgetEmptyRows()
        waitingOf.set(job.agentName, [job])
      }
      waiting += 1
      schedulePump()
    },
    counts: () => {
      const other = elsewhere.counts()
      return { waiting: waiting + other.waiting, running: runningJobs.length + other.running }
    },
    look: schedulePump,
    resize: (limits) => {
      ;({ maxEvents, concurrency } = limits)
      schedulePump()
    },
    drain: async (timeoutMs) => {
      draining = true
      idle ??= new Promise<void>((resolve) => {
        whenIdle = resolve
        if (isGivenUp) resolve()
      })
      schedulePump()
      const timer =
        timeoutMs === undefined ? undefined : longTimeout(() => stopRunning(), timeoutMs)
      await idle
      timer?.clear()
      clearTimeout(lastWait)
    },
    abort: () => {
      draining = true
      stopRunning(atOnce)
    },
  }
}
