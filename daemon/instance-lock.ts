import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { link, readFile, rename, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DoorwardError, systemCode } from '../shared/errors.ts'
import type { Home } from '../shared/home.ts'

/*
 * Taking away a stale lock and making a new one are two steps, and whoever comes between them would
 * be a second holder. So nothing is taken away: who finds that the holder has gone links its own file
 * under a name made from the content it saw, and of all that saw the same only one succeeds. The
 * holder is the last of this row. It alone makes the row short again, by renaming itself to its head.
 */

/**
 * Makes this process the only daemon of a home, by `run/daemon.lock`. A lock whose process has gone,
 * even by SIGKILL, is taken over. Throws `already-running` with the pid. Returns how to let go.
 */
export const lockHome = async (home: Home): Promise<() => Promise<void>> => {
  const path = join(home.run, 'daemon.lock')
  const nonce = randomBytes(8).toString('hex')
  // The nonce makes every content, and so every name in a row, one of its kind.
  const mine = `${process.pid} ${startOf(process.pid) ?? '?'} ${nonce}`
  const unique = `${path}.${nonce}`
  await writeFile(unique, mine, { mode: 0o600 })
  try {
    // Two tries are enough after a crash; more are needed only while others do the same.
    for (let tries = 0; tries < 20; tries += 1) {
      const row = await readRow(path)
      if (row.holder !== undefined && isAlive(row.holder)) throw alreadyRunning(row.holder, home)
      if (!(await linked(unique, row.next))) continue
      // The row may have been made short after it was read: then our place is not in it.
      if ((await readRow(path)).holder === mine) {
        if (row.next !== path) await shorten(unique, path, [...row.names, row.next])
        return async () => letGo(path, mine)
      }
      await unlink(row.next).catch(() => undefined)
    }
    throw new DoorwardError('already-running', `cannot take ${path}: others start at the same time`)
  } finally {
    await unlink(unique).catch(() => undefined)
  }
}

type Row = {
  /** Content of the last file, or undefined when there is none. */
  readonly holder: string | undefined
  readonly names: readonly string[]
  /** The name that the next holder has to take. */
  readonly next: string
}

const readRow = async (path: string): Promise<Row> => {
  const names: string[] = []
  let holder: string | undefined
  let next = path
  for (
    let content = await contentOf(next);
    content !== undefined;
    content = await contentOf(next)
  ) {
    holder = content
    names.push(next)
    next = `${path}.after-${createHash('sha256').update(content).digest('hex').slice(0, 16)}`
  }
  return { holder, names, next }
}

const shorten = async (unique: string, path: string, names: readonly string[]): Promise<void> => {
  await rename(unique, path)
  for (const name of names) if (name !== path) await unlink(name).catch(() => undefined)
}

const alreadyRunning = (holder: string, home: Home): DoorwardError =>
  new DoorwardError(
    'already-running',
    `a daemon with pid ${holder.split(' ')[0]} already runs on ${home.root}`,
    { hint: 'doorward daemon status, or doorward daemon restart' },
  )

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
