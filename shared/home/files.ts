import { randomBytes } from 'node:crypto'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Replaces the content of a file atomically, readable by its owner alone by default: temporary file,
 * fsync, rename, fsync of the folder. A crash leaves the old or the new content, never a part. A planted
 * link of this name is replaced, not followed.
 */
export const writeFileAtomic = async (
  path: string,
  content: string | Uint8Array,
  mode = 0o600,
): Promise<void> => {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`
  try {
    const file = await open(temporary, 'wx', mode)
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => undefined)
    throw error
  }
  await syncFolder(dirname(path))
}

/** Makes a rename or removal in this folder survive a power failure. Windows has no such call. */
export const syncFolder = async (folder: string): Promise<void> => {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
