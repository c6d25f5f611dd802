import type { StatusProblem } from '../../shared/api/api.ts'
import type { ScheduleRun, ScheduleSummary } from '../../shared/api/schedules.ts'
import { DoorwardError, toStatusProblem } from '../../shared/errors.ts'
import type { Schedule } from '../../shared/schedules/schedule.ts'
import { isFinal } from '../events/event-record.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import { knownError } from '../util/assets.ts'
import type { CompiledWebhook } from '../webhook/compiled-webhook.ts'
import type { Accepted } from '../webhook/delivery.ts'
import type { Engine } from '../webhook/engine.ts'
import type { FetchedDelivery } from '../webhook/pipeline.ts'
import { type CommandParts, isSkipped, readCommandContext } from './commands.ts'
import {
  currentState,
  describeMissed,
  describeSchedule,
  nextStepAt,
  planStep,
  toIso,
} from './plan.ts'
import { readScheduleStates, type ScheduleState, writeScheduleStates } from './schedule-state.ts'

/*
 * The story of a schedule:
 *
 *   its time -> is the last run over? -> skip_if -> context_command -> an event like any other, by the pipeline
 *
 * One timer waits for the nearest time, a minute at most: sleep stops it, so the wall clock decides. A time that
 * passed while nobody looked was missed, and `missed` says what becomes of it. The id of a delivery has its time,
 * so that two processes during a restart, or two receivers, run it once.
 */

type Services = Omit<CommandParts, 'env' | 'schedule'> & {
  readonly file: string
  readonly current: () => Pick<Engine, 'config' | 'byPath' | 'env'>
  readonly accept: (delivery: FetchedDelivery, webhook: CompiledWebhook) => Promise<Accepted>
  readonly events: EventStore
  readonly log: Pick<Log, 'warn'>
  /** False once another process has taken over. */
  readonly isServing: () => boolean
  readonly now?: () => number
}

const longestWaitMs = 60_000

