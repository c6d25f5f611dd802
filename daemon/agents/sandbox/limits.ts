import { randomUUID } from 'node:crypto'
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { Limits } from '../../../shared/agents/limits.ts'
import { systemCode } from '../../../shared/errors.ts'
import { findGroupFolder } from '../../../shared/sandbox/probe.ts'
import { type ReachedLimit, watchDisk } from './disk.ts'

/*
 * Bounds of a run in a sandbox on Linux. Files have a largest size by the kernel (setrlimit(2), RLIMIT_FSIZE), and
 * folders in memory have one too. Processes and memory are counted from outside, several times a second; a
 * burst of processes is stopped by the kernel, which counts threads. Its limit of addresses (RLIMIT_AS)
 * stops programs that reserve more than they use, such as Node. `disk.ts` counts the folders on the disk.
 */

/** The bounds of one run. */
export type Bounds = Limits & {
  /** Those on the disk that it may write to. */
  readonly folders: readonly string[]
  readonly group: Group
}

const everyMs = 250
/** The second and third number of /proc/<pid>/statm are in pages. */
const pageBytes = 4096
/** The kernel counts threads, and a program of Node has a dozen. */
const threadsOfProcess = 8

const script = `
# The kernel ends this run before the daemon where memory is short.
echo 500 2>/dev/null >/proc/self/oom_score_adj
ulimit -c 0
ulimit -f "$1"
# Of threads; the letter depends on the shell.
ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null
shift 2
exec "$@"`

/** The words that start a program with the limits that the kernel holds. The unit of ulimit is 512 bytes (POSIX). */
export const limitBefore = (argv: readonly string[], { disk, processes }: Limits): string[] => [
  '/bin/sh',
  '-c',
  script,
  'limits',
  String(Math.ceil(disk / 512)),
  String(processes * threadsOfProcess),
  ...argv,
]

/** A control group of a run: the words that start a program in it, and its end. */
export type Group = {
  readonly words: readonly string[]
  /** True when the kernel has refused it a process. */
  readonly hasRefused: () => boolean
  readonly close: () => void
}

const noGroup: Group = { words: [], hasRefused: () => false, close: () => undefined }

/** For root, whose processes the limit of the shell does not count: a burst of them would come before the watch. */
export const openGroup = ({ processes }: Limits): Group => {
  const parent = process.getuid?.() === 0 ? findGroupFolder() : undefined
  if (parent === undefined) return noGroup
  const folder = join(parent, `doorward-${process.pid}-${randomUUID()}`)
  try {
    mkdirSync(folder)
    // The kernel has made this file, or there is no such limit.
    writeFileSync(join(folder, 'pids.max'), String(processes * threadsOfProcess), { flag: 'r+' })
  } catch {
    removeGroup(folder)
    return noGroup
  }
  const enter = 'echo $$ >"$1"; shift; exec "$@"'
  return {
    words: ['/bin/sh', '-c', enter, 'group', join(folder, 'cgroup.procs')],
    // `max 3`: how often its limit was reached.
    hasRefused: () => /^max [1-9]/m.test(readText(join(folder, 'pids.events'))),
    close: () => removeGroup(folder),
  }
}

/** It is busy until the kernel has ended all of its processes. */
const removeGroup = (folder: string, attempts = 40): void => {
  try {
    rmdirSync(folder)
  } catch (error) {
    if (systemCode(error) === 'EBUSY' && attempts > 0)
      setTimeout(() => removeGroup(folder, attempts - 1), everyMs).unref()
  }
}

/**
 * Counts the processes below this one, their memory and what the run has written, until it is stopped; calls when
 * there is too much.
 */
export const watchLimits = (
  pid: number,
  bounds: Bounds,
  onReached: (limit: ReachedLimit) => void,
): (() => void) => {
  const timer = setInterval(() => {
    const limit = findReached(pid, bounds)
    if (limit === undefined) return
    stop()
    onReached(limit)
  }, everyMs)
  timer.unref()
  const unwatch = watchDisk({ ...bounds, countRemoved: () => countRemoved(pid) }, () => {
    stop()
    onReached('disk')
  })
  const stop = () => {
    clearInterval(timer)
    unwatch()
  }
  return stop
}

const findReached = (root: number, { memory, processes }: Limits): ReachedLimit | undefined => {
  const pids = listBelow(root, processes)
  if (pids.length > processes) return 'processes'
  return pids.reduce((bytes, pid) => bytes + readMemory(pid), 0) > memory ? 'memory' : undefined
}

/** A process and those below it; no more are read once there are more than `enough`. */
const listBelow = (root: number, enough = Number.POSITIVE_INFINITY): number[] => {
  const pids = [root]
  // It grows while it is read.
  for (const pid of pids) {
    pids.push(...listChildren(pid))
    if (pids.length > enough) break
  }
  return pids
}

/** The kernel marks the names of removed files (proc_pid_fd(5)). */
const countRemoved = (root: number): number => {
  const sizes = new Map<string, number>()
  for (const path of listBelow(root).flatMap((pid) => listFolder(`/proc/${pid}/fd`)))
    try {
      if (!readlinkSync(path).endsWith(' (deleted)')) continue
      const { dev, ino, blocks } = statSync(path)
      sizes.set(`${dev} ${ino}`, blocks * 512)
    } catch {
      // It was closed.
    }
  return [...sizes.values()].reduce((sum, size) => sum + size, 0)
}

/** A process may end at any time. */
const readText = (path: string): string => {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}

/** Processes that its threads have started, or got when their parent ended (proc_pid_task(5)). */
const listChildren = (pid: number): number[] =>
  listFolder(`/proc/${pid}/task`).flatMap((thread) =>
    readText(`${thread}/children`).split(' ').filter(Boolean).map(Number),
  )

const listFolder = (path: string): string[] => {
  try {
    return readdirSync(path).map((name) => join(path, name))
  } catch {
    return []
  }
}

/** Without what it shares, such as its program. */
const readMemory = (pid: number): number => {
  const [, resident = 0, shared = 0] = readText(`/proc/${pid}/statm`).split(' ').map(Number)
  return (resident - shared) * pageBytes
}
