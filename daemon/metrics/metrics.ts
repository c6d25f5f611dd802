import { memoryUsage, resourceUsage } from 'node:process'
import type { Metric as LibraryMetric } from 'prom-client'
import type { TokenSummary, WebhookSummary } from '../../shared/api.ts'
import { version } from '../../shared/version.ts'
import type { OAuthCount } from '../oauth/dependencies.ts'
import { type Distribution, type Measures, quickBoundsMs, slowBoundsMs } from './timings.ts'

/*
 * What `GET /metrics` says, by the conventions of Prometheus: base units (seconds, bytes), `_total` for
 * what only grows. Labels are words of the configuration alone; nothing a sender says becomes one.
 */

type MetricParts = {
  readonly startedAt: Date
  readonly measures: Measures
  readonly oauthCounts: OAuthCounts
  readonly queue: { readonly waiting: number; readonly running: number; readonly bytes: number }
  readonly streams: number
  readonly webhooks: readonly WebhookSummary[]
  readonly tokens: readonly TokenSummary[]
  readonly problems: number
}

/** One line of the answer. */
type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

type Metric = {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly samples: readonly Sample[]
}

/** Every metric with its values now. */
export const toMetrics = (parts: MetricParts): Metric[] => [
  gauge('doorward_build_info', 'Always 1; the version is its label', [[{ version }, 1]]),
  ...ofProcess(parts.startedAt),
  ...ofWebhooks(parts.webhooks),
  ...ofTimes(parts.measures),
  gauge('doorward_queue_waiting', 'Accepted events that wait for an agent', parts.queue.waiting),
  gauge(
    'doorward_queue_running',
    'Events with an agent or on their way to targets',
    parts.queue.running,
  ),
  gauge('doorward_queue_bytes', 'Bytes of bodies being read and events waiting', parts.queue.bytes),
  gauge('doorward_event_stream_followers', 'Open event streams', parts.streams),
  gauge('doorward_problems', 'Problems that status shows', parts.problems),
  ...ofTokens(parts),
]

const ofProcess = (startedAt: Date): Metric[] => {
  const { userCPUTime, systemCPUTime } = resourceUsage()
  const { rss, heapUsed } = memoryUsage()
  const cpu = (userCPUTime + systemCPUTime) / 1e6
  return [
    counter('process_cpu_seconds_total', 'Processor time of the daemon', [[{}, cpu]]),
    gauge('process_resident_memory_bytes', 'Memory that the daemon holds', rss),
    gauge('process_start_time_seconds', 'Start, since 1970', startedAt.getTime() / 1000),
    gauge('nodejs_heap_size_used_bytes', 'Memory of living objects', heapUsed),
  ]
}

const ofWebhooks = (webhooks: readonly WebhookSummary[]): Metric[] => [
  counter(
    'doorward_deliveries_total',
    'Deliveries by what became of them at the door',
    webhooks.flatMap(({ path, counts }) =>
      (['accepted', 'filtered', 'duplicate', 'rejected'] as const).map(
        (result) => [{ webhook: path, result }, counts[result]] as const,
      ),
    ),
  ),
  counter(
    'doorward_events_total',
    'Accepted events by how they ended',
    webhooks.flatMap(({ path, counts }) =>
      (['done', 'failed', 'dropped'] as const).map(
        (state) => [{ webhook: path, state }, counts[state]] as const,
      ),
    ),
  ),
  gauge(
    'doorward_webhook_last_event_timestamp_seconds',
    'Newest event of a webhook, since 1970',
    webhooks.flatMap(({ path, lastEventAt }) =>
      lastEventAt === null ? [] : [[{ webhook: path }, Date.parse(lastEventAt) / 1000] as const],
    ),
  ),
]

const ofTimes = ({ answer, queue, agents, deliver }: Measures): Metric[] => [
  histogram(
    'doorward_answer_duration_seconds',
    'From the head of a delivery to our answer',
    quickBoundsMs,
    [[{}, answer]],
  ),
  histogram(
    'doorward_queue_wait_duration_seconds',
    'From its acceptance to the start of its agent',
    slowBoundsMs,
    [[{}, queue]],
  ),
  histogram(
    'doorward_agent_duration_seconds',
    'How long agents ran',
    slowBoundsMs,
    [...agents].map(([agent, distribution]) => [{ agent }, distribution] as const),
  ),
  histogram(
    'doorward_delivery_duration_seconds',
    'How long an answer took to all its targets',
    slowBoundsMs,
    [[{}, deliver]],
  ),
]

