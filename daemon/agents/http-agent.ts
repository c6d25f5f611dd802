import type { IncomingMessage } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import type { RunInput, Usage } from '../../shared/api/api.ts'
import type { Budget } from '../../shared/agents/budget.ts'
import type { HttpAgent } from '../../shared/agents/schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { describeUnreachable, ProxyError } from '../../shared/network/faults.ts'
import { openRequest } from '../../shared/network/outgoing.ts'
import { parsePath } from '../../shared/paths.ts'
import { toPlainLine } from '../../shared/text.ts'
import { withTimeLimit } from '../util/concurrency.ts'
import { createByteCollector } from '../util/byte-budget.ts'
import { textOfValue, valueAt, parseJson } from '../util/payload-path.ts'
import { type Answer, cutText, cutTo, toAgentError } from './answer.ts'
import { getRequired, hideSecrets } from './environment.ts'
import type { SessionTurn } from './sessions/transcript.ts'
import { readHttpUsage } from './usage.ts'

/** For the JSON around an answer. */
const jsonOverheadBytes = 4 * 1024 * 1024

/** The question to an agent. */
export type Question = {
  readonly prompt: string
  readonly webhook: string
  /** Name of the rule, where the webhook has rules. */
  readonly rule?: string | undefined
  readonly eventId: string
  /** The sender's id of the delivery, if it has one. */
  readonly deliveryId?: string | undefined
  /** The code that a program sees. */
  readonly workspace?:
    | {
        readonly path: string
        readonly access: 'read' | 'write'
        /** `owner/name`, for the token of a bot. */
        readonly repository?: string | undefined
      }
    | undefined
  /** For an agent with `event_file`: the payload as JSON. */
  readonly payload?: Buffer | undefined
  /** The run may cost this, beside the budget of its agent. */
  readonly most?: Budget['run'] | undefined
  /** The conversation that it goes on with. */
  readonly session?: SessionTurn | undefined
  /** Called before its program starts. */
  readonly confined?: ((sandbox: RunInput['sandbox']) => void) | undefined
  /** Called with what the run has used, as soon as it is known; a failed run has its price too. */
  readonly used?: ((usage: Usage) => void) | undefined
}

/**
 * Posts the prompt to the URL of an `http` agent; the answer is the response body, or the value at
 * `answer_path` in it. Throws an `agent-…` error without a header or the prompt.
 */
export const askHttp = async (
  agent: HttpAgent,
  { prompt, webhook, rule, eventId, deliveryId, used }: Question,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  eventFile?: string,
): Promise<Answer> => {
  const { answer_path: answerPath, usage_path: usagePath, output_limit: outputLimit } = agent
  const url = new URL(agent.url)
  const secrets: string[] = []
  const headers = Object.fromEntries(
    Object.entries(agent.headers ?? {}).map(([name, value]) => {
      if (!value.startsWith('env:')) return [name.toLowerCase(), value]
      const secret = getRequired(value.slice('env:'.length), env)
      secrets.push(secret)
      return [name.toLowerCase(), secret]
    }),
  )
  const { status, body, cut } = await postToAgent(
    url,
    { prompt, webhook, rule, eventId, deliveryId, eventFile },
    {
      headers,
      timeoutMs: agent.timeout,
      limitBytes:
        answerPath === undefined && usagePath === undefined
          ? outputLimit
          : outputLimit * 6 + jsonOverheadBytes,
      signal,
    },
  )
  const usage = usagePath === undefined ? undefined : getUsageAt(usagePath, body)
  if (usage) used?.(usage)
  if (status < 200 || status >= 300) throw toStatusError(url, status, describeBody(body, secrets))
  if (answerPath === undefined)
    return cut || body.length > outputLimit
      ? { text: cutText(body.subarray(0, outputLimit), outputLimit), cut: true }
      : { text: body.toString('utf8'), cut }
  if (cut) throw new DoorwardError('agent-failed', `the answer of ${url.host} is too long`)
  return cutTo(getAnswerAt(answerPath, body, url), outputLimit)
}

