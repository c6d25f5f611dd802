import { join } from 'node:path'
import type { Home } from '../shared/home/home.ts'
import { configureNetwork } from '../shared/network/outgoing.ts'
import { createRecordedRun } from './agents/orphans.ts'
import { moveHooks } from './bots/deliveries.ts'
import { LiveConfig, type ReadConfig } from './config/live-config.ts'
import { DaemonFile } from './daemon-file.ts'
import { createCommentMarks, createLoopGuard } from './delivery/loop-guard.ts'
import { Listeners } from './http/server.ts'
import { createEventStream } from './http/sse.ts'
import { createIntake } from './intake.ts'
import { Leadership } from './leadership.ts'
import { getLogLevel, type Log, openLog } from './log/log.ts'
import { Metrics } from './metrics/metrics.ts'
import type { Predecessor } from './restart/new-process.ts'
import { Succession } from './restart/succession.ts'
import { History } from './history/history.ts'
import { createHistoryKey } from './history/history-key.ts'
import { SealedSessions } from './sessions/sealed-sessions.ts'
import { createMemory, type Memory } from './state.ts'
import { Approvals } from './webhook/approvals/approvals.ts'
import { createEngine } from './webhook/engine.ts'
import { Workspaces } from './workspace/workspaces.ts'
import { Spending } from './usage/spending.ts'
import { UsageLog } from './usage/usage-log.ts'
import { createDeliveryWaiters } from './webhook/payload-shape.ts'
import { createRejectionLog } from './webhook/rejection-log.ts'
import { DayJournal } from './util/day-journal.ts'
import { KeptPayloads } from './webhook/events/kept-payloads.ts'

/** The parts that are there before any service: a home, and what was read from it. */
export type StartupInput = {
  readonly home: Home
  readonly processEnv: NodeJS.ProcessEnv
  readonly started: ReadConfig
  readonly apiToken: string
  /** The daemon that this one replaces. */
  readonly predecessor?: Predecessor
  /** The program that started this process watches it. */
  readonly isForeground?: boolean
}

type SealingParts = {
  readonly home: Home
  readonly memory: Memory
  readonly leadership: Leadership
  readonly log: Log
}

/** Conversations on the disk, where the configuration asks for them. */
const createSealedSessions = (
  { home, memory, leadership, log }: SealingParts,
  live: () => LiveConfig,
): SealedSessions => {
  const sealed = new SealedSessions({
    home,
    isWanted: () => live().current().config.gateway.sessions.store === 'sealed',
    keychain: () => leadership.oauth().sealing,
    log,
  })
  memory.sessions.keepIn(sealed)
  return sealed
}

type HistorySources = SealingParts & { readonly succession: Succession }

const createHistory = (
  { home, memory, leadership, log, succession }: HistorySources,
  live: () => LiveConfig,
): History => {
  return new History({
    folder: join(home.root, 'history'),
    events: memory.events,
    settings: () => live().current().config.gateway.events.history,
    key: createHistoryKey(home.run, () => leadership.oauth().sealing),
    isHandingOver: succession.isHandingOver,
    log,
  })
}

export type Services = ReturnType<typeof createServices>

/** Nothing listens, refreshes or watches yet. */
export const createServices = ({ home, processEnv, started, apiToken }: StartupInput) => {
  const { gateway } = started.config
  configureNetwork(started.env)
  const startedAt = new Date()
  const { log, close: closeLog } = openLog(home, getLogLevel(started.env))
  const journal = new DayJournal(join(home.run, 'last-day'), log)
  const memory = createMemory(gateway.events.keep, journal, new UsageLog(home.state, log))
  const { events } = memory
  const stream = createEventStream(events)
  const intake = createIntake(gateway.queue, { home, memory, log, current: () => live.current() })
  const listeners = new Listeners(gateway.server)
  const daemonFile = new DaemonFile({ home, startedAt, listeners, server: gateway.server, log })
  const succession = new Succession()
  const metrics = new Metrics(events, memory.usage)
  const settings = { gateway, env: started.env }
  const parts = { home, processEnv, apiToken, settings, events, log, succession }
  const reload = () => live.reload()
  const leadership = new Leadership({ ...parts, count: metrics.countToken, reload })
  const { access, held } = leadership
  const marks = createCommentMarks(apiToken)
  const run = createRecordedRun(home)
  const workspaces = new Workspaces({ home, run, access })
  const sealedSessions = createSealedSessions({ home, memory, leadership, log }, () => live)
  const history = createHistory({ home, memory, leadership, log, succession }, () => live)
  const shared = { home, access, run, workspaces, marks, log }
  // After a restart the tray follows the other daemon.
  const hasTray = () => stream.hasTray() || succession.successor() !== undefined
  const engineServices = {
    ...memory,
    ...shared,
    held,
    queue: intake.queue,
    hasTray,
  }
  const payloads = new KeptPayloads()
  const configListeners: (() => void)[] = []
  const live = new LiveConfig(
    {
      home,
      processEnv,
      compile: (config, env, envWarnings) => createEngine(config, env, envWarnings, engineServices),
      onChange: async ({ gateway }) => {
        const { env } = live.current()
        intake.resize(gateway.queue)
        events.resize(gateway.events.keep)
        configureNetwork(env)
        leadership.configure({ gateway, env })
        daemonFile.configure(gateway.server)
        if (succession.successor()) return
        for (const listener of configListeners) listener()
        void sealedSessions.configured(memory.sessions)
        void history.configured()
        await daemonFile.tryWrite()
        void moveHooks(leadership.oauth().bots, live.current().config, log)
      },
      events,
      log,
    },
    started,
  )
  return {
    home,
    startedAt,
    log,
    closeLog: async () => {
      await sealedSessions.settled()
      await history.settled()
      await closeLog()
    },
    sealedSessions,
    history,
    memory,
    journal,
    payloads,
    approvals: new Approvals({
      ...memory,
      payloads,
      current: live.current,
      succession,
      hasTray,
      log,
    }),
    run,
    stream,
    intake,
    listeners,
    daemonFile,
    succession,
    metrics,
    leadership,
    workspaces,
    live,
    onConfig: (listener: () => void) => void configListeners.push(listener),
    loopGuard: createLoopGuard(marks, memory.messages),
    spending: new Spending(memory.usage, () => live.current().config, events),
    learners: createDeliveryWaiters(),
    refusals: createRejectionLog(log),
  }
}
