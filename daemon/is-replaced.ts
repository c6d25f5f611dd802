import { readFile } from 'node:fs/promises'
import { packageFolder, version } from '../shared/version.ts'

/** True once another version was put in the place of the one that runs, as by an upgrade. */
export const isReplaced = async (): Promise<boolean> => {
  try {
    const text = await readFile(new URL('package.json', packageFolder), 'utf8')
    return (JSON.parse(text) as { readonly version?: unknown } | null)?.version !== version
  } catch {
    // Gone, or just being written.
    return false
  }
}
