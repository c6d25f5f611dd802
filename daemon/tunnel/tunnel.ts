import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { TunnelName, TunnelStatus } from '../../shared/api/tunnel.ts'
import { DoorwardError, toStatusProblem } from '../../shared/errors.ts'
import { networkVariables } from '../../shared/network/variables.ts'
import { cleanEnvironment } from '../agents/environment.ts'
import type { EventStore } from '../events/event-store.ts'
import type { Log } from '../log/log.ts'
import { knownError } from '../util/assets.ts'
import { Address, type AddressParts } from './address.ts'
import { Pings } from './pings.ts'
import {
  clearOutput,
  endProcess,
  isRunning,
  readOutput,
  readRecord,
  startProcess,
  trimOutput,
  type TunnelProcess,
  writeRecord,
} from './process.ts'
import {
  findFirstProgram,
  findTunnelProgram,
  type Place,
  programs,
  quote,
  toOrigin,
  toRefusal,
} from './programs.ts'

export type TunnelParts = AddressParts & {
  /** The listener that serves webhooks alone. */
  readonly listeners: { readonly publicUrl: () => string | undefined }
  readonly events: EventStore
  readonly log: Pick<Log, 'warn'>
  /** The process that serves from now on. */
  readonly succession: { readonly successor: () => unknown }
  readonly times?: Partial<typeof usualTimes>
}

/** In milliseconds. */
const usualTimes = {
  ping: 60_000,
  pingAgain: 5000,
  /** How long pings fail before the tunnel counts as dead; a new name needs some time. */
  down: 30_000,
  /** How long a program may take to say its address. */
  address: 40_000,
  /** Before the first ping: a resolver remembers that it does not know a new name. */
  settle: 3000,
  firstPause: 1000,
  maxPause: 60_000,
}

/** A program that ran so long did not fail at its start. */
const steadyMs = 60_000

/**
 * The tunnel that brings senders to the port for webhooks: starts the program, or uses one that somebody
 * started; pings it each minute, as one can be connected and dead; starts a program that exits again.
 */
export class Tunnel {
  readonly pings = new Pings()
  readonly #parts: TunnelParts
  readonly #times: typeof usualTimes
  #program: TunnelName | undefined
  /** Undefined for one that somebody else started. */
  #process: TunnelProcess | undefined
  #url: string | undefined
  #state: TunnelStatus['state'] = 'off'
  #arrivedAt: Date | undefined
  /** Why no request arrives. */
  #problem: DoorwardError | undefined
  readonly #address: Address
  #control = new AbortController()
  /** The outcome of the first pings. */
  #outcome: Promise<void> = Promise.resolve()
  #ended: Promise<void> = Promise.resolve()

  constructor(parts: TunnelParts) {
    this.#parts = parts
    this.#times = { ...usualTimes, ...parts.times }
    this.#address = new Address(parts, (detail) => this.#tell(detail))
  }

