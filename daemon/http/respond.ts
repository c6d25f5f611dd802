import type { IncomingMessage, ServerResponse } from 'node:http'
import { DoorwardError } from '../../shared/errors.ts'
import type { Log } from '../log/log.ts'
import { problemMediaType, toProblem } from './problem.ts'

const jsonMediaType = 'application/json; charset=utf-8'

/** Answers with JSON, in one write; `headers` come on top of those that say what it is. */
export const answerJson = (
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void => answerJsonText(response, status, JSON.stringify(body), headers)

/** The same of what is JSON text already. */
export const answerJsonText = (
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void => {
  response.writeHead(status, {
    'Content-Type': jsonMediaType,
    'Content-Length': Buffer.byteLength(text),
    ...headers,
  })
  endInOneWrite(response, text)
}

/** As `response.end(text)`, which hands the kernel an empty piece as well, by a call that takes several. */
const endInOneWrite = (response: ServerResponse, text: string): void => {
  const { socket } = response
  socket?.cork()
  response.write(text)
  socket?.uncork()
  response.end()
}

/** Answers with the problem that a thrown value is, and logs one that nobody expected. */
export const answerProblem = (
  response: ServerResponse,
  error: unknown,
  { log, path }: { readonly log: Log; readonly path: string },
): void => {
  const problem = toProblem(error)
  if (problem.code === 'internal') logInternal(log, path, error)
  if (!response.destroyed)
    answerJson(response, problem.status, problem, { 'Content-Type': problemMediaType })
}

/** The header that goes with a 401 (RFC 9110 section 11.6.1). */
export const sayHowToAsk = (response: ServerResponse, error: unknown): void => {
  if (error instanceof DoorwardError && error.code === 'unauthorized')
    response.setHeader('WWW-Authenticate', 'Bearer')
}

/** Logs an unexpected error, without its message, which may hold anything. */
export const logInternal = (log: Log, path: string, error: unknown): void => {
  log.error({ path, error: internalName(error) }, 'internal error')
}

/** Class and own lines of the stack of an unexpected error. */
const internalName = (error: unknown): string =>
  error instanceof Error
    ? [error.name, ...(error.stack ?? '').split('\n').filter((line) => /^\s+at /.test(line))]
        .slice(0, 6)
        .join('\n')
    : typeof error

/** Answers a request that it is for; false, and nothing done, for any other. Never throws. */
export type ServeFirst = (request: IncomingMessage, response: ServerResponse) => boolean
