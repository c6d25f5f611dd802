import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'

/**
 * Makes this process the only daemon of a home, by `run/daemon.lock`. A lock whose process has gone,
 * even by SIGKILL, is taken over. Throws `already-running` with the pid. Returns how to let go.
 */
export const lockHome = async (home: Home): Promise<() => Promise<void>> => {
  const path = join(home.run, 'daemon.lock')
  const mine = `${process.pid} ${startOf(process.pid) ?? '?'}`
  const unique = `${path}.${process.pid}.${randomBytes(4).toString('hex')}`
  await writeFile(unique, mine, { mode: 0o600 })
  try {
    // Two tries are enough after a crash; more are needed only while others do the same.
    for (let tries = 0; tries < 20; tries += 1) {
      if (await linked(unique, path)) return async () => letGo(path, mine)
      const holder = await contentOf(path)
      if (holder === undefined) continue
      if (isAlive(holder)) {
        const [pid] = holder.split(' ')
        throw new DoorwardError(
          'already-running',
          `a daemon with pid ${pid} already runs on ${home.root}`,
          { hint: 'doorward daemon status, or doorward daemon restart' },
        )
      }
      await takeAway(path, unique, holder)
    }
    throw new DoorwardError('already-running', `cannot take ${path}: others start at the same time`)
  } finally {
    await unlink(unique).catch(() => undefined)
  }
}

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

/** Moves a stale lock aside; one that another process has just made is put back. */
const takeAway = async (path: string, unique: string, stale: string): Promise<void> => {
  const aside = `${unique}.stale`
  try {
    await rename(path, aside)
    if ((await contentOf(aside)) !== stale) await linked(aside, path)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
  } finally {
    await unlink(aside).catch(() => undefined)
  }
}

const letGo = async (path: string, mine: string): Promise<void> => {
  if ((await contentOf(path)) === mine) await unlink(path).catch(() => undefined)
}

const contentOf = async (path: string): Promise<string | undefined> => {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined
    throw error
  }
}

const isAlive = (holder: string): boolean => {
  const [pidText = '', start = '?'] = holder.split(' ')
  const pid = Number(pidText)
  if (!Number.isSafeInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    return systemCode(error) === 'EPERM'
  }
  // The number may have been given to another process since: then its start differs.
  const now = startOf(pid)
  return start === '?' || now === undefined || now === start
}

/** When a process started, in ticks since boot (proc(5), field 22 of stat); Linux only. */
const startOf = (pid: number): string | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch {
    return undefined
  }
}
