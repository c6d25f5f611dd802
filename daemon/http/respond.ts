import type { ServerResponse } from 'node:http'
import type { Log } from '../log/log.ts'
import { STATUS_CODES } from 'node:http'
import type { ProblemDocument } from '../../shared/api/api.ts'
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

const jsonMediaType = 'application/json; charset=utf-8'

/** Sends JSON without Koa; `headers` are added to those of the body, or replace them. */
export const sendJson = (
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void => {
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': jsonMediaType,
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  })
  response.end(text)
}

/** Sends a thrown value as a problem document without Koa, and logs an unexpected one. */
export const sendProblem = (
  response: ServerResponse,
  error: unknown,
  { log, path }: { readonly log: Log; readonly path: string },
): void => {
  const problem = toProblem(error)
  if (problem.code === 'internal') logInternal(log, path, error)
  if (!response.destroyed)
    sendJson(response, problem.status, problem, { 'Content-Type': problemMediaType })
}

/** Logs an unexpected error, without its message, which may contain anything. */
export const logInternal = (log: Log, path: string, error: unknown): void => {
  log.error({ path, error: describeInternal(error) }, 'internal error')
}

/** The class of an error and the first lines of its stack. */
const describeInternal = (error: unknown): string =>
  error instanceof Error
    ? [error.name, ...(error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))]
        .slice(0, 6)
        .join('\n')
    : typeof error
