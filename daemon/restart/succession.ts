import type { Restarted } from '../../shared/api/api.ts'
import type { Address } from './protocol.ts'

/** The daemon that has replaced this one. */
export type Successor = Address & {
  readonly pid: number
  readonly version: string
  readonly stop: () => void
  readonly finish: () => Promise<void>
}

/** Whether another daemon has replaced this one. */
export class Succession {
  #successor: Successor | undefined
  #decision: Promise<Successor | undefined> | undefined
  #restart: Promise<Restarted> | undefined

  /** Undefined while this daemon serves. */
  readonly successor = (): Successor | undefined => this.#successor

  /** True from the moment the other daemon gets the memory of this one. */
  readonly isHandingOver = (): boolean =>
    this.#successor !== undefined || this.#decision !== undefined

  /** The same as `successor`; waits while it is being decided. */
  readonly awaitSuccessor = async (): Promise<Successor | undefined> =>
    this.#successor ?? this.#decision

  /** Resolves when no restart goes on. */
  async settled(): Promise<void> {
    await this.#restart?.catch(() => undefined)
  }

  /** One restart at a time; throws what it throws. */
  async track(run: () => Promise<Restarted>): Promise<Restarted> {
    this.#restart ??= run().finally(() => (this.#restart = undefined))
    return this.#restart
  }

  /** Waits for the outcome of switching to a new process; throws what it throws. */
  async decide(switching: Promise<Successor>): Promise<Successor> {
    this.#decision = switching.catch(() => undefined)
    try {
      this.#successor = await switching
      return this.#successor
    } finally {
      this.#decision = undefined
    }
  }
}
