import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProcess } from '../../../daemon/agents/process.ts'
import { EventStore } from '../../../daemon/events/event-store.ts'
import { Scheduler } from '../../../daemon/schedules/scheduler.ts'
import { webhooksByPath } from '../../../daemon/webhook/compiled-webhook.ts'
import type { FetchedDelivery } from '../../../daemon/webhook/pipeline.ts'
import { check } from '../../support/daemon/config-files.ts'
import { temporaryFolder } from '../../support/temporary.ts'

const start = Date.parse('2026-11-27T08:30:00Z')
const minute = 60_000
const hour = 60 * minute

/** A scheduler by a clock of its own; its events are only noted. */
class Clock {
  now = start
  readonly accepted: FetchedDelivery[] = []
  readonly events = new EventStore(100)
  readonly #folder: string
  readonly #stop = new AbortController()
  isServing = true
  definitions: string
  scheduler: Scheduler

  private constructor(folder: string, definitions: string) {
    this.#folder = folder
    this.definitions = definitions
    this.scheduler = this.#create()
  }

  static async start(definitions: string): Promise<Clock> {
    const clock = new Clock(await temporaryFolder(), definitions)
    await clock.scheduler.start()
    return clock
  }

  get file(): string {
    return join(this.#folder, 'schedules.json')
  }

  /** As after a stop. */
  async restart(): Promise<void> {
    await this.settled()
    this.scheduler = this.#create()
    await this.scheduler.start()
    await this.settled()
  }

  async pass(ms: number): Promise<void> {
    this.now += ms
    this.scheduler.tick()
    await this.settled()
  }

  /** Until the programs of what has begun have ended: their events are there, or none come. */
  async settled(): Promise<void> {
    for (let round = 0; round < 3; round += 1) {
      await this.scheduler.idle()
      await this.scheduler.written()
    }
  }

  stop(): void {
    this.#stop.abort()
  }

  ids(): (string | undefined)[] {
    return this.accepted.map(({ deliveryId }) => deliveryId)
  }

  #create(): Scheduler {
    return new Scheduler({
      file: this.file,
      current: () => {
        const config = check({ schedules: this.definitions })
        return { config, env: process.env, byPath: webhooksByPath(config, {}) }
      },
      accept: async (delivery, { path }) => {
        this.accepted.push(delivery)
        const { id } = this.events.add(new Date(), { webhook: path, state: 'queued' })
        return { id, status: 'accepted' }
      },
      events: this.events,
      log: { warn: () => undefined },
      run: runProcess,
      homeFolder: this.#folder,
      isServing: () => this.isServing,
      signal: this.#stop.signal,
      now: () => this.now,
    })
  }
}

const schedule = (more: string) =>
  `schedules:\n  - { name: a, agent: echo, prompt_template: x, timezone: UTC, ${more} }\n`
const hourly = "cron: '0 * * * *'"

