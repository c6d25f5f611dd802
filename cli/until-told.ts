import { DoorwardError } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { holderOf } from '../shared/home/lock.ts'
import { pause } from './interrupt.ts'

const lookMs = 50

/**
 * Waits for a daemon that has locked the home to say where it is, as `isTold` sees it. False when none has,
 * or has any more. Throws `daemon-unreachable` with its pid when that takes too long, as where somebody has
 * removed what it had said.
 */
export const untilTold = async (
  home: Home,
  isTold: () => Promise<boolean>,
  patienceMs: number,
): Promise<boolean> => {
  const until = performance.now() + patienceMs
  for (;;) {
    const pid = await holderOf(home, 'daemon')
    // Looked at after the lock: it may just have said so.
    if (await isTold()) return true
    if (pid === undefined) return false
    if (performance.now() >= until)
      throw new DoorwardError(
        'daemon-unreachable',
        `the daemon (pid ${pid}) runs, but run/daemon.json does not say where: it is missing, or was changed`,
        {
          hint: `wait some seconds: it writes the file where it is missing; if that does not help: kill ${pid}, then doorward daemon start`,
        },
      )
    await pause(lookMs)
  }
}
