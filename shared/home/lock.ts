import { createHash, randomBytes } from 'node:crypto'
import { promises as files, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, prepareHome, systemReason } from './home.ts'

/** `config` is taken by a command while it adds to the configuration. */
type LockName = 'daemon' | 'tray' | 'config'

/** A lock of this process, which can be given to another process without being free in between. */
export type HomeLock = {
  readonly release: () => Promise<void>
  readonly isOurs: () => Promise<boolean>
  /** Gives the lock to the process that made this token. Throws what the disk refuses. */
  readonly transferTo: (token: string) => Promise<void>
}

/**
 * Makes this process the only daemon, or the only tray, of a home, by `run/daemon.lock` or
 * `run/tray.lock`. Replaces a lock whose process no longer runs, even after SIGKILL. Throws
 * `already-running` with the pid, `home-unusable` where the file system cannot do it. Returns the release.
 */
export const lockHome = async (
  home: Home,
  name: LockName = 'daemon',
): Promise<() => Promise<void>> => (await acquireLock(home, name)).release

/** The content of a lock: its process, and a nonce that is new each time. */
export const newLockToken = (): string =>
  `${process.pid} ${readStartTime(process.pid) ?? '?'} ${randomBytes(6).toString('hex')}`

/** As `lockHome`, with the lock itself. A lock that was transferred to `token` is already acquired. */
export const acquireLock = async (
  home: Home,
  name: LockName = 'daemon',
  token = newLockToken(),
): Promise<HomeLock> => {
  const path = getLockPath(home, name)
  try {
    // One try is enough, even after a crash, unless other processes try at the same time.
    for (let tries = 0; tries < 100; tries += 1) {
      const owner = await tryAcquire(path, token)
      if (owner === token) return createLock(path, token)
      if (owner !== undefined)
        throw new DoorwardError(
          'already-running',
          name === 'config'
            ? `another command (pid ${parsePid(owner)}) is changing the configuration of ${home.root}`
            : `a ${name} with pid ${parsePid(owner)} already runs on ${home.root}`,
          name === 'daemon' ? { hint: 'doorward daemon status, or doorward daemon restart' } : {},
        )
      await setTimeout(20)
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('home-unusable', `cannot lock ${path}: ${systemReason(error)}`, {
      cause: error,
      hint: 'set DOORWARD_HOME to a folder on a disk that supports hard links',
    })
  }
  throw new DoorwardError('already-running', `cannot lock ${path}: others start at the same time`)
}

const createLock = (path: string, token: string): HomeLock => ({
  release: async () => releaseLock(path, token),
  isOurs: async () => (await readContent(path)) === token,
  transferTo: async (successor) => {
    const unique = uniquePath(path)
    await files.writeFile(unique, successor, { mode: 0o600, flag: 'wx' })
    try {
      // No other process replaces the lock while its own process lives.
      if ((await readContent(path)) !== token)
        throw new DoorwardError('already-running', `${path} now belongs to another process`)
      await files.rename(unique, path)
    } finally {
      await files.unlink(unique).catch(() => undefined)
    }
  },
})

/**
 * The owner of the lock: `token` when we got it, another live process, or undefined when it is just
 * changing. A stale lock may be replaced only by the owner of a second lock, named after the stale one:
 * otherwise, of two processes that saw the same stale lock, the slower would remove the lock of the
 * faster. The second lock is acquired, and after a crash replaced, in the same way.
 */
const tryAcquire = async (path: string, token: string): Promise<string | undefined> => {
  const unique = uniquePath(path)
  try {
    // Written first, then linked: a full disk creates a file but cannot store its content.
    await files.writeFile(unique, token, { mode: 0o600, flag: 'wx' })
    if (await createLink(unique, path)) return token
    const owner = await readContent(path)
    if (owner === undefined) return undefined
    if (isLockOwnerAlive(owner)) return owner
    const claim = `${path}.after-${toDigest(owner)}`
    if ((await tryAcquire(claim, token)) !== token) return undefined
    try {
      // Only the owner of this claim replaces the lock, so this comparison stays valid.
      if ((await readContent(path)) !== owner) return undefined
      await files.rename(unique, path)
      return token
    } finally {
      await releaseLock(claim, token)
    }
  } finally {
    await files.unlink(unique).catch(() => undefined)
  }
}

const releaseLock = async (path: string, token: string): Promise<void> => {
  if ((await readContent(path)) === token) await files.unlink(path).catch(() => undefined)
}

/** Creates the lock and its content in one step: no one can read it empty. */
const createLink = async (from: string, path: string): Promise<boolean> => {
  try {
    await files.link(from, path)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

const getLockPath = (home: Home, name: LockName): string => join(home.run, `${name}.lock`)

/** A temporary file next to a lock. The pid in its name says whose it is while it is empty. */
const uniquePath = (path: string): string =>
  `${path}.${process.pid}-${randomBytes(6).toString('hex')}`

const parsePid = (owner: string): string => owner.split(' ')[0] ?? ''

/** Hashes all of it: the file may not be a lock of ours. */
const toDigest = (owner: string): string =>
  createHash('sha256').update(owner).digest('hex').slice(0, 12)

const readContent = async (path: string): Promise<string | undefined> => {
  try {
    return await files.readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The pid of the live process that owns a lock of this home, or undefined. Never throws. */
export const readLockOwner = async (home: Home, name: LockName): Promise<number | undefined> => {
  const owner = await readContent(getLockPath(home, name)).catch(() => undefined)
  return owner !== undefined && isLockOwnerAlive(owner) ? Number(parsePid(owner)) : undefined
}

/** True while the process that wrote this into a lock is alive. */
export const isLockOwnerAlive = (owner: string): boolean => {
  const [pidText = '', start = '?'] = owner.split(' ')
  const pid = Number(pidText)
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isAlive(pid)) return false
  // The pid may have been reused: then the start time differs.
  const now = readStartTime(pid)
  return start === '?' || now === undefined || now === start
}

/**
 * True while a process of this pid exists and has not exited. An exited process keeps its pid until its
 * parent reads the exit code, which in a container without an init is never.
 */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) === 'EPERM'
  }
  return !/^[ZX]/.test(readStat(pid)?.state ?? '')
}

/** When a process started, or undefined where the system does not say: identifies it together with its pid. */
export const readStartTime = (pid: number): string | undefined => readStat(pid)?.start

/** True while the process that started then is alive. Without a start time the pid decides. */
export const isSameProcess = ({
  pid,
  start,
}: {
  readonly pid: number
  readonly start?: string | undefined
}): boolean => isAlive(pid) && (start === undefined || readStartTime(pid) === start)

/** Fields 3 and 22 of proc(5) stat: state, and start in ticks since boot. Linux only. */
const readStat = (pid: number): { state?: string; start?: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], start: fields[19] }
  } catch {
    return undefined
  }
}

const configTries = 200
const configPauseMs = 50

/**
 * Reads and writes the configuration as the only process that does: of two that add something at the same
 * time the slower would write back what the quicker had not added yet. Waits for another one for 10 s;
 * throws `already-running` with its pid then, and as `prepareHome` does.
 */
export const withConfigLock = async <Value>(
  home: Home,
  work: () => Promise<Value>,
): Promise<Value> => {
  await prepareHome(home)
  const letGo = await lockConfig(home, configTries)
  try {
    return await work()
  } finally {
    await letGo()
  }
}

const lockConfig = async (home: Home, left: number): Promise<() => Promise<void>> => {
  try {
    return await lockHome(home, 'config')
  } catch (error) {
    const isHeld = error instanceof DoorwardError && error.code === 'already-running'
    if (!isHeld || left === 0) throw error
  }
  await setTimeout(configPauseMs)
  return lockConfig(home, left - 1)
}
