import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { isGroupLeader, isSameProcess, readStartTime } from '../../shared/home/lock.ts'
import type { Log } from '../log/log.ts'
import { type ProcessOptions, type ProcessResult, runProcess } from './process.ts'
import { isAgentFolder, removeFolder, removeOrphanedFolders } from './workspace.ts'

/*
 * Agents have their own process groups, so they survive a daemon that is killed. Each running agent has a
 * record in `run/agents`, by which the next daemon finds and kills it. The record is written before the
 * program starts: if the daemon is killed in between, a mark in the environment of the program identifies it.
 */

export type RunOptions = Omit<ProcessOptions, 'onStart'> & {
  /** A folder that is removed afterwards. */
  readonly folder: string | undefined
}

/** Runs a program as `runProcess` does. */
export type RunProcess = (options: RunOptions) => Promise<ProcessResult>

/** The variable in the environment of every agent program. */
const markVariable = 'DOORWARD_RUN'

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
  return async ({ folder, ...options }) => {
    if (options.signal.aborted) return neverStarted
    const mark = `${process.pid}-${process.hrtime.bigint()}`
    const path = join(getRecordFolder(home), `${mark}.json`)
    try {
      // Not recursive: a removed home must not be created again.
      mkdirSync(getRecordFolder(home), { mode: 0o700 })
    } catch {
      // It exists, or cannot be created.
    }
    appendLine(path, { mark, folder, daemon })
    try {
      return await runProcess({
        ...options,
        env: { ...options.env, [markVariable]: mark },
        onStart: (pid) => appendLine(path, { pid, start: readStartTime(pid) }),
      })
    } finally {
      await rm(path, { force: true }).catch(() => undefined)
    }
  }
}

/** Synchronous, as the daemon may be killed at any time. */
const appendLine = (path: string, line: object): void => {
  try {
    appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 })
  } catch {
    // For example on a full disk.
  }
}

/**
 * Kills the agents of a daemon that was killed, with their process groups, and removes their folders. Kills
 * only a process whose start time matches its record, or that has the mark of a record without a pid; on
 * systems that report neither (all but Linux) it kills none. Spares agents of a daemon that still runs, as
 * after a restart. Requires the home's lock.
 */
export const killOrphans = async (home: Home, log: Log): Promise<void> => {
  let killed = 0
  for (const name of await readdir(getRecordFolder(home)).catch(() => [])) {
    const path = join(getRecordFolder(home), name)
    const record = parseRecord(await readFile(path, 'utf8').catch(() => ''))
    if (record.daemon && isSameProcess(record.daemon)) continue
    if (await killGroupOf(record)) killed += 1
    if (record.folder !== undefined && isAgentFolder(record.folder))
      await removeFolder(record.folder).catch(() => undefined)
    await rm(path, { force: true }).catch(() => undefined)
  }
  await removeOrphanedFolders()
  if (killed > 0) log.warn({ agents: killed }, 'killed agents of a daemon that was killed')
}

type ProcessId = { readonly pid: number; readonly start?: string }

type RunRecord = {
  readonly mark?: string
  /** Once it runs. */
  readonly program?: ProcessId | undefined
  readonly folder?: string
  readonly daemon?: ProcessId | undefined
}

const parseRecord = (text: string): RunRecord => {
  const value: Record<string, unknown> = {}
  for (const line of text.split('\n'))
    try {
      Object.assign(value, JSON.parse(line))
    } catch {
      // The empty last line, or one that was cut off.
    }
  const { mark, folder } = value
  return {
    ...(typeof mark === 'string' && { mark }),
    ...(typeof folder === 'string' && { folder }),
    program: parseProcessId(value),
    daemon: parseProcessId(value['daemon']),
  }
}

const parseProcessId = (value: unknown): ProcessId | undefined => {
  const { pid, start } = (value ?? {}) as Record<string, unknown>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1) return undefined
  return { pid, ...(typeof start === 'string' && { start }) }
}

const killGroupOf = async ({ program, mark }: RunRecord): Promise<boolean> => {
  const pid = program ? verifyPid(program) : mark && (await findMarked(mark))
  if (!pid) return false
  try {
    process.kill(-pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}

const verifyPid = ({ pid, start }: ProcessId): number | undefined =>
  start !== undefined && readStartTime(pid) === start ? pid : undefined

const maxAttempts = 5
const attemptMs = 50

/** Tries for a moment: at first, a new process still has the environment of its parent. */
const findMarked = async (mark: string): Promise<number | undefined> => {
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const pid = findGroupLeader(mark)
    if (pid !== undefined) return pid
    if (attempt < maxAttempts) await new Promise((resolve) => setTimeout(resolve, attemptMs))
  }
  return undefined
}

/** The oldest group leader with this mark: its children inherit the mark. */
const findGroupLeader = (mark: string): number | undefined =>
  listProcesses()
    .filter((pid) => pid !== process.pid && isGroupLeader(pid) && hasMark(pid, mark))
    .toSorted((a, b) => Number(readStartTime(a)) - Number(readStartTime(b)))[0]

const listProcesses = (): number[] => {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isSafeInteger)
  } catch {
    return []
  }
}

const hasMark = (pid: number, mark: string): boolean => {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    return variables.includes(`${markVariable}=${mark}`)
  } catch {
    // It has exited, or belongs to another user.
    return false
  }
}