describe('a scheduler', () => {
  let clock: Clock
  afterEach(() => clock.stop())
  const finish = () => {
    for (const { id } of clock.events.list({ limit: 100 }))
      clock.events.update(id, { state: 'done' })
  }
  const codes = () =>
    clock.events
      .list({ limit: 100 })
      .flatMap(({ code, state }) => (code ? [`${state} ${code}`] : []))

  it('begins what is due once, under an id with its time', async () => {
    clock = await Clock.start(schedule(hourly))
    await clock.pass(29 * minute)
    assert.deepEqual(clock.ids(), [])
    await clock.pass(minute)
    await clock.pass(10)
    assert.deepEqual(clock.ids(), ['schedule:a:2026-11-27T09:00:00.000Z'])
    const payload = JSON.parse(clock.accepted[0]?.bytes.toString() ?? '') as unknown
    assert.deepEqual(payload, {
      schedule: { name: 'a', due_at: '2026-11-27T09:00:00.000Z', previous_at: '' },
    })
    finish()
    await clock.pass(hour)
    assert.match(
      clock.accepted[1]?.bytes.toString() ?? '',
      /"previous_at":"2026-11-27T09:00:00.000Z"/,
    )
  })

  it('makes up the newest of what it missed, asleep or off, or none, or asks', async () => {
    clock = await Clock.start(schedule(hourly))
    await clock.pass(5 * hour)
    assert.deepEqual(clock.ids(), ['schedule:a:2026-11-27T13:00:00.000Z'])
    clock.definitions = schedule(`${hourly}, missed: skip`)
    finish()
    await clock.pass(5 * hour)
    assert.equal(clock.accepted.length, 1)
    assert.deepEqual(codes(), ['filtered skipped'])
    clock.definitions = schedule(`${hourly}, missed: ask`)
    await clock.pass(3 * hour)
    assert.deepEqual(
      clock.scheduler.problems().map(({ code }) => code),
      ['schedule-missed'],
    )
    await clock.restart()
    assert.equal(clock.scheduler.list()[0]?.missed?.count, 3)
    await clock.scheduler.run('a')
    assert.deepEqual([clock.accepted.length, clock.scheduler.problems()], [2, []])
  })

  it('makes up what came while no daemon ran, also an at, once', async () => {
    clock = await Clock.start(schedule('at: 2026-11-27T09:00'))
    clock.now += 30 * hour
    await clock.restart()
    assert.deepEqual(clock.ids(), ['schedule:a:2026-11-27T09:00:00.000Z'])
    await clock.restart()
    await clock.pass(30 * hour)
    assert.equal(clock.accepted.length, 1)
    assert.deepEqual(clock.scheduler.list()[0]?.nextRuns, [])
  })

  it('runs nothing of before it was written, or was changed', async () => {
    clock = await Clock.start(schedule("cron: '0 12 * * *'"))
    clock.now += 6 * hour
    clock.definitions = schedule("cron: '0 9 * * *'")
    await clock.pass(0)
    assert.deepEqual(clock.ids(), [])
    await clock.pass(19 * hour)
    assert.deepEqual(clock.ids(), ['schedule:a:2026-11-28T09:00:00.000Z'])
  })

  it('follows a clock that is set back and forth', async () => {
    clock = await Clock.start(schedule(hourly))
    await clock.pass(hour)
    finish()
    await clock.pass(-30 * minute)
    await clock.pass(40 * minute)
    assert.equal(clock.accepted.length, 1, 'an hour that ran does not run again')
    await clock.pass(365 * 24 * hour)
    finish()
    await clock.pass(-365 * 24 * hour)
    await clock.pass(hour)
    assert.equal(clock.accepted.length, 3, 'a clock far ahead stops nothing')
  })

  it('passes one over while the one before it is not over, unless it may wait', async () => {
    clock = await Clock.start(schedule('every: 1m'))
    await clock.pass(minute)
    await clock.pass(minute)
    assert.deepEqual([clock.accepted.length, codes()], [1, ['filtered skipped']])
    clock.definitions = schedule('every: 1m, overlap: queue')
    await clock.pass(minute)
    assert.equal(clock.accepted.length, 2)
    await clock.scheduler.run('a')
    assert.equal(clock.accepted.length, 3)
  })

  it('asks skip_if, and takes the output of context_command', async () => {
    clock = await Clock.start(schedule("every: 1m, skip_if: ['true']"))
    await clock.pass(minute)
    assert.deepEqual([clock.accepted.length, codes()], [0, ['filtered skipped']])
    clock.definitions = schedule(
      "every: 1m, skip_if: ['false'], context: [command], context_command: [sh, -c, 'echo $DOORWARD_SCHEDULE; pwd']",
    ).replace('prompt_template: x', "prompt_template: '{{context.command}}'")
    await clock.pass(minute)
    const { command } = JSON.parse(clock.accepted[0]?.bytes.toString() ?? '') as { command: string }
    assert.match(command, /^a\n\//)
    finish()
    const wrong = [
      [
        "skip_if: ['/no/such/program']",
        /skip_if cannot start \/no\/such\/program: there is no such/,
      ],
      [
        "context: [command], context_command: [sh, -c, 'echo broken >&2; exit 3']",
        /exited with 3: broken/,
      ],
    ] as const
    for (const [more, detail] of wrong) {
      clock.definitions = schedule(`every: 1m, ${more}`)
      await clock.pass(minute)
      const [last] = clock.events.list({ limit: 1 })
      assert.deepEqual([last?.state, last?.code], ['failed', 'schedule-failed'])
      assert.match(last?.detail ?? '', detail)
    }
    assert.equal(clock.accepted.length, 1)
  })

  it('rests while it is paused, over a restart too, and makes nothing up', async () => {
    clock = await Clock.start(schedule(hourly))
    assert.deepEqual(clock.scheduler.pause('a').nextRuns, [])
    await clock.restart()
    await clock.pass(5 * hour)
    assert.deepEqual([clock.accepted.length, clock.scheduler.list()[0]?.paused], [0, true])
    clock.scheduler.resume('a')
    await clock.settled()
    assert.equal(clock.accepted.length, 0)
    await clock.pass(hour)
    assert.equal(clock.accepted.length, 1)
    assert.throws(() => clock.scheduler.pause('b'), { code: 'schedule-not-found' })
  })

  it('runs later by its jitter, once', async () => {
    clock = await Clock.start(schedule(`${hourly}, jitter: 30m`))
    const times: number[] = []
    for (let tick = 0; tick < 90; tick += 1) {
      await clock.pass(minute)
      if (clock.accepted.length > times.length) times.push(tick)
      finish()
    }
    assert.ok(times.length >= 1 && times.length <= 2, String(times))
    assert.equal(new Set(clock.ids()).size, clock.accepted.length)
  })

  it('leaves what is due to the process that has taken over', async () => {
    clock = await Clock.start(schedule(hourly))
    clock.isServing = false
    await clock.pass(hour)
    assert.deepEqual(clock.ids(), [])
    assert.match(await readFile(clock.file, 'utf8'), new RegExp(String(start)))
  })

  it('begins anew where its file is damaged, and says so', async () => {
    clock = await Clock.start(schedule(hourly))
    await clock.settled()
    await writeFile(clock.file, '{ "a": ')
    clock.scheduler = await (async () => {
      await clock.restart()
      return clock.scheduler
    })()
    await clock.pass(hour)
    assert.equal(clock.accepted.length, 1)
    assert.match(await readFile(clock.file, 'utf8'), /"lastRun"/)
  })
})
