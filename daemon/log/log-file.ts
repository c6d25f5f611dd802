import { mkdirSync, statSync } from 'node:fs'
import { createStream, type RotatingFileStream } from 'rotating-file-stream'
import { type Home, systemReason } from '../../shared/home/home.ts'

/** How long after a failure the file is opened again. */
const retryMs = 5000

/**
 * `logs/daemon.log` (0600), rotated at 10 MB with four old files. Never throws: a full disk must not stop
 * the daemon. Lines that cannot be written are lost; `complain` is called when that begins, and `resumed`
 * returns the line that reports the gap. A file that was removed or moved away is created again.
 */
export class LogFile {
  readonly #home: Home
  readonly #complain: (reason: string) => void
  readonly #resumed: (failedAt: Date) => string
  #stream: RotatingFileStream | undefined
  /** The file in use; undefined without one, such as during a rotation. */
  #inode: number | undefined
  #failure: { readonly at: Date; triedAt: number } | undefined

  constructor(home: Home, complain: (reason: string) => void, resumed: (failedAt: Date) => string) {
    this.#home = home
    this.#complain = complain
    this.#resumed = resumed
    this.#stream = this.#open()
  }

  write(lines: string): void {
    if (!this.#stream && this.#failure) this.#reopen(this.#failure)
    this.#recreateIfRemoved()
    this.#stream?.write(lines)
  }

  /** Resolves once everything is written. */
  async close(): Promise<void> {
    const stream = this.#stream
    if (stream) await new Promise<void>((resolve) => stream.end(() => resolve()))
  }

  #open(): RotatingFileStream {
    const { logs, log } = this.#home
    const opened = createStream(
      // The argument is the number of an old file, and null for the file in use.
      (number) => (typeof number === 'number' ? `daemon.log.${number}` : 'daemon.log'),
      { path: logs, size: '10M', rotate: 4, mode: 0o600 },
    )
    // The package would make every folder above a missing file, and so bring back a home that was removed.
    Object.assign(opened, { makePath: async () => ensureFolder(logs) })
    opened.on('warning', (error: Error) => this.#complain(systemReason(error)))
    opened.on('open', () => {
      if (this.#stream === opened) this.#inode = readInode(log)
    })
    opened.on('rotation', () => {
      if (this.#stream === opened) this.#inode = undefined
    })
    opened.on('error', (error: Error) => {
      if (this.#stream !== opened) return
      this.#stream = undefined
      this.#inode = undefined
      if (!this.#failure) this.#complain(systemReason(error))
      this.#failure = { at: this.#failure?.at ?? new Date(), triedAt: performance.now() }
    })
    return opened
  }

  /** A stream writes nothing more after a failure. Starts with a line break: the last line may be cut. */
  #reopen(failure: { readonly at: Date; triedAt: number }): void {
    if (performance.now() - failure.triedAt < retryMs) return
    failure.triedAt = performance.now()
    this.#stream = this.#open()
    this.#stream.write(`\n${this.#resumed(failure.at)}`, (error) => {
      if (!error) this.#failure = undefined
    })
  }

  #recreateIfRemoved(): void {
    const { logs, log } = this.#home
    if (this.#inode === undefined || readInode(log) === this.#inode || !ensureFolder(logs)) return
    this.#inode = undefined
    this.#stream?.end()
    this.#stream = this.#open()
  }
}

/** Undefined also for a file that cannot be inspected. */
const readInode = (path: string): number | undefined => {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino
  } catch {
    return undefined
  }
}

/** Creates a missing folder, but not a home that was removed. */
const ensureFolder = (path: string): boolean => {
  try {
    if (!statSync(path, { throwIfNoEntry: false })) mkdirSync(path, { mode: 0o700 })
    return true
  } catch {
    return false
  }
}

/** Collects lines for a stream and writes many at a time. */
type LineBuffer = {
  readonly write: (line: string) => void
  readonly flush: () => void
}

const flushMs = 50
const maxCharacters = 32 * 1024

/**
 * Writes a line immediately after a pause, and the following ones together every 50 ms or 32 Ki characters:
 * a write for each line would be a third of the cost of a delivery.
 */
export const createLineBuffer = (stream: {
  readonly write: (lines: string) => void
}): LineBuffer => {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    if (lines === '') return
    stream.write(lines)
    lines = ''
  }
  const startTimer = (): void => {
    timer = setTimeout(() => {
      timer = undefined
      if (lines === '') return
      flush()
      startTimer()
    }, flushMs)
  }
  return {
    write: (line) => {
      lines += line
      if (timer && lines.length < maxCharacters) return
      flush()
      if (!timer) startTimer()
    },
    flush,
  }
}
