import type { Status, StatusProblem, WebhookSummary } from '../shared/api.ts'
import { agentProgramWarnings } from '../shared/agents/program.ts'
import { sandboxWarnings } from '../shared/sandbox/warnings.ts'
import { fileTargetWarnings } from '../shared/targets/warnings.ts'
import { version } from '../shared/version.ts'
import type { ByteBudget } from './util/byte-budget.ts'
import type { EventStore } from './events/event-store.ts'
import { knownError } from './util/assets.ts'
import type { LiveConfig } from './config/live-config.ts'
import type { CatchUp } from './catch-up/catch-up.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { OAuth } from './oauth/oauth.ts'
import type { Queue } from './queue/queue.ts'
import type { Tunnel } from './tunnel/tunnel.ts'
import type { RunBudgets } from './webhook/rules/budgets.ts'

export type StatusParts = {
  readonly live: LiveConfig
  readonly budgets: RunBudgets
  readonly homeFolder: string
  readonly startedAt: Date
  readonly url: () => string
  /** The address for senders of webhooks, when it is not `url`. */
  readonly publicUrl: () => string | undefined
  readonly isStopping: () => boolean
  readonly queue: Queue
  readonly budget: ByteBudget
  readonly events: EventStore
  readonly oauth: OAuth
  readonly webhooks: () => WebhookSummary[]
  readonly metrics: Metrics
  readonly catchUp: Pick<CatchUp, 'problems'>
  readonly tunnel: Pick<Tunnel, 'status'>
}

/** Everything that the tray and `doorward status` show. */
export const buildStatus = async (parts: StatusParts): Promise<Status> => {
  const { live, homeFolder, queue, events, oauth } = parts
  const { config, env, warnings } = live.current()
  // An unreadable folder of tokens is one problem more, and must not hide the others.
  const [tokens, providers, tokenProblems, unstartable, unconfined, refusedFiles] =
    await Promise.all([
      oauth.tokens().catch(() => []),
      oauth.providers().catch(() => []),
      oauth.problems().catch(problemOfFolder),
      agentProgramWarnings(config, env, homeFolder),
      sandboxWarnings(config, env, homeFolder),
      fileTargetWarnings(config, homeFolder),
    ])
  const publicUrl = parts.publicUrl()
  const { program, state, arrivedAt, problems } = parts.tunnel.status()
  const lastRun = events.lastRun()
  const shared = queue.machines?.()
  return {
    version,
    startedAt: parts.startedAt.toISOString(),
    url: parts.url(),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    ...(program && { tunnel: { program, state, ...(arrivedAt !== undefined && { arrivedAt }) } }),
    ...(parts.isStopping() && { stopping: true }),
    queue: { ...queue.counts(), bytes: parts.budget.used() },
    timings: await parts.metrics.timings(),
    ...shared,
    providers,
    tokens,
    webhooks: parts.webhooks(),
    events: events.list({ limit: 10, kind: 'webhook' }),
    failures: events.failures(3),
    ...(lastRun && { lastRun }),
    problems: [
      ...live.problems(),
      ...parts.budgets.problems(config.webhooks, performance.now()),
      ...parts.catchUp.problems(),
      ...problems,
      ...brokerProblems(shared?.broker),
      ...warnings,
      ...unstartable,
      ...unconfined,
      ...refusedFiles,
      ...tokenProblems,
    ],
  }
}

const brokerProblems = (broker: Status['broker']): StatusProblem[] => {
  if (broker?.problem === undefined) return []
  const [code, hint] = broker.connected
    ? ['queue-key', 'set queue.key_env to the same on all machines']
    : ['queue-unreachable', 'doorward help several-machines']
  return [{ code, detail: `queue: ${broker.problem}`, hint }]
}

const problemOfFolder = (error: unknown): StatusProblem[] => {
  const { code, message, hint } = knownError(error)
  return [{ code, detail: message, hint: hint ?? 'doorward daemon logs' }]
}
