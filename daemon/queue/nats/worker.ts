import { setTimeout as sleep } from 'node:timers/promises'
import type { Consumer, ConsumerMessages, JsMsg } from '@nats-io/jetstream'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import type { EventState } from '../../../shared/api.ts'
import type { EventChanges } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import { copyError } from '../../util/error-copy.ts'
import { isCancelled } from '../../util/concurrency.ts'
import type { Engine } from '../../webhook/engine.ts'
import { type AcceptedEvent, fromWire } from '../../webhook/events/accepted-event.ts'
import { isUnfencedFor } from '../../webhook/events/control.ts'
import { describeAnswer } from '../../webhook/events/run-to-end.ts'
import type { EventQueue } from '../event-queue.ts'
import {
  type Broker,
  cancelSubject,
  doneSubject,
  type Link,
  progressSubject,
  runsStream,
  toConsumerName,
  toRunSubject,
} from './broker.ts'
import { type Held, keepWorking } from './answers.ts'
import type { Identity } from './machines.ts'
import { type Outcome, readNote, readRun, type Run, writeDone, writeNote } from './messages.ts'

/*
 * The side of the worker: it asks the broker for runs of its agents, as many as it may start now, and runs them
 * in a queue in memory. The answer is with the broker before the run is acknowledged there, so that a worker
 * that dies is replaced.
 */

export type WorkerParts = {
  readonly broker: Broker
  /** Where they run: its own, so that no answer waits for a long run. */
  readonly runs: EventQueue
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly current: () => Pick<Engine, 'config' | 'ask'>
  /** Where runs are shown; undefined where the receiver shows them. */
  readonly events: EventStore | undefined
  readonly log: Log
}

type Running = {
  readonly id: string
  readonly agent: string
  readonly held: Held
  /** Says again that it runs, for a receiver that did not hear it. */
  tell?: () => void
}

const maxAttempts = 3
const againMs = 1000
/** What is on its way when this machine stops is lost to it, and comes to another later. */
const maxAsked = 8
/** How long an agent is not asked for after a run that could not be opened: others may have the key. */
const keyMs = 30_000
/** How long the broker is asked for a run: shorter where agents take turns for the free places. */
const longAskMs = 30_000
const shortAskMs = 2000

export class Worker {
  readonly #parts: WorkerParts
  /** By run, as an event may be published again before this machine has finished with it. */
  readonly #running = new Map<string, Running>()
  readonly #asking = new Set<ConsumerMessages>()
  /** How many runs of each agent are asked for now: their places are kept free. */
  readonly #kept = new Map<string, number>()
  #link: Link | undefined
  #loops = new Set<string>()
  #wake: (() => void)[] = []
  #isActive = false
  #connection: Link['nc'] | undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
    parts.broker.onLink((link) => {
      if (this.#isActive) this.#connect(link)
    })
  }

  start(): void {
    this.#isActive = true
    const { link } = this.#parts.broker
    if (link) this.#connect(link)
  }

  /** Takes no more; what runs goes on. */
  stop(): void {
    this.#isActive = false
    this.#stopAsking()
  }

