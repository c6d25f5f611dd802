import { DoorwardError } from '../shared/errors.ts'
import { untilGone } from '../shared/client/discovery.ts'

/** How long a process that answers no more may take to be gone, in milliseconds. */
const patienceMs = 5000

/** Whether the daemon gave no answer because it was about to end, by another command or a signal. */
export const hasEnded = async (error: unknown, pid: number): Promise<boolean> => {
  if (!(error instanceof DoorwardError && error.code === 'daemon-unreachable')) return false
  const until = Date.now() + patienceMs
  return untilGone(pid, { isOver: () => Date.now() >= until })
}
