import { lstatSync, unlinkSync } from 'node:fs'
import { type Logger, pino } from 'pino'
import { DoorwardError } from '../../shared/errors.ts'
import type { Home } from '../../shared/home/home.ts'
import { createLineBuffer, LogFile } from './log-file.ts'

/** The daemon's log: JSON lines, never a secret, payload, prompt or answer. */
export type Log = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>

export type OpenLog = {
  readonly log: Log
  /** Resolves once everything is written. */
  readonly close: () => Promise<void>
}

/** Opens the log of a home. If the disk fails, the daemon continues without a log and reports it once. */
export const openLog = (home: Home, level = 'info'): OpenLog => {
  removePlanted(home.log)
  const file = new LogFile(
    home,
    (reason) => void process.stderr.write(`doorward: cannot write the log: ${reason}\n`),
    resumed,
  )
  const lines = createLineBuffer(file)
  const log = pino(
    { level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` },
    lines,
  )
  return {
    log,
    close: async () => {
      lines.flush()
      await file.close()
    },
  }
}

/**
 * Removes a link, a pipe or another user's file of this name, planted while the home was open to others: it
 * would redirect the log. The folder of logs may be a link.
 */
const removePlanted = (path: string): void => {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (!found || found.isDirectory()) return
  const isOurs = process.platform === 'win32' || found.uid === process.getuid?.()
  if (!found.isFile() || !isOurs) unlinkSync(path)
}

const resumed = (failedAt: Date): string => {
  const msg = 'the log could not be written, lines are missing'
  const time = new Date().toISOString()
  return `${JSON.stringify({ level: 40, time, since: failedAt.toISOString(), msg })}\n`
}

const minuteMs = 60_000

/** Writes what others can cause without end at most once a minute, with how often that was since the last line. */
export const oncePerMinute = (write: (count: number) => void): (() => void) => {
  let count = 0
  let writtenAt = -Infinity
  return () => {
    count += 1
    if (performance.now() - writtenAt < minuteMs) return
    writtenAt = performance.now()
    write(count)
    count = 0
  }
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** The level in `DOORWARD_LOG_LEVEL`, by default `info`. Throws `config-invalid` for an unknown level. */
export const getLogLevel = (env: NodeJS.ProcessEnv): string => {
  const level = env['DOORWARD_LOG_LEVEL'] || 'info'
  if (logLevels.includes(level)) return level
  throw new DoorwardError('config-invalid', 'DOORWARD_LOG_LEVEL is not a log level', {
    hint: `set it to one of ${logLevels.join(', ')}`,
  })
}
