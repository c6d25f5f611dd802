import { isAlive } from '../shared/process-state.ts'
import { pause } from './interrupt.ts'

type UntilGone = {
  readonly signal?: AbortSignal
  /** True once there is nothing to wait for any more. */
  readonly isOver?: () => boolean | Promise<boolean>
}

/** Waits until a process has gone: true when it has, false when it was over before. Throws `interrupted`. */
export const untilGone = async (
  pid: number,
  { signal, isOver = () => false }: UntilGone = {},
): Promise<boolean> => {
  for (let waitMs = 10; isAlive(pid); waitMs = Math.min(waitMs * 1.5, 250)) {
    if (await isOver()) return false
    await pause(waitMs, signal)
  }
  return true
}
