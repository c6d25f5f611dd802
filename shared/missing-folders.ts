import { stat } from 'node:fs/promises'
import { systemCode } from './errors.ts'
import { fixedFolder, makesFolders } from './file-target.ts'
import type { Config } from './load-config.ts'
import type { Warning } from './warning.ts'

/** The file targets of enabled webhooks whose folder is not there and is not made for them, as warnings. */
export const missingFolders = async (
  { webhooks }: Config,
  homeFolder: string,
): Promise<Warning[]> => {
  const folders = new Map<string, string>()
  for (const { enabled, targets } of webhooks)
    for (const target of enabled ? targets : [])
      if (target.kind === 'file' && !makesFolders(target.path.source))
        folders.set(target.text, fixedFolder(target.path, homeFolder))
  const found = await Promise.all(
    [...folders].map(async ([text, folder]): Promise<Warning[]> => {
      if (await isThere(folder)) return []
      return [
        {
          code: 'target-folder-missing',
          detail: `target ${text}: the folder ${folder} does not exist; nothing can be delivered there`,
          hint: 'make it, or write a path relative to the home: its folders are made',
        },
      ]
    }),
  )
  return found.flat()
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
