import { setTimeout as delay } from 'node:timers/promises'

/** Lets so many milliseconds pass; resolves early when the signal is aborted. */
export type Wait = (ms: number, signal: AbortSignal) => Promise<void>

/** By the clock of this machine; keeps no process alive. */
export const wait: Wait = async (ms, signal) => {
  try {
    await delay(ms, undefined, { signal, ref: false })
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
