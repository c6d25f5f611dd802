import { appendFile, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { constants } from 'node:fs'
import { join } from 'node:path'
import { writeFileAtomic } from '../../shared/home/files.ts'
import { readSecretFile } from '../../shared/home/home.ts'

/** Some 150,000 events of a day. */
const maxBytes = 64 * 1024 * 1024
const dayMs = 86_400_000
const fileForm = /^(\d{4}-\d{2}-\d{2})\.jsonl$/

/** By UTC, as the machine may move to another time zone. */
export const toDay = (at: Date): string => at.toISOString().slice(0, 10)

/** The files of `history/` (0700): one a day, 0600, lines of JSON. */
export class HistoryFiles {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Returns false when the file of the day is full. */
  async append(day: string, lines: readonly string[]): Promise<boolean> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 })
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
    const flags = O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0)
    const file = await open(this.#pathOf(day), flags, 0o600)
    try {
      if ((await file.stat()).size > maxBytes) return false
      // The line before may have been cut off.
      await appendFile(file, `\n${lines.join('\n')}\n`)
      return true
    } finally {
      await file.close()
    }
  }

  /** The days that have a file, the newest first. */
  async days(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => [])
    return names
      .flatMap((name) => fileForm.exec(name)?.[1] ?? [])
      .toSorted()
      .toReversed()
  }

  /** The lines of a day, in the order in which they were written. */
  async read(day: string): Promise<string[]> {
    const text = await readSecretFile(this.#pathOf(day), 2 * maxBytes)
    return (text ?? '').split('\n').filter((line) => line !== '')
  }

  async replace(day: string, lines: readonly string[]): Promise<void> {
    await writeFileAtomic(this.#pathOf(day), `${lines.join('\n')}\n`)
  }

  /** Removes the files of days that ended before this time. */
  async removeBefore(time: Date): Promise<void> {
    for (const day of await this.days())
      if (Date.parse(day) + dayMs <= time.getTime()) await rm(this.#pathOf(day), { force: true })
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
}
