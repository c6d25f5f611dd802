import { mkdirSync, statSync } from 'node:fs'
import { createStream, type RotatingFileStream } from 'rotating-file-stream'
import { type Home, systemReason } from '../../shared/home/home.ts'

/** The file of the log. Never throws: a disk that takes nothing must not end the daemon. */
type LogFile = {
  readonly write: (lines: string) => void
  /** Ends once everything is written. */
  readonly close: () => Promise<void>
}

/** How long after a failure the file is tried again. */
const againMs = 5000

/**
 * Opens `logs/daemon.log` (0600), rotated at 10 MB, four old files kept. What cannot be written is lost;
 * `complain` is told when that begins. The stream of a failed write writes nothing more, so there is a new
 * one later, and `resumed` gives a line that says what is missing. A file that was removed or moved away is
 * begun again by the next line.
 */
export const openLogFile = (
  { logs, log }: Home,
  complain: (reason: string) => void,
  resumed: (failedAt: Date) => string,
): LogFile => {
  let stream: RotatingFileStream | undefined
  /** Which file is written to; undefined while none is, as in a rotation. */
  let inode: number | undefined
  let failed: { readonly at: Date; triedAt: number } | undefined

  const open = (): RotatingFileStream => {
    const opened = createStream(
      // With `rotate` the first argument is the number of an old file, and null for the one in use.
      (number) => (typeof number === 'number' ? `daemon.log.${number}` : 'daemon.log'),
      { path: logs, size: '10M', rotate: 4, mode: 0o600 },
    )
    opened.on('warning', (error: Error) => complain(systemReason(error)))
    opened.on('open', () => {
      if (stream === opened) inode = readInodeSync(log)
    })
    opened.on('rotation', () => {
      if (stream === opened) inode = undefined
    })
    opened.on('error', (error: Error) => {
      if (stream !== opened) return
      stream = undefined
      inode = undefined
      if (!failed) complain(systemReason(error))
      failed = { at: failed?.at ?? new Date(), triedAt: performance.now() }
    })
    return opened
  }
  /** Begins a line of its own: of the one before only a part may be there. */
  const openAgain = (failure: { readonly at: Date; triedAt: number }): void => {
    if (performance.now() - failure.triedAt < againMs) return
    const opened = open()
    stream = opened
    failure.triedAt = performance.now()
    opened.write(`\n${resumed(failure.at)}`, (error) => {
      if (!error) failed = undefined
    })
  }
  const beginAgainIfGone = (): void => {
    if (inode === undefined || readInodeSync(log) === inode || !isFolder(logs)) return
    inode = undefined
    stream?.end()
    stream = open()
  }

  stream = open()
  return {
    write: (lines) => {
      if (!stream && failed) openAgain(failed)
      beginAgainIfGone()
      stream?.write(lines)
    },
    close: async () => {
      const last = stream
      if (last) await new Promise<void>((resolve) => last.end(() => resolve()))
    },
  }
}

/** Undefined also for one that may not be looked at just now. */
const readInodeSync = (path: string): number | undefined => {
  try {
    return statSync(path, { throwIfNoEntry: false })?.ino
  } catch {
    return undefined
  }
}

/** Makes the folder where it is missing, but no home that was removed. */
const isFolder = (path: string): boolean => {
  try {
    if (!statSync(path, { throwIfNoEntry: false })) mkdirSync(path, { mode: 0o700 })
    return true
  } catch {
    return false
  }
}

/** Lines on their way to a stream, written many at a time. */
type LineBuffer = {
  readonly write: (line: string) => void
  /** Hands on what is there now. */
  readonly flush: () => void
}

/** Where the lines go. */
type Destination = { readonly write: (lines: string) => void }

const gatherMs = 50
const mostCharacters = 32 * 1024

/**
 * Hands on a line at once after a quiet moment, and what follows within 50 ms together, or as soon as it is
 * 32 Ki characters: one write for each line is a third of what a delivery costs otherwise.
 */
export const createLineBuffer = (stream: Destination): LineBuffer => {
  let lines = ''
  let timer: NodeJS.Timeout | undefined
  const handOn = (): void => {
    stream.write(lines)
    lines = ''
  }
  const gather = (): void => {
    timer = setTimeout(() => {
      timer = undefined
      if (lines === '') return
      handOn()
      gather()
    }, gatherMs)
  }
  return {
    write: (line) => {
      lines += line
      if (timer && lines.length < mostCharacters) return
      handOn()
      if (!timer) gather()
    },
    flush: () => {
      if (lines !== '') handOn()
    },
  }
}
