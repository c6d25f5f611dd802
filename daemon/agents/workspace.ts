import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { isSameProcess, readStartTime } from '../../shared/home/lock.ts'

/** What the folders are called that agents without a `cwd` work in. */
const folderPrefix = 'doorward-agent-'

const sharedMemory = '/dev/shm'

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

const parents = (): string[] => [...new Set([tmpdir(), memoryFolder()])]

/** This process, as names of folders have it. */
let ourselves: string | undefined

/**
 * Makes an empty folder (0700) for one run of an agent. Its name says which process made it: should that be
 * killed before anything else tells of the folder, the next daemon knows that nobody needs it.
 */
export const makeAgentFolder = async (parent: string): Promise<string> => {
  ourselves ??= `${process.pid}-${readStartTime(process.pid) ?? 'x'}-${processSpace()}`
  return mkdtemp(join(parent, `${folderPrefix}${ourselves}-`))
}

export const isAgentFolder = (folder: string): boolean =>
  parents().includes(dirname(folder)) && basename(folder).startsWith(folderPrefix)

/** Removes those of this user whose maker has ended, whichever home it had. Throws nothing. */
export const removeLeftFolders = async (): Promise<void> => {
  for (const parent of parents())
    for (const name of namesIn(parent))
      if (isLeft(name) && isOurFolder(join(parent, name)))
        await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined)
}

const isLeft = (name: string): boolean => {
  if (!name.startsWith(folderPrefix)) return false
  const [pid, start, space, ...more] = name.slice(folderPrefix.length).split('-')
  if (more.length !== 1 || !/^\d+$/.test(pid ?? '') || space !== processSpace()) return false
  const maker = { pid: Number(pid), ...(start !== undefined && start !== 'x' && { start }) }
  return !isSameProcess(maker)
}

const namesIn = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** Others may plant what they like there, but not in our name. */
const isOurFolder = (path: string): boolean => {
  try {
    const found = lstatSync(path)
    return found.isDirectory() && found.uid === (process.getuid?.() ?? found.uid)
  } catch {
    return false
  }
}

/** Containers may share a folder: what has ended here may be alive there under another number. */
const processSpace = (): string => {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 'x'
  } catch {
    return 'x'
  }
}
