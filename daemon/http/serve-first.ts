import type { IncomingMessage, ServerResponse } from 'node:http'

/** Answers a request that it is for; false, and nothing done, for any other. Never throws. */
export type ServeFirst = (request: IncomingMessage, response: ServerResponse) => boolean
