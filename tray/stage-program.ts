import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { DoorwardError } from '../shared/errors.ts'
import { packageFolder } from '../shared/version.ts'
import { stageFile } from './stage-file.ts'
import type { TrayProgram } from './tray-program.ts'

/** systray2's programs by name, and what each must be, byte for byte. */
const packaged: Partial<Record<NodeJS.Platform, readonly [name: string, sha256: string]>> = {
  linux: ['tray_linux_release', 'f61eee19036c0af93e2bb0e5b9fff0bd413469aff5ea1261b8fcfe9e2c027c04'],
  darwin: [
    'tray_darwin_release',
    'b406fe6d13d1ba66f901a07267ecfcf1b615e9c8b3410287be576706bd737791',
  ],
  win32: [
    'tray_windows_release.exe',
    'ae61c63ece1392fc64abbfbd40de782f5b2a7b7d83e93f8b640a20395ae6e8a0',
  ],
}
const systrayVersion = '2.1.4'

/**
 * Puts a tray program to where systray2 looks for it, in a folder that is ours alone, and returns
 * what to hand to systray2 as `copyDir`. Throws `tray-failed`.
 */
export const stageProgram = async (program: TrayProgram, folder: string): Promise<string> => {
  const [name, sha256] = packaged[process.platform] ?? []
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
