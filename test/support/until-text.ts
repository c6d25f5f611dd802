import { once } from 'node:events'
import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Waits until a file exists and its text fits. */
export const untilText = async (folder: string, name: string, fits: RegExp): Promise<string> => {
  const watcher = watch(folder)
  try {
    for (;;) {
      const changed = once(watcher, 'change')
      const text = await readFile(join(folder, name), 'utf8').catch(() => '')
      if (fits.test(text)) return text
      await changed
    }
  } finally {
    watcher.close()
  }
}