  /**
   * Opens a tunnel with this program, or the first on PATH, and waits until it is up or down. Throws
   * `tunnel-failed` and `config-invalid`; nothing runs then.
   */
  async start(wanted: TunnelName | undefined): Promise<void> {
    const { env } = this.#parts.live.current()
    const name = wanted ?? this.#program ?? (await findFirstProgram(env))
    await findTunnelProgram(name, env)
    this.#target()
    if (name === this.#program && this.#state === 'starting') return this.#outcome
    if (name === this.#program && this.#state === 'up') return undefined
    await this.stop()
    this.#run(name)
    try {
      return await this.#outcome
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  /** Goes on with the tunnel of the daemon before, and with its process if that still runs. */
  async resume(): Promise<void> {
    const record = await readRecord(this.#parts.home)
    if (!record) return
    const { program, url, target, pid, start } = record
    if (pid !== undefined) this.#process = { pid, start }
    // Started for another port, it would lead nowhere.
    if (target === this.#parts.listeners.publicUrl()) this.#url = url
    this.#run(program)
  }

  async stop(): Promise<void> {
    await this.close()
    await rm(this.#file('tunnel.json'), { force: true })
    this.#program = this.#url = this.#arrivedAt = undefined
  }

  /** Ends the program; the next daemon opens the tunnel again. */
  async close(): Promise<void> {
    this.release()
    await this.#ended
    if (this.#process) await endProcess(this.#process)
    this.#process = undefined
    await this.#record().catch(() => undefined)
    this.#state = 'off'
    this.#problem = undefined
    this.#address.clear()
  }

  /** Leaves the program to the daemon that replaces this one. */
  release(): void {
    this.#control.abort()
  }

  status(): TunnelStatus {
    return {
      state: this.#state,
      leadsTo: this.#parts.listeners.publicUrl() ?? null,
      ...(this.#program && { program: this.#program }),
      ...(this.#url !== undefined && { url: this.#url }),
      ...(this.#arrivedAt && { arrivedAt: this.#arrivedAt.toISOString() }),
      moved: this.#address.moved,
      problems: [this.#problem, this.#address.problem, this.#address.hooksProblem]
        .filter((problem) => problem !== undefined)
        .map((problem) => toStatusProblem(problem, 'doorward tunnel')),
    }
  }

  #run(name: TunnelName): void {
    this.#program = name
    this.#state = 'starting'
    this.#control = new AbortController()
    const { signal } = this.#control
    this.#outcome = new Promise((resolve, reject) => {
      this.#ended = this.#keep(name, signal, { resolve, reject })
    })
    this.#outcome.catch(() => undefined)
  }

  /** Opens the tunnel again whenever it has ended, after longer and longer pauses. */
  async #keep(name: TunnelName, signal: AbortSignal, outcome: Outcome): Promise<void> {
    let pause = this.#times.firstPause
    let failingSince: number | undefined
    while (this.#isOn(signal)) {
      const startedAt = performance.now()
      try {
        await this.#open(name, signal)
        failingSince = undefined
        await this.#watch(name, signal, outcome)
        if (!this.#isOn(signal)) break
        outcome.reject(toRefusal(name, this.#output()))
        this.#state = 'starting'
        this.#tell(`${name} ended, and is started again: ${quote(this.#output())}`)
      } catch (error) {
        if (signal.aborted) break
        outcome.reject(error)
        // After a start of the machine there is no network for a moment.
        failingSince ??= startedAt
        if (performance.now() - failingSince >= this.#times.down) this.#down(knownError(error))
      }
      if (performance.now() - startedAt > steadyMs) pause = this.#times.firstPause
      await delay(pause, undefined, { signal, ref: false }).catch(() => undefined)
      pause = Math.min(pause * 2, this.#times.maxPause)
    }
    outcome.resolve()
  }

  /** Finds or starts the program, and uses its address. */
  async #open(name: TunnelName, signal: AbortSignal): Promise<void> {
    const place = await this.#place(name)
    const known = this.#process && isRunning(this.#process) ? this.#url : undefined
    if (known !== undefined) return this.#use(known)
    if (this.#process) await endProcess(this.#process)
    this.#process = undefined
    const url = await this.#findForeign(name)
    if (url !== undefined) return this.#use(url)
    const args = await programs[name].args(place)
    if (!this.#isOn(signal)) return undefined
    this.#process = startProcess(place, args, this.#file('tunnel.log'))
    await this.#record()
    return this.#use(await this.#awaitAddress(name, place, signal))
  }

  /** The address of one that somebody else started: it may change, or end. */
  async #findForeign(name: TunnelName): Promise<string | undefined> {
    return toOrigin(await programs[name].service?.(await this.#place(name)))
  }

  async #awaitAddress(name: TunnelName, place: Place, signal: AbortSignal): Promise<string> {
    const end = performance.now() + this.#times.address
    while (this.#process && isRunning(this.#process) && performance.now() < end) {
      const url = toOrigin(await programs[name].address(place, this.#output()))
      if (url !== undefined) {
        await delay(this.#times.settle, undefined, { signal })
        return url
      }
      await delay(200, undefined, { signal })
    }
    if (this.#process) await endProcess(this.#process)
    throw toRefusal(name, this.#output())
  }

  /** Pings until the program exits, or one of somebody else has no tunnel for us any more. */
  async #watch(name: TunnelName, signal: AbortSignal, outcome: Outcome): Promise<void> {
    let failingSince: number | undefined
    while (this.#isOn(signal) && (!this.#process || isRunning(this.#process))) {
      const why = await this.pings.send(this.#url ?? '', signal)
      if (signal.aborted) return
      if (why === undefined) {
        failingSince = undefined
        this.#up()
      } else {
        failingSince ??= performance.now()
        if (performance.now() - failingSince >= this.#times.down)
          this.#down(
            new DoorwardError(
              'tunnel-down',
              `${name} runs, but nothing arrives at ${this.#url}: ${why}`,
              { hint: 'doorward tunnel starts it again; --with takes another program' },
            ),
          )
        trimOutput(this.#file('tunnel.log'))
        const url = this.#process ? this.#url : await this.#findForeign(name)
        if (url === undefined) return
        if (url !== this.#url) await this.#use(url)
      }
      if (this.#state !== 'starting') {
        await this.#address.settle(this.#url ?? '', signal)
        outcome.resolve()
      }
      await this.#pause(why === undefined ? this.#times.ping : this.#times.pingAgain, signal)
    }
  }

  /** Ends early when the program exits. */
  async #pause(ms: number, signal: AbortSignal): Promise<void> {
    const end = performance.now() + ms
    const step = this.#process?.child ? 1000 : 5000
    while (!signal.aborted && performance.now() < end) {
      if (this.#process && !isRunning(this.#process)) return
      const left = Math.min(end - performance.now(), step)
      await delay(left, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }

  #up(): void {
    this.#arrivedAt = new Date()
    clearOutput(this.#file('tunnel.log'))
    if (this.#state === 'up') return
    this.#state = 'up'
    this.#problem = undefined
    this.#tell(`requests arrive through ${this.#program} at ${this.#url}`)
  }

  /** Reported once: the reason may differ from ping to ping. */
  #down(error: DoorwardError): void {
    if (this.#state === 'down' && this.#problem?.code === error.code) return
    this.#state = 'down'
    this.#problem = error
    this.#tell(error.message, error.code)
  }

  async #use(url: string): Promise<void> {
    this.#url = url
    await this.#record()
    await this.#address.use(url)
  }

  #tell(detail: string, code?: string): void {
    const { events, log } = this.#parts
    if (code !== undefined) log.warn({ tunnel: this.#program, code }, 'the tunnel does not work')
    const state = code === undefined ? 'done' : 'failed'
    events.add(new Date(), { kind: 'daemon', state, detail, ...(code !== undefined && { code }) })
  }

  #isOn(signal: AbortSignal): boolean {
    return !signal.aborted && this.#parts.succession.successor() === undefined
  }

  #target(): string {
    const target = this.#parts.listeners.publicUrl()
    if (target !== undefined) return target
    throw new DoorwardError('config-invalid', 'server.public_port in gateway.yaml is not set', {
      hint: 'a tunnel leads to no other port: doorward tunnel sets it',
    })
  }

  async #place(name: TunnelName): Promise<Place> {
    const { env } = this.#parts.live.current()
    const { variables: passed = [] } = programs[name]
    return {
      target: this.#target(),
      path: await findTunnelProgram(name, env),
      env: cleanEnvironment(env, {}, new Map(), { passed, set: networkVariables(env) }),
    }
  }

  #output(): string {
    return this.#process ? readOutput(this.#file('tunnel.log')) : ''
  }

  #file(name: string): string {
    return join(this.#parts.home.run, name)
  }

  async #record(): Promise<void> {
    if (!this.#program) return
    const { pid, start } = this.#process ?? {}
    await writeRecord(this.#parts.home, {
      program: this.#program,
      ...(pid !== undefined && { pid, start, target: this.#target(), url: this.#url }),
    })
  }
}

type Outcome = { readonly resolve: () => void; readonly reject: (error: unknown) => void }
