import { fixedFolder, targetFile } from './file-target.ts'
import type { Config } from './load-config.ts'
import { isFixed } from './template.ts'

/** Where a file target of an enabled webhook leads, as far as no event chooses it. */
export type FilePath = {
  /** As `deliver_to` has it. */
  readonly text: string
  /** The path as it is written, with its placeholders. */
  readonly source: string
  readonly folder: string
  /** Undefined where an event chooses it. */
  readonly file: string | undefined
}

/** The file targets of a configuration, each once. */
export const filePathsOf = ({ webhooks }: Config, homeFolder: string): FilePath[] => {
  const paths = new Map<string, FilePath>()
  for (const { enabled, targets } of webhooks)
    for (const target of enabled ? targets : [])
      if (target.kind === 'file') {
        const { text, path } = target
        const folder = fixedFolder(path, homeFolder)
        const file = isFixed(path) ? targetFile(path.source, homeFolder) : undefined
        paths.set(text, { text, source: path.source, folder, file })
      }
  return [...paths.values()]
}
