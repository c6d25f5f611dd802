import { access, unlink } from 'node:fs/promises'
import { systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home/home.ts'
import { version } from '../shared/version.ts'
import { writeWhole } from '../shared/home/files.ts'

/** `run/daemon.json`: where clients find the daemon while it runs. */
export type DaemonJson = {
  /** Writes it whole, if it would say something else than before. */
  readonly write: (url: string, publicUrl: string | undefined) => Promise<void>
  /** Writes it again where somebody else has removed it; true then. Throws what the disk refuses. */
  readonly writeAgain: () => Promise<boolean>
  readonly remove: () => Promise<void>
}

export const createDaemonJson = ({ daemonJson: path }: Home, startedAt: Date): DaemonJson => {
  let written: string | undefined
  return {
    write: async (url, publicUrl) => {
      const file = {
        pid: process.pid,
        url,
        ...(publicUrl === undefined ? {} : { publicUrl }),
        version,
        startedAt: startedAt.toISOString(),
      }
      const text = `${JSON.stringify(file)}\n`
      if (text !== written) await writeWhole(path, text)
      written = text
    },
    writeAgain: async () => {
      const isMissing = await isGone(path)
      // Looked at last: it may just have been removed here.
      if (!isMissing || written === undefined) return false
      await writeWhole(path, written)
      return true
    },
    remove: async () => {
      written = undefined
      await unlink(path).catch(() => undefined)
    },
  }
}

const isGone = async (path: string): Promise<boolean> =>
  access(path).then(
    () => false,
    (error: unknown) => systemCode(error) === 'ENOENT',
  )
