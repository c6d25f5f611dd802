import { setTimeout as sleep } from 'node:timers/promises'
import type { ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import { errorName } from '../../../shared/errors.ts'
import { type Log, oncePerMinute } from '../../log/log.ts'
import type { Engine } from '../../webhook/engine.ts'
import { type Broker, type Link, runsStream, toConsumerName } from './broker.ts'
import { readRun, type Run } from './messages.ts'

/*
 * A worker asks the broker for runs of each of its agents, as many as it may start now. Receivers have made what
 * it asks.
 */

export type RunRequestsParts = {
  readonly broker: Broker
  readonly keys: () => readonly Buffer[]
  readonly current: () => Pick<Engine, 'config'>
  /** True while a receiver is heard of that has a key of this machine. */
  readonly hasReceiver: () => boolean
  /** How many runs this machine has, of one agent or of all. */
  readonly running: (agent?: string) => number
  readonly take: (run: Run, message: JsMsg, lostAfterMs: number) => void
  readonly log: Log
}

const consumerNotFound = 10_014
const deniedError = 'PermissionViolationError'
/** Where the broker has an account for each worker: this one imports nothing of the agent. */
const notImportedError = 'JetStreamNotEnabled'
const againMs = 1000
const deniedMs = 10_000
/** What is on its way when this machine stops is lost to it, and comes to another later. */
const maxAsked = 8
/** How long the broker is asked for a run: shorter where agents take turns for the free places. */
const longAskMs = 30_000
const shortAskMs = 2000

export class RunRequests {
  readonly #parts: RunRequestsParts
  readonly #asking = new Set<ConsumerMessages>()
  /** How many runs of each agent are asked for now: their places are kept free. */
  readonly #kept = new Map<string, number>()
  /** Why some agents cannot be asked for. */
  readonly #notOffered = new Map<string, 'missing' | 'denied'>()
  readonly #refused = oncePerMinute((count) =>
    this.#parts.log.warn(
      { count },
      'runs cannot be opened: the keys of the machines differ, or another program has written them',
    ),
  )
  /** A run could not be opened. */
  #hasRefused = false
  #link: Link | undefined
  #loops = new Set<string>()
  #wake: (() => void)[] = []

  constructor(parts: RunRequestsParts) {
    this.#parts = parts
  }

  /** From the next tick on. */
  start(link: Link): void {
    this.stop()
    this.#link = link
  }

  stop(): void {
    this.#link = undefined
    this.#loops = new Set()
    for (const messages of this.#asking) void messages.close()
    this.#asking.clear()
    this.changed()
  }

  /** Agents and places may have come with a new configuration. */
  tick(): void {
    const { broker, current } = this.#parts
    this.changed()
    if (!this.#link || broker.link !== this.#link) return
    for (const name of current().config.agents.keys())
      if (!this.#loops.has(name)) void this.#ask(name, this.#link, this.#loops)
  }

  /** A place is free, or a receiver was heard of. */
  changed(): void {
    const wake = this.#wake
    this.#wake = []
    for (const resolve of wake) resolve()
  }

  /** Why this machine gets no runs of some of its agents. */
  notOffered(): string | undefined {
    const which = (why: 'missing' | 'denied') =>
      [...this.#notOffered].flatMap(([name, known]) => (known === why ? [name] : [])).join(', ')
    const [missing, denied] = [which('missing'), which('denied')]
    const all = [
      missing && `no receiver offers runs of ${missing}: it has no such agent, or is older`,
      denied && `the configuration of NATS gives this machine no runs of ${denied}`,
    ]
    return all.filter(Boolean).join('; ') || undefined
  }

  /** Takes the runs of one agent, for as long as this connection and this agent are there. */
  async #ask(name: string, link: Link, loops: Set<string>): Promise<void> {
    const { broker, current, log } = this.#parts
    loops.add(name)
    const isOn = () =>
      this.#loops === loops && broker.link === link && current().config.agents.has(name)
    while (isOn()) {
      if (this.#free(name) <= 0) {
        await new Promise<void>((resolve) => this.#wake.push(resolve))
        continue
      }
      const { agents, gateway } = current().config
      const isCrowded = agents.size > gateway.queue.concurrency
      // Each agent has its part of the places.
      const part = Math.max(1, Math.floor(gateway.queue.concurrency / agents.size))
      const places = Math.min(this.#free(name), part, maxAsked)
      this.#kept.set(name, places)
      try {
        const consumer = await link.js.consumers.get(runsStream, toConsumerName(name))
        this.#notOffered.delete(name)
        // The receiver has set how soon a run goes to another machine.
        const { config } = await consumer.info(true)
        const lostAfterMs = Math.min(broker.lostAfterMs, (config.ack_wait ?? Infinity) / 1e6)
        const expires = isCrowded ? shortAskMs : longAskMs
        const messages = await consumer.fetch({ max_messages: places, expires })
        this.#asking.add(messages)
        try {
          if (!isOn()) void messages.close()
          for await (const message of messages) {
            this.#kept.set(name, (this.#kept.get(name) ?? 1) - 1)
            this.#take(name, message, lostAfterMs)
          }
        } finally {
          this.#asking.delete(messages)
        }
      } catch (error) {
        if (isOn()) {
          log.debug({ agent: name, error: errorName(error) }, 'cannot ask for runs')
          this.#noteFailure(name, error)
        }
        // The broker writes a line about each request that its permissions deny.
        await sleep(errorName(error) === deniedError ? deniedMs : againMs)
      } finally {
        this.#kept.delete(name)
        this.changed()
      }
    }
    loops.delete(name)
    if (this.#loops === loops) this.#notOffered.delete(name)
  }

  #noteFailure(agent: string, error: unknown): void {
    const isMissing = (error as { readonly code?: unknown }).code === consumerNotFound
    const isDenied = [deniedError, notImportedError].includes(errorName(error))
    if (isMissing || isDenied) this.#notOffered.set(agent, isMissing ? 'missing' : 'denied')
  }

  #take(agent: string, message: JsMsg, lostAfterMs: number): void {
    const run = readRun(message.data, this.#parts.keys())
    if (run?.agent === agent) this.#parts.take(run, message, lostAfterMs)
    else this.#refuse(message)
  }

  /**
   * Others can put messages here that nothing opens, and each takes the place of a run: the second machine that is
   * given one ends it. While keys are replaced, that machine may be able to open it. A machine whose own key is
   * wrong leaves all of them to others, and asks for no more.
   */
  #refuse(message: JsMsg): void {
    this.#hasRefused = true
    this.#refused()
    if (this.#parts.hasReceiver() && message.info.deliveryCount > 1) message.term()
    else message.nak()
  }

  /** How many runs of this agent may be asked for now. */
  #free(name: string): number {
    const { running, current, hasReceiver } = this.#parts
    if (this.#hasRefused && !hasReceiver()) return 0
    const { agents, gateway } = current().config
    const ofAgent = (agents.get(name)?.concurrency ?? 0) - running(name)
    let ofAll = gateway.queue.concurrency - running()
    for (const kept of this.#kept.values()) ofAll -= kept
    return Math.min(ofAgent, ofAll)
  }
}
