import { createHash, randomBytes } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { chmod, copyFile, lstat, mkdir, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { DoorwardError, systemCode } from '../shared/errors.ts'

/** What a program is: a file of a package or its text, and its hash. */
export type ProgramSource = { readonly sha256: string } & (
  { readonly path: string } | { readonly content: string }
)

/**
 * Puts a runnable copy of a program to `folder/name`, in a folder that is ours alone (0700), and
 * never leaves a part of it there. The source itself may be read-only and not executable.
 * Throws `tray-failed` when the bytes are not the pinned ones or the copy cannot be made.
 */
export const stageFile = async (
  source: ProgramSource,
  folder: string,
  name: string,
): Promise<void> => {
  const target = join(folder, name)
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await chmod(folder, 0o700)
    if (await isStaged(target, source.sha256)) return
    const temporary = join(folder, `${name}.${randomBytes(6).toString('hex')}.tmp`)
    try {
      if ('path' in source) await copyFile(source.path, temporary, constants.COPYFILE_EXCL)
      else await writeFile(temporary, source.content, { flag: 'wx', mode: 0o600 })
      if ((await sha256Of(temporary)) !== source.sha256)
        throw new DoorwardError(
          'tray-failed',
          `${'path' in source ? source.path : temporary} is not the program this version was made with`,
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

/** A copy of an earlier start may have been cut short, replaced or made a link. */
const isStaged = async (path: string, sha256: string): Promise<boolean> => {
  try {
    const found = await lstat(path)
    if (!found.isFile()) return false
    if (process.platform !== 'win32' && (found.mode & 0o777) !== 0o700) return false
    return (await sha256Of(path)) === sha256
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false
    throw error
  }
}

const sha256Of = async (path: string): Promise<string> => {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
