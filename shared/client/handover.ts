import { setTimeout as delay } from 'node:timers/promises'
import type { DaemonFile } from '../api.ts'
import { handoverVersion } from '../version.ts'
import type { Client } from './client.ts'

/** False for a daemon whose messages during a restart differ from those of this program. */
export const canHandOver = ({ handover }: DaemonFile): boolean => handover === handoverVersion

const stepMs = 250

/**
 * Waits until a daemon has finished the events that it has accepted, so that a stop loses none. `onWaiting` is
 * called once, with their number, if there are any. Throws what a request throws.
 */
export const untilIdle = async (
  client: Pick<Client, 'get'>,
  onWaiting: (events: number) => void = () => undefined,
): Promise<void> => {
  for (let isFirst = true; ; isFirst = false) {
    // The queue alone: the daemon may be of another version.
    const { queue } = await client.get<{ queue?: { running?: number; waiting?: number } }>(
      '/status',
    )
    const events = (queue?.running ?? 0) + (queue?.waiting ?? 0)
    if (events === 0) return
    if (isFirst) onWaiting(events)
    await delay(stepMs)
  }
}
