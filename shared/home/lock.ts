import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { DoorwardError, systemCode } from '../errors.ts'
import { type Home, systemReason } from './home.ts'

/** `config` is held by a command while it adds to the configuration. */
type Locked = 'daemon' | 'tray' | 'config'

/**
 * Makes this process the only daemon, or the only tray, of a home, by `run/daemon.lock` or
 * `run/tray.lock`. A lock whose process has gone, even by SIGKILL, is taken over. Throws
 * `already-running` with the pid, `home-unusable` where the file system cannot do it. Returns how to let
 * go.
 */
export const lockHome = async (home: Home, what: Locked = 'daemon'): Promise<() => Promise<void>> =>
  (await acquireLock(home, what)).letGo

/** A lock that is held, and can be passed on to another process without being free in between. */
export type HomeLock = {
  readonly letGo: () => Promise<void>
  readonly isHeld: () => Promise<boolean>
  /** From then on it is that of the process that has made this text. Throws what the disk refuses. */
  readonly passTo: (holding: string) => Promise<void>
}

/** What the lock says while this process holds it; another text each time. */
export const newLockToken = (): string =>
  `${process.pid} ${readStartTime(process.pid) ?? '?'} ${randomBytes(6).toString('hex')}`

const getLockPath = (home: Home, what: Locked): string => join(home.run, `${what}.lock`)

/** A file of this process beside a lock: its name says whose it is before anything is written into it. */
const claimPath = (path: string): string =>
  `${path}.${process.pid}-${randomBytes(6).toString('hex')}`

const held = (path: string, mine: string): HomeLock => ({
  letGo: async () => letGo(path, mine),
  isHeld: async () => (await readContent(path)) === mine,
  passTo: async (holding) => {
    const unique = claimPath(path)
    await writeFile(unique, holding, { mode: 0o600, flag: 'wx' })
    try {
      // As long as its process lives nobody else replaces it.
      if ((await readContent(path)) !== mine)
        throw new DoorwardError('already-running', `${path} is not ours any more`)
      await rename(unique, path)
    } finally {
      await unlink(unique).catch(() => undefined)
    }
  },
})

/** As `lockHome`, with the lock itself; one that was passed to us under `mine` is held already. */
export const acquireLock = async (
  home: Home,
  what: Locked = 'daemon',
  mine = newLockToken(),
): Promise<HomeLock> => {
  const path = getLockPath(home, what)
  try {
    // After a crash one try is enough; more are needed only while others do the same.
    for (let tries = 0; tries < 100; tries += 1) {
      const holder = await acquire(path, mine)
      if (holder === mine) return held(path, mine)
      if (holder !== undefined)
        throw new DoorwardError(
          'already-running',
          heldBy(what, parsePid(holder), home),
          what === 'daemon' ? { hint: 'doorward daemon status, or doorward daemon restart' } : {},
        )
      await setTimeout(20)
    }
  } catch (error) {
    if (error instanceof DoorwardError) throw error
    throw new DoorwardError('home-unusable', `cannot lock ${path}: ${systemReason(error)}`, {
      cause: error,
      hint: 'name a home on a disk with hard links with DOORWARD_HOME',
    })
  }
  throw new DoorwardError('already-running', `cannot take ${path}: others start at the same time`)
}

const heldBy = (what: Locked, pid: string, { root }: Home): string =>
  what === 'config'
    ? `another command (pid ${pid}) adds to the configuration of ${root} just now`
    : `a ${what} with pid ${pid} already runs on ${root}`

/**
 * Who holds the lock now: `mine` when we got it, another that lives, or undefined when it changes
 * hands just now. A stale lock may be replaced only by who holds the lock on doing so, named after
 * the stale one: without it, of two that saw the same stale lock the slower would remove the lock of
 * the quicker. That second lock is made and, after a crash, taken over in the same way.
 */
const acquire = async (path: string, mine: string): Promise<string | undefined> => {
  const unique = claimPath(path)
  try {
    // A full disk takes the name and not the content.
    await writeFile(unique, mine, { mode: 0o600, flag: 'wx' })
    if (await linked(unique, path)) return mine
    const holder = await readContent(path)
    if (holder === undefined) return undefined
    if (isHeld(holder)) return holder
    const claim = `${path}.after-${getNonce(holder)}`
    if ((await acquire(claim, mine)) !== mine) return undefined
    try {
      // Only the holder of this claim replaces that lock, so what is seen here stays so.
      if ((await readContent(path)) !== holder) return undefined
      await rename(unique, path)
      return mine
    } finally {
      await letGo(claim, mine)
    }
  } finally {
    await unlink(unique).catch(() => undefined)
  }
}

const parsePid = (holder: string): string => holder.split(' ')[0] ?? ''

/** Names one holding of a lock; what is no lock of ours is named by all of it. */
const getNonce = (holder: string): string =>
  createHash('sha256').update(holder).digest('hex').slice(0, 12)

/** Creates the lock with its content in one step: no one sees it empty. */
const linked = async (from: string, path: string): Promise<boolean> => {
  try {
    await link(from, path)
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

const letGo = async (path: string, mine: string): Promise<void> => {
  if ((await readContent(path)) === mine) await unlink(path).catch(() => undefined)
}

const readContent = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

/** The process that holds a lock of this home now, or undefined when none does. Never throws. */
export const readLockOwner = async (home: Home, what: Locked): Promise<number | undefined> => {
  const holder = await readContent(getLockPath(home, what)).catch(() => undefined)
  return holder !== undefined && isHeld(holder) ? Number(parsePid(holder)) : undefined
}

/** True while the process that has written this into a lock lives. */
export const isHeld = (holder: string): boolean => {
  const [pidText = '', start = '?'] = holder.split(' ')
  const pid = Number(pidText)
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isAlive(pid)) return false
  // The number may have been given to another process since: then its start differs.
  const now = readStartTime(pid)
  return start === '?' || now === undefined || now === start
}

/**
 * True while a process of this number exists and has not ended. One that has ended keeps its number
 * until its parent asks for its exit code, which in a container without an init is never.
 */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) === 'EPERM'
  }
  return !/^[ZX]/.test(readStat(pid)?.state ?? '')
}

/** When a process started, or undefined where the system does not tell: with its number, who it is. */
export const readStartTime = (pid: number): string | undefined => readStat(pid)?.start

/**
 * True while the process that started then is alive; where the system does not tell when, one of that
 * number is taken for it.
 */
export const isSameProcess = ({ pid, start }: { pid: number; start?: string }): boolean =>
  isAlive(pid) && (start === undefined || readStartTime(pid) === start)

/** True for a process that leads a group; false where the system does not tell. */
export const isGroupLeader = (pid: number): boolean => readStat(pid)?.group === String(pid)

/** State of a process, its group, and when it started, in ticks since boot (proc(5), fields 3, 5 and 22 of stat); Linux only. */
const readStat = (pid: number): { state?: string; group?: string; start?: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], group: fields[2], start: fields[19] }
  } catch {
    return undefined
  }
}
