import { DoorwardError } from '../../shared/errors.ts'
import { toAgentError } from '../agents/answer.ts'
import { longTimeout } from '../util/concurrency.ts'

type Step = 'checkout' | 'context' | 'agent' | 'commit'

/**
 * The time of a run with a workspace: the agent's `timeout` limits all steps together, from the checkout to the
 * commit. The fetch before them has a limit of its own, as the first one of a large repository takes long, and runs
 * wait for each other's.
 */
export class RunClock {
  readonly #limitMs: number
  readonly #stopped: AbortSignal
  readonly #control = new AbortController()
  readonly #steps: { readonly name: Step; readonly startedAt: number }[] = []
  readonly #onStop = () => this.#control.abort(this.#stopped.reason)
  #timer: NodeJS.Timeout | undefined

  /** `stopped` is aborted when the daemon stops or the event is cancelled. */
  constructor(limitMs: number, stopped: AbortSignal) {
    this.#limitMs = limitMs
    this.#stopped = stopped
    if (stopped.aborted) this.#onStop()
    stopped.addEventListener('abort', this.#onStop)
  }

  /** Aborted when the time is over, and with `stopped`. */
  get signal(): AbortSignal {
    return this.#control.signal
  }

  /** Begins a step; the first one starts the clock. Throws when the time is over. */
  begin(name: Step): void {
    this.signal.throwIfAborted()
    this.#timer ??= longTimeout(() => this.#control.abort('immediately'), this.#limitMs)
    this.#steps.push({ name, startedAt: performance.now() })
  }

  leftMs(): number {
    const [first] = this.#steps
    const usedMs = first ? performance.now() - first.startedAt : 0
    return Math.max(1, this.#limitMs - usedMs)
  }

  /** The error of a step; where the time was over, one that names the time of each step. */
  explain(error: unknown): unknown {
    if (this.#stopped.aborted) return error
    const isOfAgent = error instanceof DoorwardError && error.code === 'agent-timeout'
    if (!isOfAgent && !this.signal.aborted) return error
    const limit = `the timeout of ${this.#limitMs / 1000} s is for the whole run: ${this.#describe()}`
    if (isOfAgent)
      return new DoorwardError(error.code, error.message, {
        cause: error,
        localDetail: `${error.localDetail ?? error.message}; ${limit}`,
      })
    return toAgentError('agent-timeout', `the run took too long; ${limit}`, {
      cause: error,
      hint: 'raise the timeout of the agent: doorward config edit agents',
    })
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#stopped.removeEventListener('abort', this.#onStop)
  }

  /** `checkout 2 s, agent 597.9 s, commit 0.1 s` */
  #describe(): string {
    const now = performance.now()
    return this.#steps
      .map(({ name, startedAt }, place) => {
        const seconds = ((this.#steps[place + 1]?.startedAt ?? now) - startedAt) / 1000
        return `${name} ${Math.round(seconds * 10) / 10} s`
      })
      .join(', ')
  }
}
