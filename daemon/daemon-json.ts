import { unlink } from 'node:fs/promises'
import type { Home } from '../shared/home.ts'
import { version } from '../shared/version.ts'
import { writeWhole } from '../shared/write-whole.ts'

/** `run/daemon.json`: where clients find the daemon while it runs. */
export type DaemonJson = {
  /** Writes it whole, if it would say something else than before. */
  readonly write: (url: string, publicUrl: string | undefined) => Promise<void>
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
    remove: async () => unlink(path).catch(() => undefined),
  }
}
