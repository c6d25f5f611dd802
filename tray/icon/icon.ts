import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { DoorwardError } from '../../shared/errors.ts'
import { packageFolder } from '../../shared/version.ts'
import { findStatusAttention } from '../attention.ts'
import type { Row } from '../menu.ts'
import type { View } from '../view.ts'
import { type TrayState, type Icon, startSystray } from './systray.ts'
import { stageProgram, type TrayProgram, trayProgramsFor } from './tray-binary.ts'

const backoffMs = [250, 1000, 4000, 15_000, 60_000]
const steadyMs = 60_000

/** An icon that comes back when its program dies. */
export type KeptIcon = {
  /** Shows this instead; where its menu has other rows, the program is started anew with them. */
  readonly show: (face: TrayState) => void
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
  first: TrayState,
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

/** A program and the private folder it is run from. */
type Place = { readonly program: TrayProgram; readonly folder: string }

/**
 * Shows the icon by the first program that comes up, from the first folder it may be run from.
 * Throws why the first program did not: that is the one the machine is meant for.
 */
const startIcon = async (
  programs: readonly TrayProgram[],
  folders: readonly string[],
  face: TrayState,
  onClick: (row: Row) => void,
): Promise<{ icon: Icon; place: Place }> => {
  let first: unknown
  for (const program of programs) {
    try {
      return await fromFolders(program, folders, face, onClick)
    } catch (error) {
      first ??= error
    }
  }
  throw first
}

const fromFolders = async (
  program: TrayProgram,
  folders: readonly string[],
  face: TrayState,
  onClick: (row: Row) => void,
): Promise<{ icon: Icon; place: Place }> => {
  let failure: unknown
  for (const folder of folders) {
    try {
      const copyDir = await stageProgram(program, folder)
      const icon = await startSystray(copyDir, face, onClick)
      return { icon, place: { program, folder } }
    } catch (error) {
      failure = error
      // A home may lie on a disk from which nothing may be run; only then another folder helps.
      if (!(error instanceof DoorwardError && error.code === 'tray-not-runnable')) break
    }
  }
  throw failure
}

/**
 * The private folders a tray program may be run from: that in the home, then one for this home in
 * the folder that the session gives its user, if it is the user's alone.
 */
const programFolders = async (folder: string, env: NodeJS.ProcessEnv): Promise<string[]> => {
  const runtime = env['XDG_RUNTIME_DIR']
  if (!runtime?.startsWith('/')) return [folder]
  const found = await lstat(runtime).catch(() => undefined)
  const isPrivate =
    found?.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
  if (!isPrivate) return [folder]
  const id = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  return [folder, join(runtime, `doorward-tray-${id}`)]
}

const holdMs = 1000

/** Which icon to show, and when to look again. */
export type SteadyIcon = {
  readonly name: IconName
  readonly since: number
  readonly nextAt?: number
}

/** Holds `running` for at least a second before it becomes `idle`, so that the icon does not flicker. */
export const steadyIcon = (
  shown: SteadyIcon | undefined,
  name: IconName,
  now: number,
): SteadyIcon => {
  if (!shown) return { name, since: now }
  const { since } = shown
  if (shown.name === 'running' && name === 'idle' && now - since < holdMs)
    return { name: 'running', since, nextAt: since + holdMs }
  return { name, since: shown.name === name ? since : now }
}

/** What the icon can say. */
export type IconName = 'idle' | 'running' | 'needs-you' | 'unreachable'

/** The icon for a view. A need outlasts a run, so it wins over one. */
export const getIconName = ({ daemon }: View): IconName => {
  if (daemon.state !== 'connected') return 'unreachable'
  if (findStatusAttention(daemon.status).some(({ urgent }) => urgent)) return 'needs-you'
  return daemon.status.queue.running > 0 ? 'running' : 'idle'
}

/**
 * The picture of a state as the system wants it: an .ico on Windows, on macOS a template image that
 * the system colours itself, else a PNG of twice the usual size.
 */
export const iconFile = (name: IconName, platform: NodeJS.Platform = process.platform): string => {
  const files: Partial<Record<NodeJS.Platform, string>> = {
    win32: `${name}.ico`,
    darwin: `${name}Template@2x.png`,
  }
  return getIconPath(files[platform] ?? `${name}@2x.png`)
}

/** The picture of a state as a notification shows it, on every system. */
export const noteIconFile = (name: IconName): string => getIconPath(`${name}@2x.png`)

const getIconPath = (file: string): string =>
  fileURLToPath(new URL(`assets/icons/${file}`, packageFolder))
