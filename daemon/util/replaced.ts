import { readFile } from 'node:fs/promises'
import { packageFolder, version } from '../../shared/version.ts'

/** True when another version was installed over the one that runs. */
export const isReplaced = async (): Promise<boolean> => {
  try {
    const text = await readFile(new URL('package.json', packageFolder), 'utf8')
    return (JSON.parse(text) as { readonly version?: unknown } | null)?.version !== version
  } catch {
    // Missing, or being written.
    return false
  }
}
