import type { ProblemDocument } from './api.ts'
import { DoorwardError, type ErrorCode } from './errors.ts'

/** What an answer of the daemon's local API says; undefined for one without a body. Throws the problem that it is. */
export const answerValue = (status: number, text: string): unknown => {
  if (status < 200 || status >= 300) throw problemOf(status, text)
  if (text === '') return undefined
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new DoorwardError('internal', `the daemon answered ${status} with what is not JSON`)
  }
}

const problemOf = (status: number, text: string): DoorwardError => {
  try {
    const problem = JSON.parse(text) as ProblemDocument
    if (typeof problem.code !== 'string' || typeof problem.detail !== 'string') throw new Error()
    return new DoorwardError(problem.code as ErrorCode, problem.detail, { hint: problem.hint })
  } catch {
    return new DoorwardError('internal', `the daemon answered ${status} without saying why`)
  }
}
