import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { DoorwardError } from '../../shared/errors.ts'
import { readSecretFile, systemReason } from '../../shared/home/home.ts'

/** The file is written again when it has this many more lines than it needs. */
const spareLines = 5000
/** Several times what all lines need. */
const maxBytes = 16 * 1024 * 1024

/**
 * A file of the home to which each step appends a line, so a kill loses at most the step in progress. A line
 * that was cut off must be one that its reader ignores.
 */
export class LineFile {
  readonly #path: string
  #lines = 0

  constructor(path: string) {
    this.#path = path
  }

  /** Throws `home-insecure`, `home-unusable`. */
  async read(): Promise<readonly string[]> {
    const lines = ((await readSecretFile(this.#path, maxBytes)) ?? '').split('\n')
    this.#lines = lines.length
    return lines
  }

  /** `needed` are all lines that the file needs with these. Throws `home-unusable`. */
  append(lines: readonly string[], needed: { count: number; list: () => readonly string[] }): void {
    try {
      this.#lines += lines.length
      if (this.#lines > needed.count + spareLines) this.#rewrite(needed.list())
      else this.#write(lines)
    } catch (error) {
      const message = `cannot write ${this.#path}: ${systemReason(error)}`
      throw new DoorwardError('home-unusable', message, { cause: error })
    }
  }

  #write(lines: readonly string[]): void {
    const { O_APPEND, O_CREAT, O_WRONLY, O_NOFOLLOW } = constants
    const file = openSync(this.#path, O_APPEND | O_CREAT | O_WRONLY | (O_NOFOLLOW ?? 0), 0o600)
    try {
      // The line before may have been cut off.
      writeFileSync(file, `\n${lines.join('\n')}\n`)
    } finally {
      closeSync(file)
    }
  }

  /** Synchronous, so that no line is appended to the file that is replaced. */
  #rewrite(lines: readonly string[]): void {
    const temporary = `${this.#path}.${process.pid}.tmp`
    rmSync(temporary, { force: true })
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeFileSync(file, `${lines.join('\n')}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, this.#path)
    this.#lines = lines.length
  }
}