const getAnswerAt = (path: string, body: Buffer, { host }: URL): string => {
  const document = parseJson(body)
  if (document === undefined)
    throw new DoorwardError('agent-failed', `the answer of ${host} is not JSON`)
  const value = valueAt(document, parsePath(path))
  if (value === undefined || value === null)
    throw new DoorwardError('agent-failed', `the answer of ${host} has no ${path}`)
  return textOfValue(value)
}

const getUsageAt = (path: string, body: Buffer): Usage | undefined =>
  readHttpUsage(valueAt(parseJson(body), parsePath(path)))

const toStatusError = ({ host }: URL, status: number, words: string): DoorwardError => {
  const message =
    status >= 300 && status < 400
      ? `${host} answered with a redirect (${status}), which is not followed`
      : `${host} answered ${status}`
  return toAgentError('agent-failed', message, { words })
}

export type AgentResponse = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** At most the limit; `cut` when there was more. */
  readonly body: Buffer
  readonly cut: boolean
}

type PostOptions = {
  readonly headers: Readonly<Record<string, string>>
  /** For all attempts together. */
  readonly timeoutMs: number
  readonly limitBytes: number
  readonly signal: AbortSignal
  /** Milliseconds until the next attempt; by default there is only one. */
  readonly retryAfterMs?: (response: AgentResponse, attempts: number) => number | undefined
}

/**
 * Posts a JSON document to an agent and reads the response, whatever its status: no redirect, and no time
 * limit but ours (fetch gives up on headers after 300 s, but models think for longer).
 * Throws `agent-failed`, `agent-timeout` or `agent-stopped`, without the document or a header.
 */
export const postToAgent = async (
  url: URL,
  document: unknown,
  { headers, timeoutMs, limitBytes, signal, retryAfterMs = () => undefined }: PostOptions,
): Promise<AgentResponse> => {
  let limited: AbortSignal | undefined
  try {
    return await withTimeLimit(timeoutMs, signal, async (both) => {
      limited = both
      const end = performance.now() + timeoutMs
      for (let attempts = 1; ; attempts += 1) {
        const response = await openRequest(url, {
          method: 'POST',
          headers: {
            accept: 'application/json, text/plain;q=0.9, */*;q=0.1',
            'user-agent': 'doorward',
            ...headers,
            'content-type': 'application/json',
          },
          body: JSON.stringify(document),
          signal: both,
        })
        const read = await readResponse(response, limitBytes)
        // Our own abort looks like the end of a body that ends with its connection.
        both.throwIfAborted()
        const waitMs = retryAfterMs(read, attempts)
        if (waitMs === undefined || performance.now() + waitMs >= end) return read
        await wait(waitMs, undefined, { signal: both })
      }
    })
  } catch (error) {
    if (signal.aborted)
      throw new DoorwardError('agent-stopped', `${url.host} was left because the daemon stops`)
    if (limited?.aborted && !(error instanceof ProxyError))
      throw new DoorwardError(
        'agent-timeout',
        `${url.host} took longer than ${Math.round(timeoutMs / 100) / 10} s and was left`,
      )
    throw toConnectionError(url, error)
  }
}

/** The first words of an error response for the owner, without the secrets that were sent. */
export const describeBody = (body: Buffer, secrets: readonly string[]): string => {
  const words = toPlainLine(body.subarray(0, 4000).toString('utf8'))
  const named = secrets
    .filter((secret) => secret !== '')
    .map((secret) => [secret, 'secret'] as const)
  return hideSecrets(words, new Map(named)).slice(0, 300)
}

const readResponse = async (
  response: IncomingMessage,
  limitBytes: number,
): Promise<AgentResponse> => {
  const collected = createByteCollector()
  let cut = false
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const room = limitBytes - collected.size()
    collected.add(chunk.subarray(0, room))
    if (chunk.length <= room) continue
    cut = true
    // Leaving the loop closes the connection.
    break
  }
  const { statusCode: status = 0, headers } = response
  return { status, headers, body: collected.bytes(), cut }
}

const toConnectionError = ({ host }: URL, error: unknown): DoorwardError => {
  const { message, hint } = describeUnreachable(host, error)
  return toAgentError('agent-failed', message, { cause: error, hint })
}
