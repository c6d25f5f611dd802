import type { EventRecord, WebhookSummary } from '../../shared/api.ts'
import { secretsOf } from '../../shared/config/environment.ts'
import type { Config } from '../../shared/config/load.ts'
import type { Webhook } from '../../shared/config/webhook.ts'
import type { EventStore } from '../events/event-store.ts'

type Counts = WebhookSummary['counts']

export type EventCounts = {
  readonly of: (path: string) => Counted
  readonly entries: () => readonly (readonly [path: string, counted: Counted])[]
  readonly restore: (path: string, counted: Counted) => void
}

/** Counts events by webhook from the moment it is made. */
export const countEvents = (events: EventStore): EventCounts => {
  const counted = new Map<string, Counted>()
  const of = (path: string): Counted => {
    const known = counted.get(path)
    if (known) return known
    const fresh: Counted = { counts: noCounts(), lastEventAt: null }
    counted.set(path, fresh)
    return fresh
  }
  events.follow(({ record, before }) => {
    const { webhook, state, receivedAt } = record
    if (webhook === null || (before !== undefined && !isCounted(state))) return
    const entry = of(webhook)
    entry.lastEventAt = later(entry.lastEventAt, receivedAt)
    if (isCounted(state)) entry.counts[state] += 1
  })
  return {
    of,
    entries: () => [...counted],
    restore: (path, { counts, lastEventAt }) =>
      void counted.set(path, { counts: { ...noCounts(), ...counts }, lastEventAt }),
  }
}

export type Counted = { counts: Counts; lastEventAt: string | null }

const noCounts = (): Counts => ({
  accepted: 0,
  filtered: 0,
  duplicate: 0,
  rejected: 0,
  done: 0,
  failed: 0,
  dropped: 0,
})

const countedStates = new Set(Object.keys(noCounts()))

const isCounted = (state: EventRecord['state']): state is keyof Counts => countedStates.has(state)

const later = (a: string | null, b: string): string => (a !== null && a > b ? a : b)

/** What `GET /webhooks` shows of every definition; never a secret. */
export const summarize = (
  config: Config,
  env: NodeJS.ProcessEnv,
  baseUrl: string,
  countedOf: (path: string) => Counted,
): WebhookSummary[] =>
  config.webhooks.map((webhook) => {
    const { counts, lastEventAt } = countedOf(webhook.path)
    return {
      path: webhook.path,
      url: `${baseUrl.replace(/\/+$/, '')}${webhook.urlPaths.at(-1) ?? webhook.path}`,
      agent: webhook.agentName,
      enabled: webhook.enabled,
      scheme: webhook.scheme.name,
      secret: secretState(webhook, env),
      deliverTo: webhook.targets.map(({ text }) => text),
      counts: { ...counts },
      lastEventAt,
    }
  })

const secretState = (webhook: Webhook, env: NodeJS.ProcessEnv): WebhookSummary['secret'] => {
  if (webhook.secretNames.length === 0) return 'none'
  return secretsOf(webhook.secretNames, env).length > 0 ? 'set' : 'unset'
}
