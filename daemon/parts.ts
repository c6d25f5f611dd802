import type { Home } from '../shared/home/home.ts'
import { noteRuns } from './agents/leftovers.ts'
import { noteAndRun } from './agents/noted-run.ts'
import { type LoopGuard, createLoopGuard } from './deliver/loop-guard.ts'
import { createCommentMarks } from './deliver/own-comment.ts'
import { type EventStream, createEventStream } from './http/event-stream.ts'
import type { HandOver } from './handover/hand-over.ts'
import { type Intake, createIntake } from './intake.ts'
import { type Listeners, createListeners } from './http/listeners.ts'
import { type LiveConfig, type ReadConfig, createLiveConfig } from './configuration/live-config.ts'
import { logLevelOf } from './log/log-level.ts'
import { type Log, openLog } from './log/log.ts'
import { type Memory, createMemory } from './memory.ts'
import { type OAuthCounts, createOAuthCounts } from './metrics/oauth-counts.ts'
import { type Office, createOffice } from './office.ts'
import { createSetup } from './setup.ts'
import { type Learners, createLearners } from './webhook/learners.ts'
import { type RefusalLog, createRefusalLog } from './webhook/refusal-log.ts'
import { type Whereabouts, createWhereabouts } from './whereabouts.ts'

/** What a daemon is made of, whichever way it starts and ends. */
export type Parts = {
  readonly home: Home
  readonly startedAt: Date
  readonly log: Log
  readonly closeLog: () => Promise<void>
  readonly listeners: Listeners
  readonly whereabouts: Whereabouts
  readonly memory: Memory
  readonly stream: EventStream
  readonly intake: Intake
  readonly loopGuard: LoopGuard
  readonly live: LiveConfig
  readonly office: Office
  readonly oauthCounts: OAuthCounts
  readonly learners: Learners
  readonly refusals: RefusalLog
}

/** What there is before any part: a home, and what was read from it. */
export type Given = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly started: ReadConfig
  readonly apiToken: string
}

/** Nothing listens, renews or watches yet. `handOver` is not asked for before all of them are there. */
export const makeParts = (
  { home, processEnv, started, apiToken }: Given,
  handOver: () => Pick<HandOver, 'heir' | 'decided'>,
): Parts => {
  const { gateway } = started.config
  const { log, close: closeLog } = openLog(home, logLevelOf(started.env))
  const startedAt = new Date()
  const current = () => live.current()

  const listeners = createListeners(gateway.server)
  const whereabouts = createWhereabouts({ home, startedAt, listeners, current, log })

  const memory = createMemory(gateway.events.keep)
  const { events, messages, promises } = memory
  const stream = createEventStream(events)
  const intake = createIntake(gateway.queue, current)
  const marks = createCommentMarks(apiToken)

  const access: Office['access'] = async (...asked) => office.access(...asked)
  const lasting = {
    ...memory,
    home,
    queue: intake.queue,
    access,
    run: noteAndRun(noteRuns(home)),
    marks,
    log,
    // After a restart those who follow are with the other daemon.
    isFollowed: () => stream.followers() > 0 || handOver().heir() !== undefined,
  }
  const live = createLiveConfig(
    {
      home,
      processEnv,
      setUp: (config, env) => createSetup(config, env, lasting),
      changed: async ({ gateway }) => {
        intake.resize(gateway.queue)
        events.resize(gateway.events.keep)
        if (!handOver().heir()) await whereabouts.tellIfPossible()
      },
      events,
      log,
    },
    started,
  )

  const oauthCounts = createOAuthCounts()
  const office = createOffice({
    home,
    current,
    events,
    promises,
    log,
    count: oauthCounts.count,
    elsewhere: async () => (await handOver().decided())?.access,
  })
  const learners = createLearners()
  const refusals = createRefusalLog(log)

  return {
    home,
    startedAt,
    log,
    closeLog,
    listeners,
    whereabouts,
    memory,
    stream,
    intake,
    loopGuard: createLoopGuard(marks, messages),
    live,
    office,
    oauthCounts,
    learners,
    refusals,
  }
}
