import { mkdirSync, writeFileSync } from 'node:fs'
import { parseJson } from '../util/payload-path.ts'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Home } from '../../shared/home/home.ts'
import { isSameProcess, readStartTime } from '../../shared/home/lock.ts'
import type { Log } from '../log/log.ts'
import { type ProcessOptions, type ProcessResult, runProcess } from './process.ts'
import { removeOrphanedFolders } from './workspace.ts'

/*
 * Agents have their own process groups, so they survive a daemon that is killed. Each running agent has a
 * record in `run/agents`, by which the next daemon finds and kills it.
 */

/** Runs a program as `runProcess` does. */
export type RunProcess = (options: Omit<ProcessOptions, 'onStart'>) => Promise<ProcessResult>

const processSchema = z.object({ pid: z.int().min(2), start: z.string().optional() })
const recordSchema = processSchema.extend({ daemon: processSchema.optional() })

const neverStarted: ProcessResult = {
  reason: 'stopped',
  exitCode: null,
  exitSignal: null,
  stdout: Buffer.alloc(0),
  cut: false,
  stderr: Buffer.alloc(0),
}

const getRecordFolder = (home: Pick<Home, 'run'>): string => join(home.run, 'agents')

/** Runs programs, with a record of each while it runs. A program runs even if no record can be written. */
export const createRecordedRun = (home: Pick<Home, 'run'>): RunProcess => {
  const daemon = { pid: process.pid, start: readStartTime(process.pid) }
  return async (options) => {
    if (options.signal.aborted) return neverStarted
    let path: string | undefined
    try {
      return await runProcess({
        ...options,
        onStart: (pid) => {
          path = join(getRecordFolder(home), `${pid}.json`)
          writeRecord(home, path, { pid, start: readStartTime(pid), daemon })
        },
      })
    } finally {
      if (path !== undefined) await rm(path, { force: true }).catch(() => undefined)
    }
  }
}

/** Synchronous, as the daemon may be killed at any time. */
const writeRecord = (home: Pick<Home, 'run'>, path: string, record: object): void => {
  try {
    // Not recursive: a removed home must not be created again.
    mkdirSync(getRecordFolder(home), { mode: 0o700 })
  } catch {
    // It exists, or cannot be created.
  }
  try {
    writeFileSync(path, JSON.stringify(record), { mode: 0o600 })
  } catch {
    // For example on a full disk.
  }
}

/**
 * Kills the agents of a daemon that was killed, with their process groups, and removes their folders. Kills
 * only a process whose start time matches its record; on systems that do not report it (all but Linux) it
 * kills none. Spares agents of a daemon that still runs, as after a restart. Requires the home's lock.
 */
export const killOrphans = async (home: Home, log: Log): Promise<void> => {
  let agents = 0
  for (const name of await readdir(getRecordFolder(home)).catch(() => [])) {
    const path = join(getRecordFolder(home), name)
    const text = await readFile(path, 'utf8').catch(() => '')
    const { data: record } = recordSchema.safeParse(parseJson(text))
    if (record?.daemon && isSameProcess(record.daemon)) continue
    if (record && killGroupOf(record)) agents += 1
    await rm(path, { force: true }).catch(() => undefined)
  }
  await removeOrphanedFolders()
  if (agents > 0) log.warn({ agents }, 'killed agents of a daemon that was killed')
}

const killGroupOf = ({ pid, start }: z.output<typeof processSchema>): boolean => {
  if (start === undefined || readStartTime(pid) !== start) return false
  try {
    process.kill(-pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}
