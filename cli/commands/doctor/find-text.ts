import { type Dirent, createReadStream } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { join } from 'node:path'

export type Found = {
  /** The files that contain the text. */
  readonly paths: readonly string[]
  /** How many changed files were searched, and how many could not be read. */
  readonly searched: number
  readonly unreadable: number
}

/**
 * Searches folders (and files) for files that changed since a time and contain an ASCII text, as UTF-8 or
 * UTF-16. Follows no link, and cannot search compressed or encrypted files.
 */
export const findText = async (
  roots: readonly string[],
  text: string,
  sinceMs: number,
): Promise<Found> => {
  const needles = [Buffer.from(text, 'utf8'), Buffer.from(text, 'utf16le')]
  const seen = new Set<string>()
  const paths: string[] = []
  let searched = 0
  let unreadable = 0

  const look = async (path: string): Promise<void> => {
    const stats = await lstat(path).catch(() => undefined)
    if (!stats?.isFile() || Math.max(stats.mtimeMs, stats.ctimeMs) < sinceMs || seen.has(path))
      return
    seen.add(path)
    searched += 1
    try {
      if (await holds(path, needles)) paths.push(path)
    } catch {
      unreadable += 1
    }
  }
  const walk = async (folder: string): Promise<void> => {
    if (seen.has(folder)) return
    seen.add(folder)
    const entries: Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(folder, entry.name)
      if (entry.isDirectory()) await walk(path)
      else if (entry.isFile()) await look(path)
    }
  }
  for (const root of roots) {
    // A root may be a link itself, as /tmp is on macOS.
    const path = await realpath(root).catch(() => undefined)
    if (path === undefined) continue
    if ((await lstat(path).catch(() => undefined))?.isDirectory()) await walk(path)
    else await look(path)
  }
  return { paths: paths.toSorted(), searched, unreadable }
}

/** Reads in pieces: a file can be larger than memory. */
const holds = async (path: string, needles: readonly Buffer[]): Promise<boolean> => {
  const overlap = Math.max(...needles.map(({ length }) => length)) - 1
  let last = Buffer.alloc(0)
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    const piece = Buffer.concat([last, chunk])
    if (needles.some((needle) => piece.includes(needle))) return true
    last = piece.subarray(-overlap)
  }
  return false
}
