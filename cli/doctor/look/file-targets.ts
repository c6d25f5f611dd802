import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { filePathsOf } from '../../../shared/config/target-warnings.ts'
import type { Home } from '../../../shared/home/home.ts'
import type { Config } from '../../../shared/config/load.ts'

export type FileTarget = {
  /** As `deliver_to` has it. */
  readonly text: string
  /** The part of the path that is there and cannot be written to; undefined where all is well. */
  readonly closed: string | undefined
}

/** Whether the files that answers are appended to could be written, as far as their paths are fixed. */
export const lookAtFileTargets = async (config: Config, home: Home): Promise<FileTarget[]> =>
  Promise.all(
    filePathsOf(config, home.root).map(async ({ text, folder, file = folder }) => ({
      text,
      closed: await closedPart(file),
    })),
  )

const closedPart = async (path: string): Promise<string | undefined> => {
  for (let part = path; ; part = dirname(part)) {
    const found = await stat(part).catch(() => undefined)
    if (!found && dirname(part) !== part) continue
    const mode = found?.isDirectory() ? constants.W_OK | constants.X_OK : constants.W_OK
    // A file in the place of a folder takes no file either.
    const isWrong = part !== path && !found?.isDirectory()
    const isOpen = await access(part, mode).then(
      () => true,
      () => false,
    )
    return isOpen && !isWrong ? undefined : part
  }
}
