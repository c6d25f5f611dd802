// The most that setTimeout takes, 24.8 days: one that is longer would ring at once.
const longestStepMs = 2_147_483_647

export type LongTimeout = { readonly clear: () => void; readonly unref: () => LongTimeout }

/** A timer that rings once, after any number of milliseconds: agents and logins may be given 30 days. */
export const longTimeout = (
  ring: () => void,
  ms: number,
  longestMs = longestStepMs,
): LongTimeout => {
  let isHeld = true
  let timer: NodeJS.Timeout
  const wait = (restMs: number): void => {
    const stepMs = Math.min(restMs, longestMs)
    timer = setTimeout(() => (restMs > stepMs ? wait(restMs - stepMs) : ring()), stepMs)
    if (!isHeld) timer.unref()
  }
  wait(ms)
  const self: LongTimeout = {
    clear: () => clearTimeout(timer),
    unref: () => {
      isHeld = false
      timer.unref()
      return self
    },
  }
  return self
}
