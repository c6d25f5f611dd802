import { lstat, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { systemCode } from './errors.ts'
import { fixedFolder, isOwnFile, makesFolders, targetFile } from './file-target.ts'
import type { Config } from './load-config.ts'
import { type Template, isFixed } from './template.ts'
import type { Warning } from './warning.ts'

/**
 * What the disk says of the file targets of enabled webhooks, as far as no event chooses the path, as
 * warnings: a folder that is not there and is not made, a link, a way that leads to doorward's own files.
 */
export const fileTargetWarnings = async (
  { webhooks }: Config,
  homeFolder: string,
): Promise<Warning[]> => {
  const paths = new Map<string, Template>()
  for (const { enabled, targets } of webhooks)
    for (const target of enabled ? targets : [])
      if (target.kind === 'file') paths.set(target.text, target.path)
  const found = await Promise.all(
    [...paths].map(async ([text, path]) => {
      const folder = fixedFolder(path, homeFolder)
      if (!makesFolders(path.source) && !(await isThere(folder))) return [missing(text, folder)]
      const file = isFixed(path) ? targetFile(path.source, homeFolder) : join(folder, 'x')
      const why = await refusalOf(file, homeFolder)
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
const refusalOf = async (file: string, homeFolder: string): Promise<string | undefined> => {
  const real = join(await realFolder(dirname(file)), basename(file))
  if (isOwnFile(real, await realFolder(homeFolder)))
    return "a link leads from it to doorward's own files"
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
