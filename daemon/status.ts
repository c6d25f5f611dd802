import type { Status, StatusProblem, WebhookSummary } from '../shared/api/api.ts'
import { agentProgramWarnings } from '../shared/agents/program.ts'
import { sandboxWarnings } from '../shared/sandbox/warnings.ts'
import { scheduleProgramWarnings } from '../shared/schedules/warnings.ts'
import { fileTargetWarnings } from '../shared/targets/warnings.ts'
import { toStatusProblem } from '../shared/errors.ts'
import { version } from '../shared/version.ts'
import type { Home } from '../shared/home/home.ts'
import { knownError } from './util/assets.ts'
import type { LiveConfig } from './config/live-config.ts'
import type { CatchUp } from './catch-up/catch-up.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { OAuth } from './oauth/oauth.ts'
import { toAgentProblem } from './queue/nats/agent-faults.ts'
import type { Tunnel } from './tunnel/tunnel.ts'
import type { DaemonFile } from './daemon-file.ts'
import type { Intake } from './intake.ts'
import type { Scheduler } from './schedules/scheduler.ts'
import type { Sources } from './sources/sources.ts'
import type { Shutdown } from './shutdown.ts'
import type { Spending } from './usage/spending.ts'
import type { Approvals } from './webhook/approvals/approvals.ts'
import type { Memory } from './state.ts'
import { summarize } from './webhook/compiled-webhook.ts'

export type StatusParts = {
  readonly home: Home
  readonly startedAt: Date
  readonly live: LiveConfig
  readonly memory: Memory
  readonly intake: Intake
  readonly daemonFile: DaemonFile
  readonly metrics: Metrics
  readonly catchUp: CatchUp
  readonly scheduler: Scheduler
  readonly sources: Sources
  readonly tunnel: Tunnel
  readonly oauth: OAuth
  readonly shutdown: Shutdown
  readonly spending: Spending
  readonly approvals: Approvals
}

/** Each webhook of the current configuration, without its secret. */
export const listWebhooks = ({ live, daemonFile, memory }: StatusParts): WebhookSummary[] => {
  const { config, env } = live.current()
  const url = daemonFile.publicUrl() ?? daemonFile.url()
  return summarize(config, env, url, memory.counts.of)
}

/** Everything that the tray and `doorward status` show. */
export const buildStatus = async (parts: StatusParts): Promise<Status> => {
  const { live, home, daemonFile, oauth } = parts
  const { events, budgets } = parts.memory
  const { queue, budget } = parts.intake
  const { config, env, warnings } = live.current()
  // An unreadable folder of tokens is one problem more, and must not hide the others.
  const [tokens, providers, tokenProblems, unstartable, unconfined, refusedFiles, unrunnable] =
    await Promise.all([
      oauth.tokens().catch(() => []),
      oauth.providers().catch(() => []),
      oauth.problems().catch(problemOfFolder),
      agentProgramWarnings(config, env, home.root),
      sandboxWarnings(config, env, home.root),
      fileTargetWarnings(config, home.root),
      scheduleProgramWarnings(config, env, home.root),
    ])
  const publicUrl = daemonFile.publicUrl()
  const { program, state, arrivedAt, problems } = parts.tunnel.status()
  const sources = parts.sources.list()
  const schedules = parts.scheduler.list()
  const lastRun = events.lastRun()
  const approvals = parts.approvals.list()
  const { day: today } = parts.memory.usage.spent({})
  const { agentFaults = [], broker, machines } = queue.machines?.() ?? {}
  return {
    version,
    startedAt: parts.startedAt.toISOString(),
    url: daemonFile.url(),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(program && { tunnel: { program, state, ...(arrivedAt !== undefined && { arrivedAt }) } }),
    ...(parts.shutdown.signal.aborted && { stopping: true }),
    queue: { ...queue.counts(), bytes: budget.used() },
    ...(today.runs > 0 && { today }),
    ...(approvals.length > 0 && { approvals }),
    timings: await parts.metrics.timings(),
    ...(broker && { broker, machines }),
    providers,
    tokens,
    webhooks: listWebhooks(parts),
    ...(sources.length > 0 && { sources }),
    ...(schedules.length > 0 && { schedules }),
    events: events.list({ limit: 10, kind: 'webhook' }),
    failures: events.failures(3),
    ...(lastRun && { lastRun }),
    problems: [
      ...live.problems(),
      ...budgets.problems(config.webhooks, performance.now()),
      ...parts.spending.problems(),
      ...parts.approvals.problems(),
      ...parts.catchUp.problems(),
      ...parts.scheduler.problems(),
      ...parts.sources.problems(),
      ...problems,
      ...brokerProblems(broker),
      ...agentFaults.map(toAgentProblem),
      ...warnings,
      ...unstartable,
      ...unconfined,
      ...refusedFiles,
      ...unrunnable,
      ...tokenProblems,
    ],
  }
}

const brokerProblems = (broker: Status['broker']): StatusProblem[] => {
  const { connected, problem, notOffered } = broker ?? {}
  const help = 'doorward help several-machines'
  const [code, hint] = connected
    ? ['queue-key', 'set queue.key_env to the same on all machines']
    : ['queue-unreachable', help]
  return [
    ...(problem === undefined ? [] : [{ code, detail: `queue: ${problem}`, hint }]),
    ...(notOffered === undefined
      ? []
      : [{ code: 'queue-agents', detail: `queue: ${notOffered}`, hint: help }]),
  ]
}

const problemOfFolder = (error: unknown): StatusProblem[] => [
  toStatusProblem(knownError(error), 'doorward daemon logs'),
]
