import { setTimeout as delay } from 'node:timers/promises'
import { DoorwardError } from '../shared/errors.ts'
import type { Row } from './menu.ts'
import { type Face, type Icon, startIcon } from './systray.ts'

const backoffMs = [250, 1000, 4000, 15_000, 60_000]
const steadyMs = 60_000

/** An icon that comes back when its program dies. */
export type KeptIcon = {
  readonly show: (face: Face) => void
  readonly stop: () => Promise<void>
  /** Rejects when the icon cannot come back: the desktop or its library has gone. */
  readonly lost: Promise<never>
}

/**
 * Starts the icon and starts it again, with the last face shown, whenever its program dies.
 * Throws what the first start throws.
 */
export const keepIcon = async (
  folder: string,
  first: Face,
  onClick: (row: Row) => void,
): Promise<KeptIcon> => {
  let face = first
  let icon: Icon | undefined = await startIcon(folder, face, onClick)
  const stopping = new AbortController()

  const keep = async (): Promise<void> => {
    let deaths = 0
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      await icon?.ended
      icon = undefined
      if (performance.now() - startedAt > steadyMs) deaths = 0
      const waitMs = backoffMs[Math.min(deaths, backoffMs.length - 1)]
      deaths += 1
      await delay(waitMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      icon = await startIcon(folder, face, onClick).catch((error: unknown) => {
        if (error instanceof DoorwardError && error.code === 'tray-failed') return undefined
        throw error
      })
      if (stopping.signal.aborted) await icon?.stop()
      // The face may have changed while it started.
      icon?.show(face)
    }
  }
  const lost = keep().then(() => new Promise<never>(() => undefined))
  lost.catch(() => undefined)

  return {
    show: (next) => {
      face = next
      icon?.show(next)
    },
    stop: async () => {
      stopping.abort()
      await icon?.stop()
    },
    lost,
  }
}