  /** Every 10 seconds: agents and places may have come with a new configuration. */
  tick(): void {
    const { broker } = this.#parts
    for (const { tell } of this.#running.values()) tell?.()
    this.#changed()
    if (!this.#isActive || !this.#link || broker.link !== this.#link) return
    for (const name of this.#parts.current().config.agents.keys())
      if (!this.#loops.has(name)) void this.#ask(name, this.#link, this.#loops)
  }

  /** What this machine says of its agents. */
  agents(): { readonly name: string; readonly running: number; readonly free: number }[] {
    const { agents, gateway } = this.#parts.current().config
    const free = gateway.queue.concurrency - this.#running.size
    return [...agents].map(([name, { concurrency }]) => {
      const running = this.#runningOf(name)
      return { name, running, free: Math.max(0, Math.min(free, concurrency - running)) }
    })
  }

  #connect(link: Link): void {
    this.#stopAsking()
    this.#link = link
    this.#loops = new Set()
    if (this.#connection !== link.nc) {
      this.#connection = link.nc
      link.nc.subscribe(cancelSubject, {
        callback: (error, { data }) => {
          const note = error ? undefined : readNote('cancel', data, this.#parts.keys())
          const isHere = [...this.#running.values()].some(({ id }) => id === note?.id)
          if (note && isHere) this.#parts.runs.cancel(note.id)
        },
      })
    }
    this.tick()
  }

  #stopAsking(): void {
    for (const messages of this.#asking) void messages.close()
    this.#asking.clear()
    this.#changed()
  }

  /** Takes the runs of one agent, for as long as this connection and this agent are there. */
  async #ask(name: string, link: Link, loops: Set<string>): Promise<void> {
    const { broker, current, log } = this.#parts
    loops.add(name)
    let limit = 0
    let consumer: Consumer | undefined
    const isOn = () => this.#isActive && broker.link === link && current().config.agents.has(name)
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
        const { concurrency = 1 } = agents.get(name) ?? {}
        if (!consumer || limit !== concurrency) {
          const limits = { filter: toRunSubject(name), maxAckPending: concurrency }
          await broker.ensureConsumer(link, runsStream, toConsumerName(name), limits)
          consumer = await link.js.consumers.get(runsStream, toConsumerName(name))
          limit = concurrency
        }
        const expires = isCrowded ? shortAskMs : longAskMs
        const messages = await consumer.fetch({ max_messages: places, expires })
        this.#asking.add(messages)
        try {
          if (!isOn()) void messages.close()
          for await (const message of messages) {
            this.#kept.set(name, (this.#kept.get(name) ?? 1) - 1)
            if (!this.#take(name, message)) await sleep(keyMs, undefined, { ref: false })
          }
        } finally {
          this.#asking.delete(messages)
        }
      } catch (error) {
        if (isOn()) log.debug({ agent: name, error: errorName(error) }, 'cannot ask for runs')
        consumer = undefined
        await sleep(againMs)
      } finally {
        this.#kept.delete(name)
        this.#changed()
      }
    }
    loops.delete(name)
  }

  /** False for a run that this machine has no key for. */
  #take(agent: string, message: JsMsg): boolean {
    const { runs, keys, log, current } = this.#parts
    const run = readRun(message.data, keys())
    if (!run) {
      log.warn({ agent }, 'a run cannot be opened: the keys of the machines differ')
      message.nak()
      return false
    }
    const { id, run: name } = run
    const running = this.#running.get(name)
    if (running) {
      running.held.replace(message)
      return true
    }
    const held = keepWorking(message, this.#parts.broker)
    const entry: Running = { id, agent, held }
    this.#running.set(name, entry)
    const release = (how: 'ack' | 'nak') => {
      held.release(how)
      this.#running.delete(name)
      this.#changed()
    }
    runs.addAccepted({
      id,
      agentName: agent,
      agentConcurrency: current().config.agents.get(agent)?.concurrency ?? 1,
      bytes: 0,
      onlyDelivers: false,
      run: async (signal) => {
        try {
          release(await this.#run(run, message, entry, signal))
        } catch (error) {
          log.error({ event: id, error: errorName(error) }, 'internal error')
          release('nak')
        }
      },
      drop: () => release('nak'),
      fail: () => release('nak'),
    })
    return true
  }

  async #run(
    run: Run,
    { info, time }: JsMsg,
    entry: Running,
    signal: AbortSignal,
  ): Promise<'ack' | 'nak'> {
    const { broker, identity, keys, log } = this.#parts
    const { id, door, run: name } = run
    const attempt = info.deliveryCount
    const { name: machine } = identity()
    const queuedMs = Math.max(0, Date.now() - time.getTime())
    const place = { run: name, machine, attempt, queuedMs }
    const progress = writeNote('progress', id, place, keys())
    entry.tell = () => broker.link?.nc.publish(`${progressSubject}.${door}`, progress)
    entry.tell()
    this.#show(run, { state: 'running', attempts: attempt, durations: { queuedMs } })
    const start = performance.now()
    const answered = await this.#answer(run, attempt, signal)
    const agentMs = Math.round(performance.now() - start)
    const { error } = answered
    // Another machine runs it.
    if (error && signal.aborted && !isCancelled(signal)) {
      this.#show(run, { state: 'dropped', stage: 'agent', code: error.code, detail: error.message })
      return 'nak'
    }
    const isSent = await this.#send(run, { ...place, agentMs, ...answered })
    const durations = { queuedMs, agentMs }
    if (error)
      this.#show(run, {
        state: 'failed',
        stage: 'agent',
        code: error.code,
        durations,
        detail: error.localDetail ?? error.message,
      })
    else this.#show(run, { state: 'done', durations, detail: answered.detail || undefined })
    const { rule, webhook } = run.known
    log.info({ event: id, webhook, rule, code: error?.code, isSent }, 'run')
    return isSent ? 'ack' : 'nak'
  }

  async #answer(
    run: Run,
    attempt: number,
    signal: AbortSignal,
  ): Promise<Pick<Outcome, 'text' | 'detail' | 'seen' | 'error' | 'prompt'>> {
    const { current } = this.#parts
    try {
      if (attempt > maxAttempts)
        throw failed(`${maxAttempts} machines were given it, and none has finished it`)
      const { config, ask } = current()
      const { answer, seen, notes } = await ask({ id: run.id, event: toEvent(run, config), signal })
      const detail = describeAnswer(answer, notes)
      return { text: answer.text, detail, seen, error: undefined, prompt: undefined }
    } catch (error) {
      if (isCancelled(signal))
        return noAnswer(
          run,
          new DoorwardError('event-cancelled', 'it was cancelled while its agent ran'),
        )
      if (!(error instanceof DoorwardError))
        this.#parts.log.error({ event: run.id, error: errorName(error) }, 'internal error')
      return noAnswer(run, error)
    }
  }

