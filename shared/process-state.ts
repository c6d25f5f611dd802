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

/** State of a process and when it started, in ticks since boot (proc(5), fields 3 and 22 of stat); Linux only. */
const statOf = (pid: number): { state?: string; start?: string } | undefined => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return { state: fields[0], start: fields[19] }
  } catch {
    return undefined
  }
}
