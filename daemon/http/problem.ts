import { STATUS_CODES } from 'node:http'
import type { ProblemDocument } from '../../shared/api.ts'
import { errorStatuses } from '../../shared/errors.ts'
import { knownError } from '../util/assets.ts'

/**
 * Turns any thrown value into an RFC 9457 document. A `DoorwardError` keeps its message; anything
 * else becomes `internal` without its message, since other errors can contain tokens.
 */
export const toProblem = (error: unknown): ProblemDocument => {
  const known = knownError(error)
  const status = errorStatuses[known.code]
  return {
    type: `urn:doorward:problem:${known.code}`,
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail: known.message,
    code: known.code,
    ...(known.hint === undefined ? {} : { hint: known.hint }),
    ...(known.about === undefined ? {} : { about: known.about }),
  }
}

export const problemMediaType = 'application/problem+json; charset=utf-8'
