import { execFile } from 'node:child_process'
import { accessSync, constants, lstatSync, readdirSync, readlinkSync, statfsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { isAbsolute, join } from 'node:path'
import { promisify } from 'node:util'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { isSameProcess, readStartTime } from '../../shared/home/lock.ts'

const folderPrefix = 'doorward-agent-'

/** Linux, linux/magic.h. */
const tmpfs = 0x01021994

/** Folders that are in memory on a Linux system. The second one ends with the session of the user. */
const listMemoryFolders = (): string[] =>
  ['/dev/shm', process.env['XDG_RUNTIME_DIR'] ?? ''].filter((folder) => {
    try {
      accessSync(folder, constants.W_OK)
      return isAbsolute(folder) && statfsSync(folder).type === tmpfs
    } catch {
      return false
    }
  })

/**
 * A folder for temporary files in memory, or the usual one where the system has none. For the payload of an
 * event, and programs that write prompts to disk whatever their flags.
 */
export const getMemoryFolder = (isUsable: (folder: string) => boolean = () => true): string =>
  listMemoryFolders().find(isUsable) ?? tmpdir()

const getParents = (): string[] => [...new Set([tmpdir(), ...listMemoryFolders()])]

/**
 * Calls with the path of a file that only this user can read (0600), in memory where the system has that,
 * and removes it afterwards. If the daemon is killed, `removeOrphanedFolders` of the next one does.
 */
export const withEventFile = async <Value>(
  payload: Buffer,
  use: (path: string) => Promise<Value>,
): Promise<Value> => {
  let folder: string | undefined
  try {
    const path = await writeEventFile(payload, (made) => (folder = made))
    return await use(path)
  } finally {
    if (folder !== undefined) await removeFolder(folder).catch(() => undefined)
  }
}

const writeEventFile = async (
  payload: Buffer,
  onFolder: (folder: string) => void,
): Promise<string> => {
  const parent = getMemoryFolder()
  try {
    const folder = await makeAgentFolder(parent)
    onFolder(folder)
    const path = join(folder, 'event.json')
    await writeFile(path, payload, { mode: 0o600, flag: 'wx' })
    return path
  } catch (error) {
    const code = systemCode(error) ?? 'unknown reason'
    throw new DoorwardError('agent-failed', `cannot write event_file in ${parent}: ${code}`, {
      cause: error,
      hint: code === 'ENOSPC' ? 'free some memory there, or leave out event_file' : undefined,
    })
  }
}

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

/** Also one in which its agent made folders that cannot be opened, or that lie deeper than a path can say. */
export const removeFolder = async (folder: string): Promise<void> => {
  try {
    await rm(folder, { recursive: true, force: true })
  } catch (error) {
    if (process.platform === 'win32') throw error
    // Neither follows a link.
    await promisify(execFile)('chmod', ['-R', 'u+rwx', folder]).catch(() => undefined)
    await promisify(execFile)('rm', ['-rf', folder])
  }
}

/** Removes this user's folders of processes that have exited, whatever their home. Throws nothing. */
export const removeOrphanedFolders = async (): Promise<void> => {
  for (const parent of getParents())
    for (const name of listFolder(parent))
      if (isOrphaned(name) && isOwnFolder(join(parent, name)))
        await removeFolder(join(parent, name)).catch(() => undefined)
}

/** True for a folder of `makeAgentFolder` whose process has exited. */
export const isOrphaned = (name: string): boolean => {
  if (!name.startsWith(folderPrefix)) return false
  const [pid, start, namespace, ...more] = name.slice(folderPrefix.length).split('-')
  if (more.length !== 1 || !/^\d+$/.test(pid ?? '') || namespace !== getPidNamespace()) return false
  return !isSameProcess({ pid: Number(pid), start: start === 'x' ? undefined : start })
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
