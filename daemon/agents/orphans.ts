import { appendFileSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Home } from '../../shared/home/home.ts'
import { isGroupLeader, isSameProcess, readStartTime } from '../../shared/home/lock.ts'
import type { Log } from '../log/log.ts'
import { type ProcessOptions, type ProcessResult, runProcess } from './process.ts'
import { isAgentFolder, removeOrphanedFolders } from './workspace.ts'

/** Notes a program that is about to start. */
type NoteRun = (folder: string | undefined) => RunNote

type RunNote = {
  /** What its environment is to have under `markVariable`. */
  readonly mark: string
  /** It runs, under this number. */
  readonly started: (pid: number) => void
  /** It has ended, or could not be started. */
  readonly forget: () => Promise<void>
}

const getFolder = (home: Pick<Home, 'run'>): string => join(home.run, 'agents')

/**
 * Notes running agents in `run/agents`, one file each, so that the next daemon can end them should this
 * one be killed: they have process groups of their own and live on. There is a note before there is a
 * process, as we can be killed while it starts: its mark is all that tells of it then. Throws nothing:
 * without a note an agent runs as well.
 */
export const noteRuns = (home: Pick<Home, 'run'>): NoteRun => {
  const daemon = { pid: process.pid, start: readStartTime(process.pid) }
  return (folder) => {
    // Of no two programs the same.
    const mark = `${process.pid}-${process.hrtime.bigint()}`
    const path = join(getFolder(home), `${mark}.json`)
    // At once, before anything can happen to us. A line that is there stays whole.
    const add = (line: object) => {
      try {
        appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 })
      } catch {
        // As on a full disk.
      }
    }
    try {
      // Not what is above it: a home that was removed is not made anew.
      mkdirSync(getFolder(home), { mode: 0o700 })
    } catch {
      // It is there, or nothing can be made: then there is no place for a note.
    }
    add({ mark, folder, daemon })
    return {
      mark,
      started: (pid) => add({ pid, start: readStartTime(pid) }),
      forget: async () => rm(path, { force: true }).catch(() => undefined),
    }
  }
}

/**
 * Ends the agents that a killed daemon left running, with their process groups, and removes their
 * folders. Only a process that started when the note says is one of them, or one that has the mark of a
 * note which says no more; where the system does not tell (all but Linux) none is ended. Those of a daemon
 * that lives and finishes its work after a restart are left alone. Call it while holding the home's lock.
 */
export const endLeftovers = async (home: Home, log: Log): Promise<void> => {
  let ended = 0
  for (const name of await readdir(getFolder(home)).catch(() => [])) {
    const path = join(getFolder(home), name)
    const note = parseNote(await readFile(path, 'utf8').catch(() => ''))
    if (note.daemon && isSameProcess(note.daemon)) continue
    if (await killLeftover(note)) ended += 1
    if (note.folder !== undefined && isAgentFolder(note.folder))
      await rm(note.folder, { recursive: true, force: true }).catch(() => undefined)
    await rm(path, { force: true }).catch(() => undefined)
  }
  await removeOrphanedFolders()
  if (ended > 0) log.warn({ agents: ended }, 'ended agents of a daemon that was killed')
}

type Noted = { readonly pid: number; readonly start?: string }

type Note = {
  readonly mark?: string
  /** Once it runs. */
  readonly program?: Noted | undefined
  readonly folder?: string
  /** Who runs it. */
  readonly daemon?: Noted | undefined
}

/** What its lines say together; one that is cut says nothing. */
const parseNote = (text: string): Note => {
  const value: Record<string, unknown> = {}
  for (const line of text.split('\n'))
    try {
      Object.assign(value, JSON.parse(line))
    } catch {
      // The last one, or none of ours.
    }
  const { mark, folder } = value
  return {
    ...(typeof mark === 'string' && { mark }),
    ...(typeof folder === 'string' && { folder }),
    program: notedIn(value),
    daemon: notedIn(value['daemon']),
  }
}

const notedIn = (value: unknown): Noted | undefined => {
  const { pid, start } = (value ?? {}) as Record<string, unknown>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1) return undefined
  return { pid, ...(typeof start === 'string' && { start }) }
}

const killLeftover = async ({ program, mark }: Note): Promise<boolean> => {
  const pid = program ? sameAs(program) : mark && (await untilFound(mark))
  if (!pid) return false
  try {
    process.kill(-pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}

const sameAs = ({ pid, start }: Noted): number | undefined =>
  start !== undefined && readStartTime(pid) === start ? pid : undefined

const looks = 5
const lookMs = 50

/** For the first moments of its life a process has the environment of the daemon that it was made by. */
const untilFound = async (mark: string): Promise<number | undefined> => {
  for (let look = 1; look <= looks; look += 1) {
    const pid = programMarked(mark)
    if (pid !== undefined) return pid
    if (look < looks) await new Promise((resolve) => setTimeout(resolve, lookMs))
  }
  return undefined
}

/** The variable that every agent program has its mark in. */
const markVariable = 'DOORWARD_RUN'

/**
 * The number of the program that was started with this mark; undefined where there is none, or the system
 * does not tell (all but Linux). Its children have the mark too: it leads its group, and was there first.
 */
const programMarked = (mark: string): number | undefined => {
  const leaders = processes().filter(
    (pid) => pid !== process.pid && isGroupLeader(pid) && hasMark(pid, mark),
  )
  return leaders.toSorted((a, b) => Number(readStartTime(a)) - Number(readStartTime(b)))[0]
}

const processes = (): number[] => {
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
    // It has ended meanwhile, or is another user's.
    return false
  }
}

export type RunOptions = Omit<ProcessOptions, 'onStart'> & {
  /** A folder that is removed after it. */
  readonly folder: string | undefined
}

/** Runs a program as `runProcess` does, which says what it rejects with. */
export type RunProcess = (options: RunOptions) => Promise<ProcessResult>

const neverStarted: ProcessResult = {
  reason: 'stopped',
  exitCode: null,
  exitSignal: null,
  stdout: Buffer.alloc(0),
  cut: false,
  stderr: Buffer.alloc(0),
}

/** Runs programs, with a note of each for as long as it runs. */
export const noteAndRun =
  (noteRun: NoteRun): RunProcess =>
  async ({ folder, ...options }) => {
    if (options.signal.aborted) return neverStarted
    const note = noteRun(folder)
    const env = { ...options.env, [markVariable]: note.mark }
    try {
      return await runProcess({ ...options, env, onStart: note.started })
    } finally {
      await note.forget()
    }
  }
