/** So that a machine that slept, or a clock that was set, is noticed within half a minute. */
const longestSleepMs = 30_000
/** A clock that was set back by more than this tells nothing of when a token ends. */
const noticeableMs = 60_000

/** One alarm per name; a new time replaces the old one. */
export type Alarms = {
  /** `at` in milliseconds since 1970; undefined takes the alarm away. */
  readonly set: (name: string, at: number | undefined) => void
  readonly close: () => void
}

/**
 * Calls `ring` for a name at its time by the clock of the wall. Timers alone stand still while a machine
 * sleeps, so the clock is looked at from time to time. Rings too, with `isDue` false, when the clock was
 * set back: the time was one of the clock as it was. Keeps no process alive.
 */
export const createAlarms = (
  ring: (name: string, isDue: boolean) => void,
  now: () => number = Date.now,
  steady: () => number = () => performance.now(),
): Alarms => {
  const timers = new Map<string, NodeJS.Timeout>()
  const set = (name: string, at: number | undefined): void => {
    clearTimeout(timers.get(name))
    timers.delete(name)
    if (at === undefined) return
    const wait = Math.min(Math.max(0, at - now()), longestSleepMs)
    const ahead = now() - steady()
    const timer = setTimeout(() => {
      timers.delete(name)
      const isDue = now() >= at
      if (isDue || now() - steady() < ahead - noticeableMs) ring(name, isDue)
      else set(name, at)
    }, wait)
    timers.set(name, timer.unref())
  }
  return {
    set,
    close: () => {
      for (const timer of timers.values()) clearTimeout(timer)
      timers.clear()
    },
  }
}
