import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DoorwardError } from '../shared/errors.ts'
import { systrayPrograms, systrayVersion } from '../shared/runtime.ts'
import { packageFolder } from '../shared/version.ts'
import { stageFile } from './stage-file.ts'
import type { TrayProgram } from './tray-program.ts'

/**
 * Puts a tray program to where systray2 looks for it, in a folder that is ours alone, and returns
 * what to hand to systray2 as `copyDir`. Throws `tray-failed`.
 */
export const stageProgram = async (program: TrayProgram, folder: string): Promise<string> => {
  const [name, sha256] = systrayPrograms[process.platform] ?? []
  if (!name || !sha256)
    throw new DoorwardError('tray-failed', `there is no tray program for ${process.platform}`)
  if (program === 'own') {
    const copyDir = join(folder, 'own')
    const content = launcher(process.execPath, ownMain)
    await stageFile(
      { content, sha256: createHash('sha256').update(content).digest('hex') },
      join(copyDir, systrayVersion),
      name,
    )
    return copyDir
  }
  const systray = dirname(createRequire(import.meta.url).resolve('systray2'))
  const path = join(systray, 'traybin', name)
  await stageFile({ path, sha256 }, join(folder, systrayVersion), name)
  return folder
}

const ownMain = fileURLToPath(new URL('dist/tray/sni/main.js', packageFolder))

/**
 * A script, because systray2 starts a file without arguments; it becomes Node by `exec`, so signals
 * and the end of its pipes reach Node. The flags keep one small menu from growing a large heap.
 */
export const launcher = (node: string, main: string): string =>
  `#!/bin/sh\nexec ${quoted(node)} --v8-pool-size=0 --max-semi-space-size=1 ${quoted(main)}\n`

const quoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`
