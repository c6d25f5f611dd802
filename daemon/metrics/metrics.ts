import { memoryUsage, resourceUsage } from 'node:process'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Status, Timings } from '../../shared/api/api.ts'
import { version } from '../../shared/version.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import type { OAuthCount } from '../oauth/dependencies.ts'
import type { UsageLog } from '../usage/usage-log.ts'

/** Upper bounds in seconds: an answer takes milliseconds, an agent takes minutes. */
const fastBuckets = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 15]
const slowBuckets = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600]

/** The state of the daemon at the time of a scrape. */
type Snapshot = Pick<
  Status,
  'queue' | 'webhooks' | 'tokens' | 'problems' | 'broker' | 'machines'
> & {
  readonly startedAt: Date
  readonly streams: number
}

/**
 * The figures of `GET /metrics` and of the timings in `GET /status`, by the conventions of Prometheus: base
 * units, `_total` for what only grows. Labels come from the configuration, never from a sender.
 */
export class Metrics {
  readonly #answer = new Histogram({
    name: 'doorward_answer_duration_seconds',
    help: 'From the head of a delivery to its answer',
    buckets: fastBuckets,
    registers: [],
  })
  readonly #queue = new Histogram({
    name: 'doorward_queue_wait_duration_seconds',
    help: 'From the acceptance of an event to the start of its agent',
    buckets: slowBuckets,
    registers: [],
  })
  readonly #agent = new Histogram({
    name: 'doorward_agent_duration_seconds',
    help: 'How long agents ran',
    labelNames: ['agent'],
    buckets: slowBuckets,
    registers: [],
  })
  readonly #delivery = new Histogram({
    name: 'doorward_delivery_duration_seconds',
    help: 'How long the delivery of an answer to all its targets took',
    buckets: slowBuckets,
    registers: [],
  })
  readonly #tokenRequests = new Counter({
    name: 'doorward_token_requests_total',
    help: 'Requests for a token by programs of this machine',
    labelNames: ['provider', 'result'],
    registers: [],
  })
  readonly #tokenRenewals = new Counter({
    name: 'doorward_token_renewals_total',
    help: 'Token refreshes at providers',
    labelNames: ['provider', 'result'],
    registers: [],
  })

  readonly #agentTokens = new Counter({
    name: 'doorward_agent_tokens_total',
    help: 'Tokens that runs used, as their programs and models say; cached ones are a part of the input',
    labelNames: ['agent', 'kind'],
    registers: [],
  })
  readonly #agentCost = new Counter({
    name: 'doorward_agent_cost_usd_total',
    help: 'Dollars that runs cost, as their programs say',
    labelNames: ['agent'],
    registers: [],
  })

  readonly #started = new Set<string>()

  constructor(events: Pick<EventStore, 'follow'>, usage: Pick<UsageLog, 'follow'>) {
    usage.follow(({ agent }, { inputTokens, outputTokens, cachedTokens, costUsd }) => {
      const kinds = { input: inputTokens, output: outputTokens, cached: cachedTokens }
      for (const [kind, count] of Object.entries(kinds))
        if (count !== undefined) this.#agentTokens.inc({ agent, kind }, count)
      if (costUsd !== undefined) this.#agentCost.inc({ agent }, costUsd)
    })
    events.follow(({ record, before }) => {
      const { kind, state, agent, durations, targets } = record
      if (kind !== 'webhook' || state === before) return
      const { queuedMs, agentMs, deliverMs } = durations
      // A retry of the delivery alone keeps the times of the first run.
      if (before === 'running' && agentMs !== undefined)
        this.#agent.observe({ agent: agent ?? '' }, agentMs / 1000)
      if (state === 'running' && queuedMs !== undefined) this.#queue.observe(queuedMs / 1000)
      if (isFinal(state) && targets.length > 0 && deliverMs !== undefined)
        this.#delivery.observe(deliverMs / 1000)
    })
  }

  /** Counts an answered delivery, with its duration in milliseconds. */
  readonly answered = (ms: number): void => this.#answer.observe(ms / 1000)

  readonly countToken = (what: OAuthCount, provider: string): void => {
    this.#startAtZero(provider)
    const { counter, result } = this.#tokenCounts[what]
    counter.inc({ provider, result })
  }

  /** `increase()` misses the first count of a series that begins with 1. */
  #startAtZero(provider: string): void {
    if (this.#started.has(provider)) return
    this.#started.add(provider)
    for (const { counter, result } of Object.values(this.#tokenCounts))
      counter.inc({ provider, result }, 0)
  }

  /** The number of each, and how long half and 99 in 100 of them took at most. */
  async timings(): Promise<Timings> {
    const [answer, queue, agent, deliver] = await Promise.all([
      toTiming(this.#answer),
      toTiming(this.#queue),
      toTiming(this.#agent),
      toTiming(this.#delivery),
    ])
    return { answer, queue, agent, deliver }
  }

  /** Everything in Prometheus' text format. */
  async expose(snapshot: Snapshot): Promise<{ readonly text: string; readonly mediaType: string }> {
    for (const { provider } of snapshot.tokens) this.#startAtZero(provider)
    const registry = new Registry()
    collectProcess(registry, snapshot)
    collectMachines(registry, snapshot)
    collectWebhooks(registry, snapshot)
    collectTokens(registry, snapshot)
    for (const metric of [this.#answer, this.#queue, this.#agent, this.#delivery])
      registry.registerMetric(metric)
    for (const metric of [this.#tokenRequests, this.#tokenRenewals]) registry.registerMetric(metric)
    for (const metric of [this.#agentTokens, this.#agentCost]) registry.registerMetric(metric)
    return { text: await registry.metrics(), mediaType: registry.contentType }
  }

  readonly #tokenCounts = {
    'token-given': { counter: this.#tokenRequests, result: 'given' },
    'token-not-given': { counter: this.#tokenRequests, result: 'refused' },
    'token-renewed': { counter: this.#tokenRenewals, result: 'done' },
    'renewal-failed': { counter: this.#tokenRenewals, result: 'failed' },
  } as const satisfies Record<OAuthCount, unknown>
}

const collectProcess = (
  registry: Registry,
  { startedAt, queue, streams, problems }: Snapshot,
): void => {
  const { userCPUTime, systemCPUTime } = resourceUsage()
  const { rss, heapUsed } = memoryUsage()
  const cpuSeconds = (userCPUTime + systemCPUTime) / 1e6
  const gauge = addGauge(registry)
  gauge('doorward_build_info', 'Always 1; the version is its label', [[{ version }, 1]])
  addCounter(registry)('process_cpu_seconds_total', 'Processor time of the daemon', cpuSeconds)
  gauge('process_resident_memory_bytes', 'Resident memory of the daemon', rss)
  gauge('process_start_time_seconds', 'Start, since 1970', startedAt.getTime() / 1000)
  gauge('nodejs_heap_size_used_bytes', 'Used heap', heapUsed)
  gauge('doorward_queue_waiting', 'Accepted events that wait for an agent', queue.waiting)
  gauge('doorward_queue_running', 'Events at an agent or in delivery', queue.running)
  gauge('doorward_queue_bytes', 'Bytes of bodies being read and events waiting', queue.bytes)
  gauge('doorward_event_stream_followers', 'Open event streams', streams)
  gauge('doorward_problems', 'Problems that status shows', problems.length)
}

const collectMachines = (registry: Registry, { broker, machines = [] }: Snapshot): void => {
  if (!broker) return
  const gauge = addGauge(registry)
  gauge('doorward_broker_connected', '1 with a connection to the broker', Number(broker.connected))
  if (broker.waiting !== undefined)
    gauge('doorward_broker_waiting', 'Events that no worker has taken', broker.waiting)
  addCounter(registry)(
    'doorward_broker_redeliveries_total',
    'Runs that were given to another worker',
    broker.redelivered,
  )
  gauge(
    'doorward_machines',
    'Machines that reported themselves in the last 30 seconds',
    (['receiver', 'worker', 'both'] as const).map((role) => [
      // The label that dashboards have.
      { role: role === 'receiver' ? 'door' : role },
      machines.filter((machine) => machine.role === role).length,
    ]),
  )
  const loads = machines.flatMap(({ name: machine, agents }) =>
    agents.map(({ name: agent, ...load }) => ({ labels: { machine, agent }, ...load })),
  )
  const sample = (of: 'running' | 'free') => loads.map((load) => [load.labels, load[of]] as const)
  gauge('doorward_machine_agents_running', 'Runs on a machine', sample('running'))
  gauge('doorward_machine_agents_free', 'Runs that a machine could start', sample('free'))
}

const collectWebhooks = (registry: Registry, { webhooks }: Snapshot): void => {
  const counter = addCounter(registry)
  counter(
    'doorward_deliveries_total',
    'Deliveries by result',
    webhooks
      .flatMap(byRule)
      .flatMap(({ labels, counts }) =>
        (['accepted', 'filtered', 'duplicate', 'rejected'] as const).map(
          (result) => [{ ...labels, result }, counts[result]] as const,
        ),
      ),
  )
  counter(
    'doorward_events_total',
    'Accepted events by final state',
    webhooks
      .flatMap(byRule)
      .flatMap(({ labels, counts }) =>
        (['done', 'failed', 'dropped'] as const).map(
          (state) => [{ ...labels, state }, counts[state]] as const,
        ),
      ),
  )
  addGauge(registry)(
    'doorward_webhook_last_event_timestamp_seconds',
    'Newest event of a webhook, since 1970',
    webhooks.flatMap(({ path, lastEventAt }) =>
      lastEventAt === null ? [] : [[{ webhook: path }, Date.parse(lastEventAt) / 1000] as const],
    ),
  )
}

type Counts = Status['webhooks'][number]['counts']

/** The counts of each rule, and of what came to no rule, so that the sum is that of the webhook. */
const byRule = ({
  path,
  counts,
  rules = [],
}: Status['webhooks'][number]): {
  readonly labels: Readonly<Record<string, string>>
  readonly counts: Counts
}[] => {
  const rest: Counts = { ...counts }
  for (const rule of rules)
    for (const state of Object.keys(rest) as (keyof Counts)[]) rest[state] -= rule.counts[state]
  return [
    { labels: { webhook: path }, counts: rest },
    ...rules.map((rule) => ({ labels: { webhook: path, rule: rule.name }, counts: rule.counts })),
  ]
}

const collectTokens = (registry: Registry, { tokens }: Snapshot): void => {
  const gauge = addGauge(registry)
  gauge(
    'doorward_token_expiry_timestamp_seconds',
    'Expiry of an access token, since 1970',
    tokens.flatMap(({ provider, expiresAt }) =>
      expiresAt === null ? [] : [[{ provider }, Date.parse(expiresAt) / 1000] as const],
    ),
  )
  gauge(
    'doorward_login_ok',
    '1 for a login that works, 0 for one that is needed again',
    tokens.map(({ provider, status }) => [{ provider }, status === 'needs-login' ? 0 : 1]),
  )
}

type Samples = readonly (readonly [labels: Readonly<Record<string, string>>, value: number])[]

const adder =
  (Type: typeof Gauge | typeof Counter) =>
  (registry: Registry) =>
  (name: string, help: string, values: Samples | number): void => {
    const samples: Samples = typeof values === 'number' ? [[{}, values]] : values
    const [first] = samples
    // Without label names, the library adds a sample of 0.
    if (!first) return
    const labelNames = [...new Set(samples.flatMap(([labels]) => Object.keys(labels)))]
    const metric = new Type({ name, help, labelNames, registers: [registry] })
    for (const [labels, value] of samples) metric.inc(labels, value)
  }
const addGauge = adder(Gauge)
const addCounter = adder(Counter)

/** Sums a histogram over its labels. */
const toTiming = async (histogram: Pick<Histogram, 'get'>): Promise<Timings[keyof Timings]> => {
  const counts = new Map<number, number>()
  for (const { metricName, labels, value } of (await histogram.get()).values)
    if (metricName?.endsWith('_bucket')) {
      const bound = labels.le === '+Inf' ? Infinity : Number(labels.le)
      counts.set(bound, (counts.get(bound) ?? 0) + value)
    }
  const quantileMs = (part: number) => Number((toQuantile(counts, part) * 1000).toPrecision(2))
  return { count: counts.get(Infinity) ?? 0, p50Ms: quantileMs(0.5), p99Ms: quantileMs(0.99) }
}

/**
 * The value that this part (0 to 1) of all did not exceed, estimated within its bucket as Prometheus'
 * `histogram_quantile` does; 0 without values. `counts` are cumulative, by ascending upper bound.
 */
export const toQuantile = (counts: ReadonlyMap<number, number>, part: number): number => {
  const total = counts.get(Infinity) ?? 0
  if (total === 0) return 0
  let lower = 0
  let below = 0
  for (const [upper, count] of counts) {
    if (upper === Infinity) break
    if (count >= total * part)
      return lower + ((upper - lower) * (total * part - below)) / (count - below)
    lower = upper
    below = count
  }
  return lower
}
