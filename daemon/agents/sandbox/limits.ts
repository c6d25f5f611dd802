import { randomUUID } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Limits } from '../../../shared/agents/limits.ts'
import { systemCode } from '../../../shared/errors.ts'

/*
 * Bounds of a run in a sandbox on Linux. Files have a largest size by the kernel (setrlimit(2), RLIMIT_FSIZE), and
 * folders in memory have one too. Processes and memory are counted from outside, several times a second; a
 * burst of processes is stopped by the kernel, which counts threads. Its limit of addresses (RLIMIT_AS)
 * stops programs that reserve more than they use, such as Node.
 */

const everyMs = 250
/** The second and third number of /proc/<pid>/statm are in pages. */
const pageBytes = 4096
/** What the kernel counts is threads, and a program of Node has a dozen. */
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
  readonly close: () => void
}

const noGroup: Group = { words: [], close: () => undefined }

/** Where root may make a group that counts threads: version 1 of control groups, and version 2 (cgroups(7)). */
const groupFolders = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup']

/** For root, whose processes the limit of the shell does not count: a burst of them would come before the watch. */
export const openGroup = ({ processes }: Limits): Group => {
  if (process.getuid?.() !== 0) return noGroup
  for (const parent of groupFolders) {
    const folder = join(parent, `doorward-${process.pid}-${randomUUID()}`)
    try {
      mkdirSync(folder)
      writeFileSync(join(folder, 'pids.max'), String(processes * threadsOfProcess))
      const enter = 'echo $$ >"$1"; shift; exec "$@"'
      return {
        words: ['/bin/sh', '-c', enter, 'group', join(folder, 'cgroup.procs')],
        close: () => removeGroup(folder),
      }
    } catch {
      removeGroup(folder)
    }
  }
  return noGroup
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

export type ReachedLimit = 'memory' | 'processes'

/** Counts the processes below this one, and their memory, until it is stopped; calls once when there is too much. */
export const watchLimits = (
  pid: number,
  limits: Limits,
  onReached: (limit: ReachedLimit) => void,
): (() => void) => {
  const timer = setInterval(() => {
    const limit = findReached(pid, limits)
    if (limit === undefined) return
    clearInterval(timer)
    onReached(limit)
  }, everyMs)
  timer.unref()
  return () => clearInterval(timer)
}

const findReached = (root: number, { memory, processes }: Limits): ReachedLimit | undefined => {
  const pids = [root]
  let bytes = 0
  // It grows while it is read.
  for (const pid of pids) {
    pids.push(...listChildren(pid))
    if (pids.length > processes) return 'processes'
    bytes += readMemory(pid)
  }
  return bytes > memory ? 'memory' : undefined
}

/** A process may end at any time. */
const readProc = (path: string): string => {
  try {
    return readFileSync(`/proc/${path}`, 'latin1')
  } catch {
    return ''
  }
}

/** Processes that its threads have started, or got when their parent ended (proc_pid_task(5)). */
const listChildren = (pid: number): number[] =>
  listThreads(pid).flatMap((thread) =>
    readProc(`${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number),
  )

const listThreads = (pid: number): string[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

/** Without what it shares, such as its program. */
const readMemory = (pid: number): number => {
  const [, resident = 0, shared = 0] = readProc(`${pid}/statm`).split(' ').map(Number)
  return (resident - shared) * pageBytes
}
