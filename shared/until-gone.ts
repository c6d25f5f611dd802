import { setTimeout as delay } from 'node:timers/promises'
import { isAlive } from './process-state.ts'

type UntilGone = {
  /** Waits so many milliseconds; it may throw, which ends it all. */
  readonly pause?: (ms: number) => Promise<unknown>
  /** True once there is nothing to wait for any more. */
  readonly isOver?: () => boolean | Promise<boolean>
}

/** Waits until a process has gone: true when it has, false when it was over before. Throws what `pause` throws. */
export const untilGone = async (
  pid: number,
  { pause = delay, isOver = () => false }: UntilGone = {},
): Promise<boolean> => {
  for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250)) {
    if (await isOver()) return false
    await pause(waitMs)
  }
  return true
}
