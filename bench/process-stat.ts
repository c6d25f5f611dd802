import { readFile, readdir } from 'node:fs/promises'

/* What Linux knows of a process: proc(5). */

/** Of the clock that processor time is counted by. */
export const tickMs = 10

/** Processor time of a process and its threads so far, in ms, in steps of 10; of ended children too. */
export const processorMs = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  // The name before the last parenthesis may hold anything.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  // utime, stime, cutime, cstime
  return [11, 12, 13, 14].reduce((sum, place) => sum + Number(fields[place]), 0) * tickMs
}

/** Resident memory now and at its highest, in MB (1,000,000 bytes). */
export const memoryOf = async (pid: number): Promise<{ readonly now: number; peak: number }> => {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  const field = (name: string) =>
    (Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1024) / 1e6
  return { now: field('VmRSS'), peak: field('VmHWM') }
}

/** How many children a process has now, ended ones that it has not asked about included. */
export const childCount = async (pid: number): Promise<number> => {
  const threads = await readdir(`/proc/${pid}/task`)
  const lists = await Promise.all(
    threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/children`, 'utf8').catch(() => ''),
    ),
  )
  return lists.flatMap((list) => list.split(' ').filter((child) => child !== '')).length
}
