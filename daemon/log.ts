import { lstatSync, unlinkSync } from 'node:fs'
import { type Logger, pino, stdTimeFunctions } from 'pino'
import { createStream } from 'rotating-file-stream'
import type { Home } from '../shared/home.ts'
import { createLineBuffer } from './line-buffer.ts'

/** The daemon's log: JSON lines, never a secret, payload, prompt or answer. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export type OpenLog = {
  readonly log: Log
  /** Ends once everything is written. */
  readonly close: () => Promise<void>
}

/** Opens `logs/daemon.log` (0600), rotated at 10 MB, four old files kept. */
export const openLog = (home: Home, level = 'info'): OpenLog => {
  removePlanted(home.log)
  const name = (time: number | Date | null, index = 1) =>
    time === null ? 'daemon.log' : `daemon.log.${index}`
  const stream = createStream(name, {
    path: home.logs,
    size: '10M',
    rotate: 4,
    mode: 0o600,
  })
  // A full disk must not end the daemon; it goes on without a log and says so once.
  let told = false
  const complain = (error: Error) => {
    if (told) return
    told = true
    process.stderr.write(`doorward: cannot write the log: ${error.message}\n`)
  }
  stream.on('error', complain)
  stream.on('warning', complain)
  const lines = createLineBuffer(stream)
  const log = pino({ level, base: null, timestamp: stdTimeFunctions.isoTime }, lines)
  return {
    log,
    close: async () => {
      lines.flush()
      await new Promise<void>((resolve) => stream.end(() => resolve()))
    },
  }
}

/**
 * A link, a pipe or another user's file under this name is from a time when the home was open to others:
 * it would lead the log elsewhere. The whole folder of logs may be a link.
 */
const removePlanted = (path: string): void => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found || found.isDirectory()) return
  const isOurs = process.platform === 'win32' || found.uid === process.getuid?.()
  if (!found.isFile() || !isOurs) unlinkSync(path)
}