  /** Until the broker has the answer; false where this process ends before that. */
  async #send(run: Run, outcome: Outcome): Promise<boolean> {
    const { broker, keys } = this.#parts
    const { id, door, run: name, ticket } = run
    let sent = outcome
    while (!broker.isClosed) {
      try {
        const message = writeDone({ id, outcome: sent, ticket }, keys())
        await broker.publish(`${doneSubject}.${door}`, message, name)
        return true
      } catch (error) {
        if (error instanceof DoorwardError && error.code === 'body-too-large')
          sent = {
            ...outcome,
            ...noAnswer(
              run,
              failed(
                'its answer is too long for NATS: lower output_limit, or raise max_payload there',
              ),
            ),
          }
        else await sleep(againMs)
      }
    }
    return false
  }

  #show({ id, known }: Run, changes: EventChanges & { readonly state: EventState }): void {
    const { events } = this.#parts
    if (!events) return
    if (events.record(id)) return events.update(id, changes)
    const { state, ...rest } = changes
    events.add(new Date(), { ...known, state }, id)
    events.update(id, rest)
  }

  #runningOf(name: string): number {
    let count = 0
    for (const { agent } of this.#running.values()) if (agent === name) count += 1
    return count
  }

  /** How many runs of this agent may be asked for now. */
  #free(name: string): number {
    const { agents, gateway } = this.#parts.current().config
    const ofAgent = (agents.get(name)?.concurrency ?? 0) - this.#runningOf(name)
    let ofAll = gateway.queue.concurrency - this.#running.size
    for (const kept of this.#kept.values()) ofAll -= kept
    return Math.min(ofAgent, ofAll)
  }

  #changed(): void {
    const wake = this.#wake
    this.#wake = []
    for (const resolve of wake) resolve()
  }
}

const failed = (message: string) => new DoorwardError('agent-failed', message)

const noAnswer = ({ prompt }: Run, error: unknown) => ({
  text: undefined,
  detail: '',
  seen: undefined,
  prompt,
  error: copyError(error),
})

/** The event as this machine runs it. Throws where it must not. */
const toEvent = (run: Run, { agents }: Engine['config']): AcceptedEvent => {
  const { path, agent: agentName, receivedAt, known, prompt, payload, workspace, context } = run
  const agent = agents.get(agentName)
  if (!agent)
    throw new DoorwardError('agent-not-found', `there is no agent ${agentName} on this machine`)
  const values = { eventText: run.eventText, maxValueLength: undefined }
  const webhook = { path, agentName, agent, values, allowsWorkflows: false }
  if (isUnfencedFor(run.eventText, run.kind, agent.kind))
    throw failed(
      `its prompt was made for an agent that is no language model, and ${agentName} is one on this machine`,
    )
  // Its targets stay where it was accepted.
  const wire = { webhook, receivedAt, known, payload, workspace, context, targets: [] }
  return fromWire(wire, prompt)
}
