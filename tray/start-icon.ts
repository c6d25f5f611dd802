import { createHash } from 'node:crypto'
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError } from '../shared/errors.ts'
import type { Row } from './menu.ts'
import { stageProgram } from './stage-program.ts'
import { type Face, type Icon, startSystray } from './systray.ts'
import type { TrayProgram } from './tray-program.ts'

/** A program and the private folder it is run from. */
export type Place = { readonly program: TrayProgram; readonly folder: string }

/**
 * Shows the icon by the first program that comes up, from the first folder it may be run from.
 * Throws why the first program did not: that is the one the machine is meant for.
 */
export const startIcon = async (
  programs: readonly TrayProgram[],
  folders: readonly string[],
  face: Face,
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
  face: Face,
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
export const programFolders = async (folder: string, env: NodeJS.ProcessEnv): Promise<string[]> => {
  const runtime = env['XDG_RUNTIME_DIR']
  if (!runtime?.startsWith('/')) return [folder]
  const found = await lstat(runtime).catch(() => undefined)
  const isPrivate =
    found?.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
  if (!isPrivate) return [folder]
  const id = createHash('sha256').update(folder).digest('hex').slice(0, 12)
  return [folder, join(runtime, `doorward-tray-${id}`)]
}
