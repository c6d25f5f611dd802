import { setTimeout as delay } from 'node:timers/promises'
import { DoorwardError } from '../shared/errors.ts'
import type { Row } from './menu.ts'
import { type Place, programFolders, startIcon } from './start-icon.ts'
import type { Face, Icon } from './systray.ts'
import { type TrayProgram, trayProgramsFor } from './tray-program.ts'

const backoffMs = [250, 1000, 4000, 15_000, 60_000]
const steadyMs = 60_000

/** An icon that comes back when its program dies. */
export type KeptIcon = {
  /** Shows this instead; where its menu has other rows, the program is started anew with them. */
  readonly show: (face: Face) => void
  readonly stop: () => Promise<void>
  /** The program that shows it; the same for its whole life. */
  readonly program: TrayProgram
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
  const { env, platform, arch } = process
  const programs = trayProgramsFor(platform, arch, env)
  const folders = await programFolders(folder, env)
  const started = await startIcon(programs, folders, first, onClick)
  let face = first
  let icon: Icon | undefined = started.icon
  const stopping = new AbortController()

  let rows = first.rows
  const draw = (): void => {
    if (isSameShape(face.rows, rows)) icon?.show(face)
    else void icon?.stop()
  }

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
      // Not by another program: where this one finds no desktop any more, the person has left it.
      icon = await again(started.place)
      if (stopping.signal.aborted) await icon?.stop()
      // The face may have changed while it started.
      draw()
    }
  }
  const again = async ({ program, folder: place }: Place): Promise<Icon | undefined> => {
    try {
      rows = face.rows
      return (await startIcon([program], [place], face, onClick)).icon
    } catch (error) {
      if (error instanceof DoorwardError && error.code === 'tray-failed') return undefined
      throw error
    }
  }
  const lost = keep().then(() => new Promise<never>(() => undefined))
  lost.catch(() => undefined)

  return {
    show: (next) => {
      face = next
      draw()
    },
    stop: async () => {
      stopping.abort()
      await icon?.stop()
    },
    program: started.place.program,
    lost,
  }
}

const isSameShape = (some: readonly Row[] = [], others: readonly Row[] = []): boolean =>
  some.length === others.length &&
  some.every((row, index) => isSameShape(row.rows, others[index]?.rows))
