import { accessSync, constants, lstatSync, readdirSync, readlinkSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { isSameProcess, readStartTime } from '../../shared/home/lock.ts'

const folderPrefix = 'doorward-agent-'

const sharedMemory = '/dev/shm'

/**
 * A folder for temporary files in memory, or the usual one where the system has none. For programs that
 * write prompts to disk whatever their flags.
 */
export const getMemoryFolder = (): string => {
  try {
    accessSync(sharedMemory, constants.W_OK)
    return sharedMemory
  } catch {
    return tmpdir()
  }
}

const getParents = (): string[] => [...new Set([tmpdir(), getMemoryFolder()])]

/** This process in the name of a folder. */
let ownName: string | undefined

/**
 * Makes an empty folder (0700) for one run of an agent. Its name identifies this process, so that the next
 * daemon can remove the folder if this one is killed.
 */
export const makeAgentFolder = async (parent: string): Promise<string> => {
  ownName ??= `${process.pid}-${readStartTime(process.pid) ?? 'x'}-${getPidNamespace()}`
  return mkdtemp(join(parent, `${folderPrefix}${ownName}-`))
}

export const isAgentFolder = (folder: string): boolean =>
  getParents().includes(dirname(folder)) && basename(folder).startsWith(folderPrefix)

/** Removes this user's folders of processes that have exited, whatever their home. Throws nothing. */
export const removeOrphanedFolders = async (): Promise<void> => {
  for (const parent of getParents())
    for (const name of listFolder(parent))
      if (isOrphaned(name) && isOwnFolder(join(parent, name)))
        await rm(join(parent, name), { recursive: true, force: true }).catch(() => undefined)
}

const isOrphaned = (name: string): boolean => {
  if (!name.startsWith(folderPrefix)) return false
  const [pid, start, namespace, ...more] = name.slice(folderPrefix.length).split('-')
  if (more.length !== 1 || !/^\d+$/.test(pid ?? '') || namespace !== getPidNamespace()) return false
  return !isSameProcess({
    pid: Number(pid),
    ...(start !== undefined && start !== 'x' && { start }),
  })
}

const listFolder = (folder: string): string[] => {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

/** False for links, and for folders of other users. */
const isOwnFolder = (path: string): boolean => {
  try {
    const stats = lstatSync(path)
    return stats.isDirectory() && stats.uid === (process.getuid?.() ?? stats.uid)
  } catch {
    return false
  }
}

/** Containers may share a folder but not their pids: a pid means something in one namespace only. */
const getPidNamespace = (): string => {
  try {
    return /\d+/.exec(readlinkSync('/proc/self/ns/pid'))?.[0] ?? 'x'
  } catch {
    return 'x'
  }
}
