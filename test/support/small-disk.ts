import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from './temporary.ts'

/** A folder on a disk that can be filled and made read-only. */
export type SmallDisk = {
  readonly folder: string
  /** False where limits play the disk. */
  readonly isMounted: boolean
  /** False where they cannot: root may write whatever the modes are. */
  readonly canBeReadOnly: boolean
  /** The process of this number can write nothing more to it; `free` ends that. */
  readonly fill: (pid: number) => Promise<void>
  readonly free: (pid: number) => Promise<void>
  readonly makeReadOnly: () => Promise<void>
  readonly makeWritable: () => Promise<void>
  readonly close: () => Promise<void>
}

/**
 * A real small disk (tmpfs) in a mount namespace of its own, which root has and most systems give to every
 * user. Where they do not, a disk that is full is a limit of file sizes instead (`EFBIG` for `ENOSPC`), and
 * read-only are the modes of the folders: the tests are the same.
 */
export const makeSmallDisk = async (): Promise<SmallDisk> => {
  const folder = await temporaryFolder()
  const keeper = await keepMounted(folder)
  return keeper ? mounted(keeper, folder) : limited(folder)
}

const isRoot = process.getuid?.() === 0
const ownNamespaces = isRoot ? ['--mount'] : ['--user', '--map-root-user', '--mount']

/** A process that keeps the disk mounted, or undefined where that is not allowed. */
const keepMounted = async (folder: string): Promise<ChildProcess | undefined> => {
  if (process.env['DOORWARD_FAULTS_NO_MOUNT'] !== undefined) return undefined
  const script =
    'mount -t tmpfs -o size=1m,mode=700 none "$1" && echo mounted && exec sleep infinity'
  const keeper = spawn('unshare', [...ownNamespaces, 'sh', '-c', script, 'sh', folder], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const isMounted = await Promise.race([
    once(keeper.stdout, 'data').then(() => true),
    once(keeper, 'exit').then(() => false),
    once(keeper, 'error').then(() => false),
  ])
  keeper.stdout.destroy()
  if (isMounted) return keeper
  console.error(`no disk can be mounted here: limits of the system play a full one`)
  return undefined
}

const mounted = (keeper: ChildProcess, place: string): SmallDisk => {
  // What another mount namespace sees.
  const folder = `/proc/${keeper.pid}/root${place}`
  const filler = join(folder, 'filler')
  let isCovered = false
  const there = (...command: readonly string[]): void => {
    const into = isRoot ? [] : ['--user', '--preserve-credentials']
    execFileSync('nsenter', ['--target', String(keeper.pid), '--mount', ...into, ...command])
  }
  return {
    folder,
    isMounted: true,
    canBeReadOnly: true,
    fill: async () => {
      await writeFile(filler, Buffer.alloc(2 ** 21)).catch(() => undefined)
    },
    free: async () => rm(filler, { force: true }),
    makeReadOnly: async () => {
      // The disk itself stays as it is while a file on it is open: it is covered by a view of it.
      there('mount', '--bind', place, place)
      there('mount', '-o', 'remount,bind,ro', place)
      isCovered = true
    },
    makeWritable: async () => {
      // Whoever looks at it this very moment keeps it busy.
      if (isCovered) there('umount', '--lazy', place)
      isCovered = false
    },
    close: async () => {
      const gone = once(keeper, 'exit')
      keeper.kill('SIGKILL')
      await gone
    },
  }
}

const limited = (folder: string): SmallDisk => {
  const limit = (pid: number, bytes: string): void => {
    const { status } = spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`])
    if (status !== 0) throw new Error('the limit of file sizes cannot be set')
  }
  const change = async (folderMode: number, fileMode: number): Promise<void> => {
    await chmod(folder, 0o700)
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    for (const entry of entries.toReversed())
      await chmod(join(entry.parentPath, entry.name), entry.isDirectory() ? folderMode : fileMode)
    await chmod(folder, folderMode)
  }
  return {
    folder,
    isMounted: false,
    canBeReadOnly: !isRoot,
    fill: async (pid) => limit(pid, '0'),
    free: async (pid) => limit(pid, 'unlimited'),
    makeReadOnly: () => change(0o500, 0o400),
    makeWritable: () => change(0o700, 0o600),
    close: async () => undefined,
  }
}
