import { createHash, randomBytes } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, rename, unlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { systrayPrograms, systrayVersion } from '../../shared/runtime.ts'

/*
 * On Linux panels show the file name of the program, and screen readers say it. So the program is there under
 * our name, and where systray2 looks for it is a script that becomes the program.
 */
const shownName = 'Doorward'
const launcher = `#!/bin/sh\nexec "\${0%/*}/${shownName}"\n`

/**
 * Copies the program of systray2 into a private folder to where systray2 looks for it, which is its
 * `copyDir`. Throws `tray-failed`.
 */
export const stageProgram = async (copyDir: string): Promise<void> => {
  const [name, sha256] = systrayPrograms[process.platform] ?? []
  if (!name || !sha256)
    throw new DoorwardError('tray-failed', `there is no tray program for ${process.platform}`)
  const systray = dirname(createRequire(import.meta.url).resolve('systray2'))
  const folder = join(copyDir, systrayVersion)
  const copy = async (to: string) => {
    const source = join(systray, 'traybin', name)
    await copyFile(source, to, constants.COPYFILE_EXCL)
    if ((await hashFile(to)) !== sha256)
      throw new DoorwardError(
        'tray-failed',
        `${source} is not the program that this version was built with`,
        { hint: 'install doorward again: npm ci' },
      )
  }
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await chmod(folder, 0o700)
    if (process.platform !== 'linux') return await stageFile(join(folder, name), sha256, copy)
    await stageFile(join(folder, shownName), sha256, copy)
    await stageFile(join(folder, name), toHash(launcher), async (to) =>
      writeFile(to, launcher, { flag: 'wx' }),
    )
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError(
      'tray-failed',
      `cannot put the tray program into ${folder} (${systemCode(error) ?? 'unknown reason'})`,
      { cause: error, hint: 'make the folder writable for you' },
    )
  }
}

/** Puts an executable file there, atomically, unless one with this hash is there. */
const stageFile = async (
  target: string,
  sha256: string,
  create: (path: string) => Promise<void>,
): Promise<void> => {
  if (await isStaged(target, sha256)) return
  const temporary = `${target}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await create(temporary)
    await chmod(temporary, 0o700)
    await rename(temporary, target)
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw error
  }
}

const toHash = (text: string): string => createHash('sha256').update(text).digest('hex')

/** A copy of an earlier start may be truncated, replaced or a link. */
const isStaged = async (path: string, sha256: string): Promise<boolean> => {
  try {
    const found = await lstat(path)
    if (!found.isFile()) return false
    if (process.platform !== 'win32' && (found.mode & 0o777) !== 0o700) return false
    return (await hashFile(path)) === sha256
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

const hashFile = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

/** The x86-64 program that systray2 brings, or on Linux the tray itself where that one cannot run. */
export type TrayProgram = 'packaged' | 'own'

/**
 * Which of the two to try, in this order. On Linux the packaged program needs an x86-64 processor, an X
 * display and GTK; the tray itself needs a session bus with a StatusNotifierItem panel, which Plasma and MATE
 * always have. Plasma opens a submenu of the packaged program off the screen at first, and MATE 1.26 does not
 * draw its icon. The variable `DOORWARD_TRAY_PROGRAM=own` or `packaged` chooses one.
 */
export const trayProgramsFor = (
  platform: NodeJS.Platform,
  arch: string,
  env: NodeJS.ProcessEnv,
): TrayProgram[] => {
  if (platform !== 'linux') return ['packaged']
  const wanted = env['DOORWARD_TRAY_PROGRAM']
  if (wanted === 'own' || wanted === 'packaged') return [wanted]
  if (arch !== 'x64' || !env['DISPLAY']) return ['own']
  const desktops = (env['XDG_CURRENT_DESKTOP'] ?? '').split(':')
  const isBetterOwn = desktops.includes('KDE') || desktops.includes('MATE')
  return isBetterOwn ? ['own', 'packaged'] : ['packaged', 'own']
}
