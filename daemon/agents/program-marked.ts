import { readFileSync, readdirSync } from 'node:fs'
import { isLeader, startOf } from '../../shared/home/lock.ts'

/** The variable that every agent program has its mark in. */
export const markVariable = 'DOORWARD_RUN'

/**
 * The number of the program that was started with this mark; undefined where there is none, or the system
 * does not tell (all but Linux). Its children have the mark too: it leads its group, and was there first.
 */
export const programMarked = (mark: string): number | undefined => {
  const leaders = processes().filter(
    (pid) => pid !== process.pid && isLeader(pid) && hasMark(pid, mark),
  )
  return leaders.toSorted((a, b) => Number(startOf(a)) - Number(startOf(b)))[0]
}

const processes = (): number[] => {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isSafeInteger)
  } catch {
    return []
  }
}

const hasMark = (pid: number, mark: string): boolean => {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0')
    return variables.includes(`${markVariable}=${mark}`)
  } catch {
    // It has ended meanwhile, or is another user's.
    return false
  }
}
