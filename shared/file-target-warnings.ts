import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from './errors.ts'
import { filePathsOf } from './file-paths.ts'
import { isOwnFile, makesFolders } from './file-target.ts'
import type { Config } from './load-config.ts'
import type { Warning } from './warning.ts'

/**
 * What the disk says of the file targets of enabled webhooks, as far as no event chooses the path, as
 * warnings: a folder that is not there and is not made, a link, a way that leads to doorward's own files.
 */
export const fileTargetWarnings = async (
  config: Config,
  homeFolder: string,
): Promise<Warning[]> => {
  const found = await Promise.all(
    filePathsOf(config, homeFolder).map(async ({ text, source, folder, file }) => {
      if (!makesFolders(source) && !(await isThere(folder))) return [missing(text, folder)]
      const why = await refusalOf(folder, file, homeFolder)
      return why === undefined ? [] : [refused(text, why)]
    }),
  )
  return found.flat()
}

const missing = (text: string, folder: string): Warning => ({
  code: 'target-folder-missing',
  detail: `target ${text}: the folder ${folder} does not exist; nothing can be delivered there`,
  hint: 'make it, or write a path relative to the home: its folders are made',
})

const refused = (text: string, why: string): Warning => ({
  code: 'target-file-refused',
  detail: `target ${text}: ${why}; nothing is delivered there`,
  hint: 'choose another path, or take the link away',
})

/** Why a delivery would not write it, whatever its name says. */
const refusalOf = async (
  folder: string,
  file: string | undefined,
  homeFolder: string,
): Promise<string | undefined> => {
  const real = join(await realFolder(folder), file === undefined ? '' : basename(file))
  if (isOwnFile(real, await realFolder(homeFolder)))
    return "a link leads from it to doorward's own files"
  if (file === undefined) return undefined
  const isLink = await lstat(file).then(
    (found) => found.isSymbolicLink(),
    () => false,
  )
  return isLink ? 'it is a symbolic link' : undefined
}

/** By its real name, also where the last parts of the path are still to be made. */
const realFolder = async (folder: string): Promise<string> => {
  try {
    return await realpath(folder)
  } catch {
    const above = dirname(folder)
    return above === folder ? folder : join(await realFolder(above), basename(folder))
  }
}

/** Also where it cannot be told: this is about folders that were forgotten. */
const isThere = async (folder: string): Promise<boolean> => {
  try {
    await stat(folder)
    return true
  } catch (error) {
    return systemCode(error) !== 'ENOENT'
  }
}
