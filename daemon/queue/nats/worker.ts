import { setTimeout as sleep } from 'node:timers/promises'
import type { JsMsg } from '@nats-io/jetstream'
import { DoorwardError, errorName } from '../../../shared/errors.ts'
import type { EventState, RunInput } from '../../../shared/api/api.ts'
import type { EventChanges } from '../../events/event-record.ts'
import type { EventStore } from '../../events/event-store.ts'
import type { Log } from '../../log/log.ts'
import { copyError } from '../../util/error-copy.ts'
import { isCancelled } from '../../util/concurrency.ts'
import type { Engine } from '../../webhook/engine.ts'
import { type AcceptedEvent, fromWire } from '../../webhook/events/accepted-event.ts'
import { isUnfencedFor } from '../../webhook/events/control.ts'
import { toRunInput } from '../../webhook/events/ask.ts'
import { describeAnswer } from '../../webhook/events/run-to-end.ts'
import type { EventQueue } from '../event-queue.ts'
import { type MachineWithSettings, toSettings } from './agent-faults.ts'
import { type Broker, cancelSubject, doneSubject, type Link, progressSubject } from './broker.ts'
import { type Held, keepWorking } from './keep-working.ts'
import type { Identity } from '../../util/identity.ts'
import { type Outcome, readNote, type Run, writeDone, writeNote } from './messages.ts'
import { RunRequests, type RunRequestsParts } from './run-requests.ts'

/*
 * The side of the worker: it runs what it gets from the broker, in a queue in memory. The answer is with the broker
 * before the run is acknowledged there, so that a worker that dies is replaced.
 */

export type WorkerParts = {
  readonly broker: Broker
  /** Where they run: its own, so that no answer waits for a long run. */
  readonly runs: EventQueue
  readonly identity: () => Identity
  readonly keys: () => readonly Buffer[]
  readonly current: () => Pick<Engine, 'config' | 'ask' | 'inspect'>
  readonly hasReceiver: RunRequestsParts['hasReceiver']
  readonly events: EventStore
  /** False where the receiver of this machine shows what runs. */
  readonly showsRuns: boolean
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

export class Worker {
  readonly #parts: WorkerParts
  /** By run, as an event may be published again before this machine has finished with it. */
  readonly #running = new Map<string, Running>()
  readonly requests: RunRequests
  #isActive = false
  #connection: Link['nc'] | undefined

  constructor(parts: WorkerParts) {
    this.#parts = parts
    this.requests = new RunRequests({
      ...parts,
      running: (name) => (name === undefined ? this.#running.size : this.#runningOf(name)),
      take: (...given) => this.#take(...given),
    })
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
    this.requests.stop()
  }

  /** Every 10 seconds. */
  tick(): void {
    for (const { tell } of this.#running.values()) tell?.()
    this.requests.tick()
  }

  /** What this machine says of its agents. */
  agents(): MachineWithSettings['agents'] {
    const { agents, gateway } = this.#parts.current().config
    const free = gateway.queue.concurrency - this.#running.size
    return [...agents].map(([name, agent]) => {
      const running = this.#runningOf(name)
      const ofAgent = Math.max(0, Math.min(free, agent.concurrency - running))
      return { name, running, free: ofAgent, settings: toSettings(agent) }
    })
  }

  #connect(link: Link): void {
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
    this.requests.start(link)
    this.tick()
  }

  #take(run: Run, message: JsMsg, lostAfterMs: number): void {
    const { runs, log, current } = this.#parts
    const { id, run: name, agent } = run
    const running = this.#running.get(name)
    if (running) return running.held.replace(message)
    const held = keepWorking(message, this.#parts.broker, lostAfterMs)
    const entry: Running = { id, agent, held }
    this.#running.set(name, entry)
    const release = (how: 'ack' | 'nak') => {
      held.release(how)
      this.#running.delete(name)
      this.requests.changed()
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
  }

  async #run(
    run: Run,
    { info, time }: JsMsg,
    entry: Running,
    signal: AbortSignal,
  ): Promise<'ack' | 'nak'> {
    const { broker, identity, keys, events, log } = this.#parts
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
    let had: RunInput = {}
    const answered = await this.#answer(run, attempt, signal, (input, asked) => {
      had = { ...had, ...input }
      // The whole prompt stays on this machine.
      events.update(id, input, asked === undefined ? undefined : { asked })
    })
    const agentMs = Math.round(performance.now() - start)
    const { error } = answered
    // Another machine runs it.
    if (error && signal.aborted && !isCancelled(signal)) {
      this.#show(run, { state: 'dropped', stage: 'agent', code: error.code, detail: error.message })
      return 'nak'
    }
    const isSent = await this.#send(run, { ...place, agentMs, had, ...answered })
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
    had: Parameters<Engine['ask']>[0]['had'],
  ): Promise<Pick<Outcome, 'text' | 'detail' | 'seen' | 'error' | 'prompt'>> {
    const { current } = this.#parts
    try {
      if (attempt > maxAttempts)
        throw failed(`${maxAttempts} machines were given it, and none has finished it`)
      const { config, ask, inspect } = current()
      const event = toEvent(run, config)
      had(toRunInput(event))
      const { answer, seen, notes } = await ask({ id: run.id, event, signal, had })
      // Each machine knows its own secrets: the receiver searches again.
      const { text, detail, refusal } = await inspect({
        eventId: run.id,
        text: answer.text,
        detail: describeAnswer(answer, notes),
        allowed: run.allowSecrets,
        signal,
      })
      if (refusal) throw refusal
      return { text, detail, seen, error: undefined, prompt: undefined }
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
    const { events, showsRuns } = this.#parts
    if (!showsRuns) return
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
  const { path, agent: agentName, receivedAt, known, prompt, payload, paths } = run
  const agent = agents.get(agentName)
  if (!agent)
    throw new DoorwardError('agent-not-found', `there is no agent ${agentName} on this machine`)
  const values = { eventText: run.eventText, maxValueLength: undefined }
  const { runLimit, allowSecrets } = run
  const webhook = { path, agentName, agent, values, runLimit, allowSecrets }
  if (isUnfencedFor(run.eventText, run.kind, agent.kind))
    throw failed(
      `its prompt was made for an agent that is no language model, and ${agentName} is one on this machine`,
    )
  // Its targets stay where it was accepted.
  const { workspace, context, session } = run
  const wire = { webhook, receivedAt, known, payload, paths, workspace, context, session }
  return fromWire({ ...wire, targets: [] }, prompt)
}
