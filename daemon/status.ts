import type { Status, WebhookSummary } from '../shared/api.ts'
import { warningsOf } from '../shared/config-warnings.ts'
import { missingPrograms } from '../shared/detect-agents.ts'
import type { Config } from '../shared/load-config.ts'
import { version } from '../shared/version.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { EventStore } from './events.ts'
import type { OAuth } from './oauth/oauth.ts'
import type { Queue } from './queue.ts'

export type StatusParts = {
  readonly config: Config
  readonly env: NodeJS.ProcessEnv
  readonly startedAt: Date
  readonly url: () => string
  readonly queue: Queue
  readonly budget: ByteBudget
  readonly events: EventStore
  readonly oauth: OAuth
  readonly webhooks: () => WebhookSummary[]
}

/** All that the tray and `doorward status` show. */
export const statusOf = async (parts: StatusParts): Promise<Status> => {
  const { config, queue, events, oauth } = parts
  const [tokens, providers, tokenProblems, missing] = await Promise.all([
    oauth.tokens(),
    oauth.providers(),
    oauth.problems(),
    missingPrograms(config, parts.env),
  ])
  const publicUrl = config.gateway.server.public_url
  return {
    version,
    startedAt: parts.startedAt.toISOString(),
    url: parts.url(),
    ...(publicUrl === undefined ? {} : { publicUrl }),
    queue: { ...queue.counts(), bytes: parts.budget.used() },
    providers,
    tokens,
    webhooks: parts.webhooks(),
    events: events
      .list({ limit: Number.POSITIVE_INFINITY })
      .filter(({ kind }) => kind === 'webhook')
      .slice(0, 10),
    problems: [...warningsOf(config, parts.env), ...missing, ...tokenProblems],
  }
}
