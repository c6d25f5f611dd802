import { execFile } from 'node:child_process'
import { statfs } from 'node:fs/promises'

/*
 * The disk of a run: its folders are measured when it starts, and then by and by, as the kernel limits each file but
 * not their number. A program of the system measures, so that the daemon does not wait for a large folder.
 */

export type ReachedLimit = 'memory' | 'processes' | 'disk'

const everyMs = 2000
/** The pause after a measurement, in times of its length. */
const rest = 4

type Measured = {
  readonly bytes: number
  /** Without folders that cannot be read, or with files that were removed meanwhile. */
  readonly isWhole: boolean
  /** Of their file systems. */
  readonly free: number
}

type Disk = {
  readonly folders: readonly string[]
  readonly disk: number
  /** The bytes of files that its processes hold open after they have removed them. */
  readonly countRemoved: () => number
}

/** Calls once when these folders have grown by more than the limit. Returns what stops it. */
export const watchDisk = (
  { folders, disk, countRemoved }: Disk,
  onReached: () => void,
): (() => void) => {
  if (folders.length === 0) return () => undefined
  const control = new AbortController()
  const { signal } = control
  let timer: NodeJS.Timeout | undefined
  const look = async (before?: Measured): Promise<void> => {
    const began = performance.now()
    const now = await measure(folders, signal).catch(() => undefined)
    if (signal.aborted) return
    if (now && before && hasTooMuch(now, before)) return onReached()
    const pauseMs = Math.max(everyMs, rest * (performance.now() - began))
    timer = setTimeout(() => void look(before ?? now), pauseMs).unref()
  }
  const hasTooMuch = (now: Measured, before: Measured): boolean => {
    const grown = now.bytes - before.bytes
    if (grown > disk) return true
    // A program can hide files from its own user, or remove them and go on writing: there is less room then.
    return before.free - now.free > disk && (!now.isWhole || grown + countRemoved() > disk)
  }
  void look()
  return () => {
    control.abort()
    clearTimeout(timer)
  }
}

const measure = async (folders: readonly string[], signal: AbortSignal): Promise<Measured> => {
  const places = await Promise.all(folders.map(async (folder) => statfs(folder)))
  const free = places.reduce((sum, { bavail, bsize }) => sum + bavail * bsize, 0)
  const { lines, isWhole } = await new Promise<{ lines: string; isWhole: boolean }>((resolve) => {
    // Kilobytes that files really take, a line for each folder (du(1)).
    const args = ['-skP', '--', ...folders]
    execFile('du', args, { signal, env: { PATH: process.env['PATH'] } }, (error, stdout) =>
      resolve({ lines: stdout, isWhole: error === null }),
    )
  })
  const sizes = [...lines.matchAll(/^(\d+)\s/gm)].map(([, size]) => Number(size))
  return { bytes: sizes.reduce((sum, size) => sum + size * 1024, 0), isWhole, free }
}
