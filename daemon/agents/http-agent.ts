import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { setTimeout as wait } from 'node:timers/promises'
import type { HttpAgent } from '../../shared/config/agent-schema.ts'
import { DoorwardError, systemCode } from '../../shared/errors.ts'
import { isCertificateError, isNotTls } from '../../shared/net.ts'
import { parseDotPath } from '../../shared/templates.ts'
import { toPlainLine } from '../../shared/text.ts'
import { withTimeLimit } from '../util/abort.ts'
import { createByteCollector } from '../util/byte-budget.ts'
import { textOfValue, valueAt } from '../util/payload-path.ts'
import { type Answer, cutText, cutTo } from './answer.ts'
import { envValue, hideSecrets } from './environment.ts'

/** What may stand around the answer in a JSON body. */
const roomBytes = 4 * 1024 * 1024

/** What an agent behind a URL is asked. */
export type Question = {
  readonly prompt: string
  readonly webhook: string
  readonly eventId: string
}

/**
 * Posts the prompt to the URL of an `http` agent; the body of the answer, or what stands at
 * `answer_path` in it, is the answer. Throws an `agent-…` error without a header or the prompt.
 */
export const askHttp = async (
  agent: HttpAgent,
  { prompt, webhook, eventId }: Question,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<Answer> => {
  const url = new URL(agent.url)
  const secrets: string[] = []
  const headers = Object.fromEntries(
    Object.entries(agent.headers ?? {}).map(([name, value]) => {
      if (!value.startsWith('env:')) return [name.toLowerCase(), value]
      const secret = envValue(value.slice('env:'.length), env)
      secrets.push(secret)
      return [name.toLowerCase(), secret]
    }),
  )
  const { status, body, cut } = await postToAgent(
    url,
    { prompt, webhook, eventId },
    {
      headers,
      timeoutMs: agent.timeout,
      limitBytes:
        agent.answer_path === undefined ? agent.output_limit : agent.output_limit * 6 + roomBytes,
      signal,
    },
  )
  if (status < 200 || status >= 300) throw refusal(url, status, describeBody(body, secrets))
  if (agent.answer_path === undefined)
    return cut
      ? { text: cutText(body, agent.output_limit), cut }
      : { text: body.toString('utf8'), cut }
  if (cut)
    throw new DoorwardError('agent-failed', `${url.host} answered with more than can be read`)
  return cutTo(answerAt(agent.answer_path, body, url), agent.output_limit)
}

const answerAt = (path: string, body: Buffer, url: URL): string => {
  let document: unknown
  try {
    document = JSON.parse(new TextDecoder().decode(body))
  } catch {
    throw new DoorwardError('agent-failed', `${url.host} answered with what is not JSON`)
  }
  const value = valueAt(document, parseDotPath(path))
  if (value === undefined || value === null)
    throw new DoorwardError('agent-failed', `${url.host} answered without ${path}`)
  return textOfValue(value)
}

const refusal = ({ host }: URL, status: number, said: string): DoorwardError => {
  const message =
    status >= 300 && status < 400
      ? `${host} answered with a redirect (${status}), which is not followed`
      : `${host} answered ${status}`
  return new DoorwardError('agent-failed', message, {
    localDetail: said === '' ? message : `${message}: ${said}`,
  })
}

export type Posted = {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  /** At most the limit; `cut` when there was more. */
  readonly body: Buffer
  readonly cut: boolean
}

type PostOptions = {
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
  readonly limitBytes: number
  readonly signal: AbortSignal
  /** After how many milliseconds it is asked again; by default its first answer is the answer. */
  readonly againAfterMs?: (posted: Posted, tries: number) => number | undefined
}

/**
 * Posts a JSON document to an agent and reads what it answers, whatever its status: no redirect, no
 * proxy, no time limit but ours (fetch gives up on headers after 300 s, and models think for longer),
 * which holds for all tries together: none begins after it.
 * Throws `agent-failed`, `agent-timeout` or `agent-stopped`, without the document or a header.
 */
export const postToAgent = async (
  url: URL,
  document: unknown,
  { headers, timeoutMs, limitBytes, signal, againAfterMs = () => undefined }: PostOptions,
): Promise<Posted> => {
  let limited: AbortSignal | undefined
  try {
    return await withTimeLimit(timeoutMs, signal, async (both) => {
      limited = both
      const end = performance.now() + timeoutMs
      for (let tries = 1; ; tries += 1) {
        const response = await send(url, JSON.stringify(document), headers, both)
        const posted = await readAnswer(response, limitBytes)
        // A body that ends with its connection ends well when we break that off.
        both.throwIfAborted()
        const waitMs = againAfterMs(posted, tries)
        if (waitMs === undefined || performance.now() + waitMs >= end) return posted
        await wait(waitMs, undefined, { signal: both })
      }
    })
  } catch (error) {
    if (signal.aborted)
      throw new DoorwardError('agent-stopped', `${url.host} was left because the daemon stops`)
    if (limited?.aborted)
      throw new DoorwardError(
        'agent-timeout',
        `${url.host} took longer than ${timeoutMs / 1000} s and was left`,
      )
    throw new DoorwardError('agent-failed', `cannot ask ${url.host}: ${describeReason(error)}`, {
      cause: error,
    })
  }
}

/** The first words of an answer that is a refusal, for the owner; no secret that was sent is in them. */
export const describeBody = (body: Buffer, secrets: readonly string[]): string => {
  const words = toPlainLine(body.subarray(0, 4000).toString('utf8'))
  const named = secrets
    .filter((secret) => secret !== '')
    .map((secret) => [secret, 'secret'] as const)
  return hideSecrets(words, new Map(named)).slice(0, 300)
}

const send = async (
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<IncomingMessage> =>
  new Promise((resolve, reject) => {
    const request = (url.protocol === 'https:' ? httpsRequest : httpRequest)(
      url,
      {
        method: 'POST',
        agent: false,
        signal,
        headers: {
          accept: 'application/json, text/plain;q=0.9, */*;q=0.1',
          'user-agent': 'doorward',
          ...headers,
          'content-type': 'application/json',
          'content-length': String(Buffer.byteLength(body)),
        },
      },
      resolve,
    )
    request.once('error', reject)
    // An answer such as 101 ends without any other event.
    request.once('close', () => reject(new Error('closed')))
    request.end(body)
  })

const readAnswer = async (response: IncomingMessage, limitBytes: number): Promise<Posted> => {
  const collected = createByteCollector()
  let cut = false
  for await (const chunk of response as AsyncIterable<Buffer>) {
    const room = limitBytes - collected.size()
    collected.add(chunk.subarray(0, room))
    if (chunk.length <= room) continue
    cut = true
    // Leaving the loop ends the connection.
    break
  }
  const { statusCode: status = 0, headers } = response
  return { status, headers, body: collected.bytes(), cut }
}

const describeReason = (error: unknown): string => {
  const code = systemCode(error)
  const words: Record<string, string> = {
    ECONNREFUSED: 'nothing listens there: is it running?',
    ENOTFOUND: 'there is no such host',
    EAI_AGAIN: 'the name of the host cannot be looked up now',
    ECONNRESET: 'it broke the connection off',
    ETIMEDOUT: 'it cannot be reached',
    EHOSTUNREACH: 'it cannot be reached',
    ENETUNREACH: 'it cannot be reached',
    ERR_INVALID_CHAR: 'a header has a character that no header can have',
    HPE_INVALID_CONSTANT: 'it does not speak HTTP',
  }
  if (code !== undefined && isCertificateError(code))
    return `its certificate is not trusted (${code})`
  if (code !== undefined && isNotTls(code)) return 'it does not speak TLS'
  return (code && words[code]) ?? code ?? 'it broke the connection off'
}