export class Scheduler {
  readonly #services: Services
  readonly #now: () => number
  #states = new Map<string, ScheduleState>()
  /** Those whose programs run now. */
  readonly #beginning = new Map<string, Promise<void>>()
  #timer: NodeJS.Timeout | undefined
  #isStarted = false
  #problem: DoorwardError | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(services: Services) {
    this.#services = services
    this.#now = services.now ?? Date.now
  }

  async start(): Promise<void> {
    try {
      this.#states = await readScheduleStates(this.#services.file)
    } catch (error) {
      this.#note(error)
    }
    this.#isStarted = true
    this.#services.signal.addEventListener('abort', () => clearTimeout(this.#timer), { once: true })
    this.tick()
  }

  /** Begins what is due, and waits for what comes next. Also called when the configuration changes. */
  tick(): void {
    if (!this.#isStarted || !this.#isServing()) return
    const now = this.#now()
    for (const schedule of this.#schedules()) this.#look(schedule, now)
    clearTimeout(this.#timer)
    const next = this.#schedules().flatMap((schedule) =>
      this.#beginning.has(schedule.name)
        ? []
        : (nextStepAt(schedule, this.#stateOf(schedule)) ?? []),
    )
    if (next.length === 0) return
    const waitMs = Math.max(0, Math.min(longestWaitMs, Math.min(...next) - this.#now()))
    this.#timer = setTimeout(() => this.tick(), waitMs).unref()
  }

  list(): ScheduleSummary[] {
    return this.#services.current().config.schedules.map((schedule) => this.#describe(schedule))
  }

  /** Runs one now, whether it is paused or its last run is not over. Throws `schedule-not-found`. */
  async run(name: string): Promise<ScheduleRun> {
    const schedule = this.#find(name)
    this.#update(schedule, { missed: undefined })
    return this.#begin(schedule, this.#now(), true)
  }

  /** Throws `schedule-not-found`. */
  pause(name: string): ScheduleSummary {
    const schedule = this.#find(name)
    this.#update(schedule, { paused: true, missed: undefined })
    this.tick()
    return this.#describe(schedule)
  }

  /** Times that passed while it was paused are not missed. Throws `schedule-not-found`. */
  resume(name: string): ScheduleSummary {
    const schedule = this.#find(name)
    this.#update(schedule, { paused: undefined, lastDue: this.#now() })
    this.tick()
    return this.#describe(schedule)
  }

  /** Forgets what was missed, of one or of all; returns how many there were. */
  skipMissed(name?: string): number {
    const waiting = this.list().filter((one) => one.missed && (name ?? one.name) === one.name)
    for (const { name: known } of waiting) this.#update(this.#find(known), { missed: undefined })
    return waiting.length
  }

  problems(): StatusProblem[] {
    const own = this.#problem
    return [
      ...(own ? [toStatusProblem(own, 'doorward schedule list')] : []),
      ...this.list().flatMap(({ name, missed }) =>
        missed
          ? [
              {
                code: 'schedule-missed',
                detail: `schedule ${name}: ${describeMissed(missed.count, Date.parse(missed.newestAt))}`,
                hint: `doorward schedule run ${name}, or doorward events missed --skip`,
              },
            ]
          : [],
      ),
    ]
  }

  #describe(schedule: Schedule): ScheduleSummary {
    const { path } = schedule.webhook
    const [last] = this.#services.events.list({ limit: 1, webhook: path })
    return {
      ...describeSchedule(schedule, this.#stateOf(schedule), this.#now()),
      ...(last && { lastState: last.state }),
    }
  }

  #isServing(): boolean {
    return this.#services.isServing() && !this.#services.signal.aborted
  }

  #schedules(): Schedule[] {
    return this.#services.current().config.schedules.filter(({ enabled }) => enabled)
  }

  #find(name: string): Schedule {
    const { schedules } = this.#services.current().config
    const found = schedules.find((schedule) => schedule.name === name)
    if (found) return found
    const names = schedules.map((schedule) => schedule.name)
    throw new DoorwardError('schedule-not-found', 'there is no such schedule', {
      hint: names.length > 0 ? `known: ${names.join(', ')}` : 'doorward schedule add NAME',
    })
  }

  #stateOf(schedule: Schedule): ScheduleState {
    const known = this.#states.get(schedule.name)
    const state = currentState(schedule, known, this.#now())
    if (state === known) return state
    this.#states.set(schedule.name, state)
    this.#write()
    return state
  }

  #update(
    schedule: Schedule,
    changes: { [Key in keyof ScheduleState]?: ScheduleState[Key] | undefined },
  ) {
    const merged = { ...this.#stateOf(schedule), ...changes }
    const known = Object.entries(merged).filter(([, value]) => value !== undefined)
    this.#states.set(schedule.name, Object.fromEntries(known) as ScheduleState)
    this.#write()
  }

  #look(schedule: Schedule, now: number): void {
    const { name } = schedule
    if (this.#beginning.has(name)) return
    const state = this.#stateOf(schedule)
    const step = planStep(schedule, state, now)
    switch (step.kind) {
      case 'wait':
        return
      case 'run':
        this.#beginning.set(name, this.#runDue(schedule, step.due))
        return
      case 'pass':
        this.#update(schedule, { lastDue: step.due })
        this.#addPassed(schedule, step.due, describeMissed(step.count, step.due))
        return
      case 'ask': {
        const count = step.count + (state.missed?.count ?? 0)
        this.#update(schedule, { lastDue: step.due, missed: { newest: step.due, count } })
        const detail = `schedule ${name}: ${describeMissed(count, step.due)}`
        const told = { kind: 'daemon', state: 'done', code: 'schedule-missed', detail } as const
        this.#services.events.add(new Date(now), told)
      }
    }
  }

  /** Its time is over only once its event is there: after a crash in between it is due again. */
  async #runDue(schedule: Schedule, due: number): Promise<void> {
    try {
      await this.#begin(schedule, due, false)
    } catch {
      // It is an event.
    } finally {
      this.#beginning.delete(schedule.name)
    }
    if (!this.#isServing()) return
    this.#update(schedule, { lastDue: due })
    this.tick()
  }

  async #begin(schedule: Schedule, due: number, isManual: boolean): Promise<ScheduleRun> {
    const { name, overlap, skipIf, contextCommand, webhook } = schedule
    const { lastRun } = this.#stateOf(schedule)
    if (!isManual && overlap === 'skip' && this.#isRunning(webhook.path))
      return this.#addPassed(schedule, due, 'the run before it is not over')
    const { run, homeFolder, signal, current } = this.#services
    const times = { due_at: toIso(due), previous_at: lastRun === undefined ? '' : toIso(lastRun) }
    const parts = { run, homeFolder, signal, env: current().env, schedule: { name, ...times } }
    try {
      if (skipIf && (await isSkipped(skipIf, parts)))
        return this.#addPassed(schedule, due, 'skip_if says that nothing has to run')
      const command = contextCommand && (await readCommandContext(contextCommand, parts))
      const payload = { schedule: parts.schedule, ...(command !== undefined && { command }) }
      // Another process runs it.
      if (!this.#isServing()) throw new DoorwardError('stopping', 'the daemon stops')
      const compiled = current().byPath.get(webhook.path)
      if (!compiled) throw new DoorwardError('schedule-not-found', 'it is switched off')
      const { id, status } = await this.#services.accept(
        {
          rawHeaders: ['content-type', 'application/json'],
          bytes: Buffer.from(JSON.stringify(payload)),
          source: 'schedule',
          deliveryId: `${webhook.path}:${toIso(due)}`,
        },
        compiled,
      )
      if (status === 'accepted') this.#update(schedule, { lastRun: due })
      return { id: id ?? '', status }
    } catch (error) {
      throw this.#addFailed(schedule, due, error)
    }
  }

  #isRunning(path: string): boolean {
    return this.#services.events
      .list({ limit: 100, webhook: path })
      .some(({ state }) => !isFinal(state))
  }

  #addPassed(schedule: Schedule, due: number, detail: string): ScheduleRun {
    const end = { state: 'filtered', code: 'skipped', detail } as const
    return { id: this.#add(schedule, due, end), status: 'filtered' }
  }

  /** A delivery that the pipeline has refused is an event already. */
  #addFailed(schedule: Schedule, due: number, error: unknown): DoorwardError {
    const known = knownError(error)
    if (known.code === 'schedule-failed') {
      const { code, message } = known
      const id = this.#add(schedule, due, {
        state: 'failed',
        stage: 'expand',
        code,
        detail: message,
      })
      this.#services.log.warn({ event: id, schedule: schedule.name, code }, 'schedule not run')
    }
    return known
  }

  #add({ webhook }: Schedule, due: number, end: Parameters<EventStore['add']>[1]): string {
    const { id } = this.#services.events.add(new Date(this.#now()), {
      webhook: webhook.path,
      agent: webhook.rules[0]?.agentName ?? null,
      source: 'schedule',
      signed: false,
      deliveryId: `${webhook.path}:${toIso(due)}`,
      ...end,
    })
    return id
  }

  #write(): void {
    const states = new Map(this.#states)
    const names = new Set(this.#services.current().config.schedules.map(({ name }) => name))
    for (const name of states.keys()) if (!names.has(name)) states.delete(name)
    this.#writing = this.#writeAfter(this.#writing, states)
  }

  async #writeAfter(before: Promise<void>, states: Map<string, ScheduleState>): Promise<void> {
    await before
    try {
      await writeScheduleStates(this.#services.file, states)
      this.#problem = undefined
    } catch (error) {
      this.#note(error)
    }
  }

  /** Resolves when the programs of what has begun have ended. */
  async idle(): Promise<void> {
    await Promise.all(this.#beginning.values())
  }

  /** Resolves when what is known is on the disk. */
  async written(): Promise<void> {
    return this.#writing
  }

  #note(error: unknown): void {
    const known = knownError(error)
    if (!this.#problem) this.#services.log.warn({ code: known.code }, 'times of schedules')
    this.#problem = new DoorwardError(
      'home-unusable',
      known.code === 'internal' ? 'state/schedules.json cannot be written' : known.message,
      { hint: known.hint ?? 'make room on the disk' },
    )
  }
}
