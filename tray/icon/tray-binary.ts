import { createHash, randomBytes } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, rename, unlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { systrayPrograms, systrayVersion } from '../../shared/runtime.ts'
import { packageFolder } from '../../shared/version.ts'

/**
 * Copies a tray program into a private folder to where systray2 looks for it, and returns the `copyDir`
 * for systray2. Throws `tray-failed`.
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
 * A script, because systray2 starts a file without arguments. It uses `exec`, so that signals and the end
 * of its pipes reach Node. The flags keep the heap small.
 */
export const launcher = (node: string, main: string): string =>
  `#!/bin/sh\nexec ${quoted(node)} --v8-pool-size=0 --max-semi-space-size=1 ${quoted(main)}\n`

const quoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`

/** A file of a package or the text of a script, with its hash. */
type ProgramSource = { readonly sha256: string } & (
  { readonly path: string } | { readonly content: string }
)

/**
 * Puts an executable copy of a program at `folder/name`, atomically and in a private folder (0700). The
 * source may be read-only and not executable. Throws `tray-failed` when its hash is not the pinned one
 * or the copy cannot be made.
 */
const stageFile = async (source: ProgramSource, folder: string, name: string): Promise<void> => {
  const target = join(folder, name)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await chmod(folder, 0o700)
    if (await isStaged(target, source.sha256)) return
    const temporary = join(folder, `${name}.${randomBytes(6).toString('hex')}.tmp`)
    try {
      if ('path' in source) await copyFile(source.path, temporary, constants.COPYFILE_EXCL)
      else await writeFile(temporary, source.content, { flag: 'wx', mode: 0o600 })
      if ((await hashFile(temporary)) !== source.sha256)
        throw new DoorwardError(
          'tray-failed',
          `${'path' in source ? source.path : temporary} is not the program that this version was built with`,
          { hint: 'install doorward again: npm ci' },
        )
      await chmod(temporary, 0o700)
      await rename(temporary, target)
    } catch (error) {
      await unlink(temporary).catch(() => undefined)
      throw error
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError(
      'tray-failed',
      `cannot put the tray program into ${folder} (${systemCode(error) ?? 'unknown reason'})`,
      { cause: error, hint: 'make the folder writable for you' },
    )
  }
}

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

/** The x86-64 program that systray2 brings, or on Linux our own program where that one cannot run. */
export type TrayProgram = 'packaged' | 'own'

/**
 * Which programs to try, in this order. On Linux the packaged one needs an x86-64 processor, an X display
 * and GTK; our own needs a session bus with a StatusNotifierItem panel. The variable
 * `DOORWARD_TRAY_PROGRAM=own` or `packaged` chooses one.
 */
export const trayProgramsFor = (
  platform: NodeJS.Platform,
  arch: string,
  env: NodeJS.ProcessEnv,
): TrayProgram[] => {
  if (platform !== 'linux') return ['packaged']
  const wanted = env['DOORWARD_TRAY_PROGRAM']
  if (wanted === 'own' || wanted === 'packaged') return [wanted]
  return arch === 'x64' && env['DISPLAY'] ? ['packaged', 'own'] : ['own']
}
