import { accessSync, constants, mkdirSync, writeFileSync } from 'node:fs'
import { readFile, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Home } from '../../shared/home.ts'
import { isAlive, startOf } from '../../shared/process-state.ts'
import type { Log } from '../log.ts'

/** What the folders are called that agents without a `cwd` work in. */
export const folderPrefix = 'doorward-agent-'

/**
 * Where temporary files lie in memory alone, as on Linux they can; elsewhere the usual place. For
 * programs that write down what they are told, whatever their flags.
 */
export const memoryFolder = (): string => {
  try {
    accessSync(sharedMemory, constants.W_OK)
    return sharedMemory
  } catch {
    return tmpdir()
  }
}

const sharedMemory = '/dev/shm'

/** Notes that a program runs; returns what takes the note away when it has ended. */
export type NoteRun = (pid: number, folder: string | undefined) => () => Promise<void>

const foldersOf = (home: Pick<Home, 'run'>): string => join(home.run, 'agents')

/**
 * Notes running agents in `run/agents`, one file each, so that the next daemon can end them should this
 * one be killed: they have process groups of their own and live on. Throws nothing: without a note an
 * agent runs as well.
 */
export const noteRuns =
  (home: Pick<Home, 'run'>): NoteRun =>
  (pid, folder) => {
    const path = join(foldersOf(home), `${pid}.json`)
    try {
      mkdirSync(foldersOf(home), { recursive: true, mode: 0o700 })
      // At once, before anything can happen to us.
      const daemon = { pid: process.pid, start: startOf(process.pid) }
      const note = { pid, start: startOf(pid), folder, daemon }
      writeFileSync(path, JSON.stringify(note), { mode: 0o600 })
    } catch {
      return async () => undefined
    }
    return async () => rm(path, { force: true }).catch(() => undefined)
  }

/**
 * Ends the agents that a killed daemon left running, with their process groups, and removes their
 * folders. Only a process that started when the note says is one of them; where the system does not
 * tell (all but Linux) none is ended. Those of a daemon that lives and finishes its work after a restart
 * are left alone. Call it while holding the home's lock.
 */
export const endLeftovers = async (home: Home, log: Log): Promise<void> => {
  let ended = 0
  for (const name of await readdir(foldersOf(home)).catch(() => [])) {
    const path = join(foldersOf(home), name)
    const note = parseNote(await readFile(path, 'utf8').catch(() => ''))
    if (note?.daemon && isSame(note.daemon)) continue
    if (note && killLeftover(note)) ended += 1
    if (note?.folder !== undefined && isAgentFolder(note.folder))
      await rm(note.folder, { recursive: true, force: true }).catch(() => undefined)
    await rm(path, { force: true }).catch(() => undefined)
  }
  if (ended > 0) log.warn({ agents: ended }, 'ended agents of a daemon that was killed')
}

type Noted = { readonly pid: number; readonly start?: string }

type Note = Noted & {
  readonly folder?: string
  /** Who runs it. */
  readonly daemon?: Noted | undefined
}

const parseNote = (text: string): Note | undefined => {
  try {
    const value = JSON.parse(text) as Record<string, unknown>
    const noted = notedIn(value)
    if (!noted) return undefined
    const { folder } = value
    return {
      ...noted,
      ...(typeof folder === 'string' && { folder }),
      daemon: notedIn(value['daemon']),
    }
  } catch {
    return undefined
  }
}

const notedIn = (value: unknown): Noted | undefined => {
  const { pid, start } = (value ?? {}) as Record<string, unknown>
  if (typeof pid !== 'number' || !Number.isSafeInteger(pid) || pid <= 1) return undefined
  return { pid, ...(typeof start === 'string' && { start }) }
}

/** Where the system does not tell when a process started, one of that number is taken for it. */
const isSame = ({ pid, start }: Noted): boolean =>
  isAlive(pid) && (start === undefined || startOf(pid) === start)

const killLeftover = ({ pid, start }: Note): boolean => {
  if (start === undefined || startOf(pid) !== start) return false
  try {
    process.kill(-pid, 'SIGKILL')
    return true
  } catch {
    return false
  }
}

const isAgentFolder = (folder: string): boolean =>
  [tmpdir(), memoryFolder()].includes(dirname(folder)) && basename(folder).startsWith(folderPrefix)
