import type { Office } from './office.ts'
import type { Whereabouts } from './whereabouts.ts'

const lookMs = 5000

/**
 * Looks every five seconds whether `run/daemon.json` is there, and writes it again while this daemon is in
 * office: without it no command finds a daemon that keeps all others from starting. Keeps no process alive.
 */
export const stayFound = (
  whereabouts: Pick<Whereabouts, 'tellIfGone'>,
  office: Pick<Office, 'isHeld'>,
): void => {
  const look = async (): Promise<void> => {
    if (await office.isHeld()) await whereabouts.tellIfGone()
  }
  setInterval(() => void look(), lookMs).unref()
}
