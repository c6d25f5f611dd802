import { promises as files } from 'node:fs'
import { dirname } from 'node:path'
import { DoorwardError, systemCode } from './errors.ts'

/**
 * Makes a folder and those above it that are missing, all 0700. Throws what the system says, and
 * `home-unusable` with more than that where a link leads to nothing or a folder takes no other, as /proc:
 * there Node's own `recursive` tries for ever.
 */
export const makeFolder = async (folder: string): Promise<void> => {
  const above = dirname(folder)
  try {
    await makeOne(folder)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || above === folder) throw error
    await makeFolder(above)
    await makeOne(folder).catch((still: unknown) => {
      if (systemCode(still) !== 'ENOENT') throw still
      throw new DoorwardError('home-unusable', `cannot make ${folder}: ${above} takes no folders`, {
        cause: still,
        hint: 'name another home with DOORWARD_HOME',
      })
    })
  }
}

const makeOne = async (folder: string): Promise<void> => {
  try {
    await files.mkdir(folder, { mode: 0o700 })
  } catch (error) {
    if (!(await isFolder(folder))) throw error
  }
}

/** Throws where the name is a link to nothing. */
const isFolder = async (path: string): Promise<boolean> => {
  try {
    return (await files.stat(path)).isDirectory()
  } catch (error) {
    const to =
      systemCode(error) === 'ENOENT' ? await files.readlink(path).catch(() => undefined) : undefined
    if (to === undefined) return false
    throw new DoorwardError('home-unusable', `${path} is a link to ${to}, which is not there`, {
      cause: error,
      hint: 'make what it leads to, as by connecting its disk, or name another home with DOORWARD_HOME',
    })
  }
}
