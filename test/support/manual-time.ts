import type { Wait } from '../../daemon/oauth/dependencies.ts'

/** Time that passes when the test says so. */
export type ManualTime = {
  readonly wait: Wait
  /** The next wait that begins or has begun, in their order: how long it is, and what ends it. */
  readonly next: () => Promise<{ readonly ms: number; readonly pass: () => void }>
  /** How many waits have begun and not been asked for. */
  readonly waiting: () => number
}

/** Makes a clock that stands still. */
export const createManualTime = (): ManualTime => {
  type Begun = { readonly ms: number; readonly pass: () => void }
  const begun: Begun[] = []
  const wanted: ((next: Begun) => void)[] = []
  return {
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve()
        signal.addEventListener('abort', () => resolve(), { once: true })
        const next = { ms, pass: resolve }
        const taker = wanted.shift()
        if (taker) taker(next)
        else begun.push(next)
      }),
    next: async () =>
      begun.shift() ?? (await new Promise<Begun>((resolve) => wanted.push(resolve))),
    waiting: () => begun.length,
  }
}
