import type { ConsumerConfig } from '@nats-io/jetstream'
import { errorName } from '../../../shared/errors.ts'
import type { Log } from '../../log/log.ts'
import type { Engine } from '../../webhook/engine.ts'
import {
  answersStream,
  type Broker,
  type Link,
  runsStream,
  toConsumerName,
  toRunSubject,
} from './broker.ts'

/*
 * A consumer is the broker's list of what machines may take: one for each agent, and one for the answers to each
 * receiver. Receivers make them all, so that a worker needs no right to make or change one: with that right it
 * could take the runs of every agent, or stop them.
 */

type ConsumerLimits = {
  readonly filter: string
  readonly maxAckPending: number
  readonly lostAfterMs: number
}

const nanosPerMs = 1_000_000

/** Makes the consumer of this name, or sets the limits of one that is there. */
export const ensureConsumer = async (
  { jsm }: Link,
  stream: string,
  name: string,
  { filter, maxAckPending, lostAfterMs }: ConsumerLimits,
): Promise<void> => {
  const limit = { max_ack_pending: maxAckPending, ack_wait: lostAfterMs * nanosPerMs }
  const config: Partial<ConsumerConfig> = {
    durable_name: name,
    filter_subject: filter,
    ack_policy: 'explicit',
    ...limit,
  }
  const known = await jsm.consumers.info(stream, name).catch(() => undefined)
  if (!known) await jsm.consumers.add(stream, config)
  else if (
    known.config.max_ack_pending !== maxAckPending ||
    known.config.ack_wait !== limit.ack_wait
  )
    await jsm.consumers.update(stream, name, limit)
}

/**
 * Answers to receivers that do not exist would fill their stream for a day. Once it is half full they are removed:
 * before, a receiver may only not have made its consumer yet.
 */
export const removeStrayAnswers = async ({ jsm }: Link): Promise<void> => {
  const { state, config } = await jsm.streams.info(answersStream, { subjects_filter: '>' })
  if (state.messages * 2 < config.max_msgs && state.bytes * 2 < config.max_bytes) return
  const consumers = await jsm.consumers.list(answersStream).next()
  const taken = new Set(consumers.map(({ config: { filter_subject } }) => filter_subject))
  for (const subject of Object.keys(state.subjects ?? {}))
    if (!taken.has(subject)) await jsm.streams.purge(answersStream, { filter: subject })
}

type RunConsumersParts = {
  readonly broker: Broker
  readonly current: () => Pick<Engine, 'config'>
  readonly log: Log
}

/** The consumers of the agents of this receiver. */
export class RunConsumers {
  readonly #parts: RunConsumersParts
  #link: Link | undefined
  /** The limits that each has over this connection, by agent. */
  readonly #made = new Map<string, string>()

  constructor(parts: RunConsumersParts) {
    this.#parts = parts
  }

  /** Makes what is missing: at each connection, after a change of the configuration, and every 10 seconds. */
  async ensure(): Promise<void> {
    const { broker, current, log } = this.#parts
    const { link, lostAfterMs } = broker
    if (!link) return
    if (this.#link !== link) this.#made.clear()
    this.#link = link
    for (const [agent, { concurrency }] of current().config.agents) {
      const limits = `${concurrency} ${lostAfterMs}`
      if (this.#made.get(agent) === limits) continue
      this.#made.set(agent, limits)
      try {
        const filter = toRunSubject(agent)
        const all = { filter, maxAckPending: concurrency, lostAfterMs }
        await ensureConsumer(link, runsStream, toConsumerName(agent), all)
      } catch (error) {
        this.#made.delete(agent)
        log.warn({ agent, error: errorName(error) }, 'the consumer of an agent cannot be made')
      }
    }
  }
}
