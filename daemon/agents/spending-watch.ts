import { parseJson, textAt, valueAt } from '../util/payload-path.ts'

/*
 * Ends a run of OpenCode that costs more than it may: each of its steps prints its cost when it ends
 * (opencode.ai/docs/cli, run --format json). Claude Code has a flag for that, and the others say it at their end alone.
 */

/** A longer line is no step. */
const longestLine = 256 * 1024

export class SpendingWatch {
  readonly #mostUsd: number
  readonly #control = new AbortController()
  /** Dollars by step: one that is printed twice counts once. */
  readonly #steps = new Map<string, number>()
  #rest = ''

  constructor(mostUsd: number) {
    this.#mostUsd = mostUsd
  }

  /** Aborts when the run has cost what it may. */
  get signal(): AbortSignal {
    return this.#control.signal
  }

  readonly read = (chunk: Buffer): void => {
    const lines = (this.#rest + chunk.toString('latin1')).split('\n')
    this.#rest = (lines.pop() ?? '').slice(0, longestLine)
    for (const line of lines) {
      const step = line.includes('step_finish') ? parseJson(line) : undefined
      const cost = valueAt(step, ['part', 'cost'])
      if (textAt(step, 'type') !== 'step_finish' || typeof cost !== 'number' || !(cost > 0))
        continue
      this.#steps.set(textAt(step, 'part', 'id') ?? String(this.#steps.size), cost)
    }
    const sum = [...this.#steps.values()].reduce((all, one) => all + one, 0)
    if (sum >= this.#mostUsd) this.#control.abort()
  }
}
