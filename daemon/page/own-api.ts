import { Agent } from 'node:http'
import { parseResponse } from '../../shared/client/client.ts'
import { readText, sendRequest } from '../../shared/client/transport.ts'

/*
 * The page is a client of the local API, like the tray and the command line: it shows what the API says, and each
 * of its actions is one of the API's. So there is one place that says what an owner may do.
 */

/** Each throws the `DoorwardError` of the answer. */
export type OwnApi = {
  readonly get: <Answer>(path: string) => Promise<Answer>
  /** Waits half a minute for the answer, or as long as given. */
  readonly post: <Answer>(path: string, body?: unknown, timeoutMs?: number) => Promise<Answer>
  readonly delete: <Answer>(path: string) => Promise<Answer>
}

/** The API at the address of this daemon, which nobody else can have while it listens there. */
export const createOwnApi = (apiToken: string, url: () => string): OwnApi => {
  const agent = new Agent({ keepAlive: true, maxSockets: 8, timeout: 4000 })
  const send = async <Answer>(
    method: string,
    path: string,
    body?: unknown,
    timeoutMs = 30_000,
  ): Promise<Answer> => {
    const headers = { authorization: `Bearer ${apiToken}`, 'user-agent': 'doorward-page' }
    const to = new URL(path, url())
    const response = await sendRequest(to, method, body, { agent }, { headers, timeoutMs })
    return parseResponse(
      response.statusCode ?? 0,
      await readText(response, maxAnswerBytes),
    ) as Answer
  }
  return {
    get: async (path) => send('GET', path),
    post: async (path, body, timeoutMs) => send('POST', path, body, timeoutMs),
    delete: async (path) => send('DELETE', path),
  }
}

const maxAnswerBytes = 64 * 1024 * 1024
