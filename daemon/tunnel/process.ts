import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  closeSync,
  fstatSync,
  openSync,
  readSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { type TunnelName, tunnelPrograms } from '../../shared/api/tunnel.ts'
import { writeFileAtomic } from '../../shared/home/files.ts'
import type { Home } from '../../shared/home/home.ts'
import { isAlive, readStartTime } from '../../shared/home/lock.ts'
import type { Place } from './programs.ts'

/*
 * A program that outlives a daemon that was killed, or that a restart replaced: the next one finds it by its
 * pid and start time, and goes on with it, so that the address stays. So it writes into a file, not a pipe.
 */

export type TunnelProcess = {
  readonly pid: number
  /** Undefined where no system call tells it: then only the daemon that started it knows it. */
  readonly start?: string | undefined
  readonly child?: ChildProcess
}

export const startProcess = (
  { path, env }: Place,
  args: readonly string[],
  logFile: string,
): TunnelProcess | undefined => {
  writeFileSync(logFile, '', { mode: 0o600 })
  const log = openSync(logFile, 'a')
  const child = spawn(path, args, {
    cwd: homedir(),
    env,
    stdio: ['ignore', log, log],
    detached: process.platform !== 'win32',
    windowsHide: true,
  })
  closeSync(log)
  // The program counts as ended then.
  child.on('error', () => undefined)
  child.unref()
  return child.pid === undefined ? undefined : { pid: child.pid, start: getStart(child.pid), child }
}

export const isRunning = ({ pid, start, child }: TunnelProcess): boolean =>
  child
    ? child.exitCode === null && child.signalCode === null
    : start !== undefined && isAlive(pid) && getStart(pid) === start

/** SIGTERM to its group, SIGKILL after 5 s. */
export const endProcess = async (own: TunnelProcess): Promise<void> => {
  for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
    if (!isRunning(own)) return
    try {
      if (process.platform === 'win32') own.child?.kill(signal)
      else process.kill(-own.pid, signal)
    } catch {
      return
    }
    for (let tries = 0; tries < 100 && isRunning(own); tries += 1) await delay(50)
  }
}

const mostRead = 128 * 1024
const mostKept = 1024 * 1024

/** Its end: it is read again each moment while an address is waited for. */
export const readOutput = (logFile: string): string => {
  try {
    const file = openSync(logFile, 'r')
    try {
      const bytes = Buffer.alloc(mostRead)
      const from = Math.max(0, fstatSync(file).size - mostRead)
      return bytes.toString('utf8', 0, readSync(file, bytes, 0, mostRead, from))
    } finally {
      closeSync(file)
    }
  } catch {
    return ''
  }
}

/** Some programs write a line for each request. */
export const clearOutput = (logFile: string): void => {
  try {
    truncateSync(logFile)
  } catch {
    // A program that somebody else started has no such file.
  }
}

/** While nothing arrives the output is kept, as it may say why; but not without end. */
export const trimOutput = (logFile: string): void => {
  if ((statSync(logFile, { throwIfNoEntry: false })?.size ?? 0) > mostKept) clearOutput(logFile)
}

/** macOS has no /proc. */
const getStart = (pid: number): string | undefined => {
  const start = readStartTime(pid)
  if (start !== undefined || process.platform === 'win32') return start
  try {
    const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' }
    return execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      env,
      encoding: 'utf8',
    }).trim()
  } catch {
    return undefined
  }
}

/** `run/tunnel.json`, there until the tunnel is stopped: the next daemon opens it again. */
export type TunnelRecord = {
  readonly program: TunnelName
  /** The process of the program. */
  readonly pid?: number
  readonly start?: string | undefined
  readonly target?: string
  readonly url?: string | undefined
}

export const writeRecord = async ({ run }: Home, record: TunnelRecord): Promise<void> =>
  writeFileAtomic(join(run, 'tunnel.json'), `${JSON.stringify(record)}\n`)

export const readRecord = async ({ run }: Home): Promise<TunnelRecord | undefined> => {
  try {
    const text = await readFile(join(run, 'tunnel.json'), 'utf8')
    const record = JSON.parse(text) as TunnelRecord
    return tunnelPrograms.includes(record.program) ? record : undefined
  } catch {
    return undefined
  }
}
