import { randomBytes } from 'node:crypto'
import { open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Writes a file whole or not at all, readable by its owner alone (mode 0600 unless told): a new file
 * beside it, fsync, rename, fsync of the folder. A crash at any point leaves the old or the new
 * content, never a part. The name may be a planted link: rename replaces it instead of following.
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

/** Makes a rename or removal in this folder survive a power cut. Windows has no such call. */
export const syncFolder = async (folder: string): Promise<void> => {
  if (process.platform === 'win32') return
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