const ofTokens = ({ oauthCounts, tokens }: MetricParts): Metric[] => {
  const counted = oauthCounts.all()
  const providers = new Set([...tokens, ...counted].map(({ provider }) => provider))
  // From 0 on: `increase()` does not see the first of a series that begins with 1.
  const times = (what: OAuthCount, result: string) =>
    [...providers].map((provider) => {
      const of = counted.find((entry) => entry.what === what && entry.provider === provider)
      return [{ provider, result }, of?.times ?? 0] as const
    })
  return [
    counter('doorward_token_requests_total', 'Tokens asked for by programs of this machine', [
      ...times('token-given', 'given'),
      ...times('token-not-given', 'refused'),
    ]),
    counter('doorward_token_renewals_total', 'Renewals at providers', [
      ...times('token-renewed', 'done'),
      ...times('renewal-failed', 'failed'),
    ]),
    gauge(
      'doorward_token_expiry_timestamp_seconds',
      'End of an access token, since 1970',
      tokens.flatMap(({ provider, expiresAt }) =>
        expiresAt === null ? [] : [[{ provider }, Date.parse(expiresAt) / 1000] as const],
      ),
    ),
    gauge(
      'doorward_login_ok',
      '1 for a login that works, 0 for one that is needed again',
      tokens.map(({ provider, status }) => [{ provider }, status === 'needs-login' ? 0 : 1]),
    ),
  ]
}

type Labelled<Value> = readonly (readonly [Readonly<Record<string, string>>, Value])[]

const plain =
  (type: 'counter' | 'gauge') =>
  (name: string, help: string, values: Labelled<number> | number): Metric => ({
    name,
    help,
    type,
    samples: (typeof values === 'number' ? ([[{}, values]] as const) : values).map(
      ([labels, value]) => ({ name, labels, value }),
    ),
  })
const counter = plain('counter')
const gauge = plain('gauge')

const histogram = (
  name: string,
  help: string,
  boundsMs: readonly number[],
  distributions: Labelled<Distribution>,
): Metric => ({
  name,
  help,
  type: 'histogram',
  samples: distributions.flatMap(([labels, distribution]) => {
    const upTo = distribution.upTo()
    return [
      ...boundsMs.map((bound, index) => ({
        name: `${name}_bucket`,
        labels: { ...labels, le: String(bound / 1000) },
        value: upTo[index] ?? 0,
      })),
      { name: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: distribution.count() },
      { name: `${name}_sum`, labels, value: distribution.totalMs() / 1000 },
      { name: `${name}_count`, labels, value: distribution.count() },
    ]
  }),
})

/** How often each thing happened to the tokens of each provider. */
export type OAuthCounts = {
  readonly count: (what: OAuthCount, provider: string) => void
  readonly all: () => readonly {
    readonly what: OAuthCount
    readonly provider: string
    readonly times: number
  }[]
}

/** All at zero. */
export const createOAuthCounts = (): OAuthCounts => {
  const counts = new Map<OAuthCount, Map<string, number>>()
  return {
    count: (what, provider) => {
      const byProvider = counts.get(what) ?? new Map<string, number>()
      counts.set(what, byProvider)
      byProvider.set(provider, (byProvider.get(provider) ?? 0) + 1)
    },
    all: () =>
      [...counts].flatMap(([what, byProvider]) =>
        [...byProvider].map(([provider, times]) => ({ what, provider, times })),
      ),
  }
}

/**
 * The one file that knows prom-client: it writes the text format (Prometheus, "Exposition formats"). It
 * is loaded by the first who asks. What is measured is counted by us, without labels on the way of a
 * delivery, so it gets the finished values.
 */
export const expose = async (
  metrics: readonly Metric[],
): Promise<{ readonly text: string; readonly mediaType: string }> => {
  const { Registry } = await import('prom-client')
  const registry = new Registry()
  for (const { name, help, type, samples } of metrics) {
    const values = samples.map((sample) => ({ ...sample, metricName: sample.name }))
    // All that a registry asks of a metric; its own classes count one by one.
    const finished = { name, get: async () => ({ name, help, type, values, aggregator: 'sum' }) }
    registry.registerMetric(finished as unknown as LibraryMetric)
  }
  return { text: await registry.metrics(), mediaType: registry.contentType }
}
