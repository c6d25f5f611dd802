import type { DaemonFile } from './api.ts'
import { DoorwardError } from './errors.ts'
import { portHeldHint, portHolder } from './port-holder.ts'
import { isAlive } from './process-state.ts'

/** Who answers at an address in place of the daemon; `silent` takes connections and does not answer in time. */
export type Impostor = 'other-doorward' | 'stranger' | 'silent'

/**
 * Why the daemon of `run/daemon.json` cannot be spoken to though something listens there: another
 * program has its port (`daemon-foreign`), it hangs or takes no more connections (`daemon-silent`), or it
 * was started with another token than `run/api.token` holds now (`unauthorized`). Names the process where
 * the system tells.
 */
export const notOurDaemon = async (
  { url, pid }: DaemonFile,
  impostor: Impostor | 'hung-up',
): Promise<DoorwardError> => {
  const { port } = new URL(url)
  const holder = await portHolder(Number(port))
  const isDaemon = holder ? holder.pid === pid : isAlive(pid)
  if (impostor === 'silent' && isDaemon)
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) does not answer`, {
      hint: `wait; if it hangs: kill -9 ${pid}, then doorward daemon start`,
    })
  // As with its limit of connections reached. Who has only its number would hold the port too.
  if (impostor === 'hung-up' && holder?.pid === pid)
    return new DoorwardError('daemon-silent', `the daemon (pid ${pid}) ends each connection`, {
      hint: `it has too many, or is ending: wait; if it goes on: kill ${pid}, then doorward daemon start`,
    })
  if (impostor === 'other-doorward' && holder?.pid === pid)
    return new DoorwardError(
      'unauthorized',
      `run/api.token is not the one that the daemon (pid ${pid}) was started with`,
      { hint: `put the file back, or: kill ${pid}, then doorward daemon start` },
    )
  const who = impostor === 'other-doorward' ? 'the daemon of another home' : 'another program'
  const message = holder
    ? `port ${port} is held by ${impostor === 'other-doorward' ? `${who} (pid ${holder.pid})` : `${holder.name} (pid ${holder.pid}), not by the daemon`}`
    : `${who} ${impostor === 'silent' ? 'listens' : 'answers'} at ${url}, not the daemon of this home`
  return new DoorwardError('daemon-foreign', message, { hint: portHeldHint })
}
