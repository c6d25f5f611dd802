import { readFileSync } from 'node:fs'
import { systemCode } from './errors.ts'

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
  return !/^[ZX]/.test(statOf(pid)?.state ?? '')
}

/** When a process started, or undefined where the system does not tell: with its number, who it is. */
export const startOf = (pid: number): string | undefined => statOf(pid)?.start

/**
 * True while the process that started then is alive; where the system does not tell when, one of that
 * number is taken for it.
 */
export const isSameProcess = ({ pid, start }: { pid: number; start?: string }): boolean =>
  isAlive(pid) && (start === undefined || startOf(pid) === start)

/** True for a process that leads a group; false where the system does not tell. */
export const isLeader = (pid: number): boolean => statOf(pid)?.group === String(pid)

/** State of a process, its group, and when it started, in ticks since boot (proc(5), fields 3, 5 and 22 of stat); Linux only. */
const statOf = (pid: number): { state?: string; group?: string; start?: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], group: fields[2], start: fields[19] }
  } catch {
    return undefined
  }
}
