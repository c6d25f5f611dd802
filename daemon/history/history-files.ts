import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../../shared/errors.ts'

/** Some 150,000 events of a day without texts. */
const maxDayBytes = 64 * 1024 * 1024
/** The oldest days go first. */
const maxBytes = 1024 * 1024 * 1024
const chunkBytes = 1024 * 1024
const dayMs = 86_400_000
const fileForm = /^(\d{4}-\d{2}-\d{2})\.jsonl$/
const newline = 10
const [space, brace] = [32, 125]

/** Where the id and the time of a line are, in bytes. */
const lineStart = '{"id":"'
const idAt = lineStart.length
const timeAt = idAt + 22 + '","receivedAt":"'.length
const timeEnd = timeAt + 24

/** Whole lines of a file, from `offset` on. */
export type Chunk = { readonly bytes: Buffer; readonly offset: number }

/** A line within a chunk; `isWhole` is false where it was cut off or is damaged. */
export type LinePlace = { readonly start: number; readonly end: number; readonly isWhole: boolean }

/** The files of `history/` (0700): one for each day on which events were received, by UTC; 0600, lines of JSON. */
export class HistoryFiles {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Returns false when the file of the day is full. */
  async append(day: string, lines: readonly string[]): Promise<boolean> {
    // Not with its parents: a home that was deleted stays away.
    await mkdir(this.#folder, { mode: 0o700 }).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error
    })
    const { O_APPEND, O_CREAT, O_WRONLY } = constants
    return this.#with(day, O_APPEND | O_CREAT | O_WRONLY, async (file, size) => {
      if (size > maxDayBytes) return false
      try {
        // The line before may have been cut off.
        await file.appendFile(`\n${lines.join('\n')}\n`)
      } catch (error) {
        // A disk that became full has taken a part, and gets all of it again.
        await file.truncate(size).catch(() => undefined)
        throw error
      }
      return true
    })
  }

  /** The days that have a file, the newest first. Throws `home-unusable`. */
  async days(): Promise<string[]> {
    const names = await readdir(this.#folder).catch((error: unknown) => {
      if (systemCode(error) === 'ENOENT') return []
      throw unusable(error)
    })
    return names
      .flatMap((name) => fileForm.exec(name)?.[1] ?? [])
      .toSorted()
      .toReversed()
  }

  /** Reads a day in chunks of whole lines, in the order in which they were written. A file that is missing has none. */
  async read(day: string, chunk: (chunk: Chunk) => unknown): Promise<void> {
    const read = async (file: FileHandle): Promise<void> => {
      let [offset, rest] = [0, Buffer.alloc(0)]
      for (;;) {
        const bytes = Buffer.allocUnsafe(rest.length + chunkBytes)
        rest.copy(bytes)
        const { bytesRead } = await file.read(bytes, rest.length, chunkBytes, offset + rest.length)
        const all = bytes.subarray(0, rest.length + bytesRead)
        const end = bytesRead === 0 ? all.length : all.lastIndexOf(newline) + 1
        if (end > 0) await chunk({ bytes: all.subarray(0, end), offset })
        if (bytesRead === 0) return
        offset += end
        rest = all.subarray(end)
      }
    }
    try {
      await this.#with(day, constants.O_RDONLY, read)
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return
      throw error instanceof DoorwardError ? error : unusable(error)
    }
  }

  /**
   * Overwrites all lines of an event with spaces: this needs no room on the disk, and cannot meet with a line that is
   * appended. Returns how many there were.
   */
  async erase(day: string, id: string): Promise<number> {
    const found: { at: number; length: number }[] = []
    await this.read(day, (chunk) => {
      if (!chunk.bytes.includes(id, 0, 'latin1')) return
      for (const { start, end } of linesOf(chunk.bytes))
        if (idOf(chunk.bytes, start) === id)
          found.push({ at: chunk.offset + start, length: end - start })
    })
    if (found.length === 0) return 0
    await this.#with(day, constants.O_RDWR, async (file) => {
      for (const { at, length } of found)
        await file.write(Buffer.alloc(length, space), 0, length, at)
      await file.sync()
    })
    return found.length
  }

  /** Removes the files of days that ended before this time, and the oldest of those that take too much room. */
  async prune(before: Date): Promise<void> {
    let bytes = 0
    for (const day of await this.days()) {
      bytes += (await stat(this.#pathOf(day))).size
      if (Date.parse(day) + dayMs <= before.getTime() || bytes > maxBytes)
        await rm(this.#pathOf(day), { force: true })
    }
  }

  /** Removes all files; returns their number and bytes. */
  async removeAll(): Promise<{ readonly files: number; readonly bytes: number }> {
    let [files, bytes] = [0, 0]
    for (const day of await this.days()) {
      bytes += (await stat(this.#pathOf(day))).size
      files += 1
      await rm(this.#pathOf(day), { force: true })
    }
    return { files, bytes }
  }

  #pathOf(day: string): string {
    return join(this.#folder, `${day}.jsonl`)
  }

  /** Links and pipes are not opened. */
  async #with<Value>(
    day: string,
    flags: number,
    work: (file: FileHandle, size: number) => Promise<Value>,
  ): Promise<Value> {
    // Windows has neither flag.
    const safely = constants.O_NOFOLLOW | constants.O_NONBLOCK
    const file = await open(this.#pathOf(day), flags | safely, 0o600)
    try {
      const stats = await file.stat()
      if (!stats.isFile())
        throw new DoorwardError('home-unusable', `${this.#pathOf(day)} is not a file`)
      return await work(file, stats.size)
    } finally {
      await file.close()
    }
  }
}

const unusable = (error: unknown) =>
  new DoorwardError('home-unusable', `cannot read history: ${systemCode(error) ?? 'unknown'}`, {
    cause: error,
  })

/** The lines of a chunk; those that an `erase` has left are not among them. */
export function* linesOf(bytes: Buffer): Generator<LinePlace> {
  for (let start = 0; start < bytes.length;) {
    const found = bytes.indexOf(newline, start)
    const end = found === -1 ? bytes.length : found
    if (end > start && bytes[start] !== space)
      yield { start, end, isWhole: end - start > timeEnd && bytes[end - 1] === brace }
    start = end + 1
  }
}

export const idOf = (bytes: Buffer, start: number): string =>
  bytes.toString('latin1', start + idAt, start + idAt + 22)

export const timeOf = (bytes: Buffer, start: number): string =>
  bytes.toString('latin1', start + timeAt, start + timeEnd)
