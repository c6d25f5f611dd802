import type { HttpAgent } from '../../shared/config/agent-schema.ts'
import { parseDotPath } from '../../shared/templates.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { textOfValue } from '../text-of-value.ts'
import { valueAt } from '../value-at.ts'
import { type Answer, cutText, cutTo } from './answer.ts'
import { envValue } from './env-value.ts'
import { postToAgent, wordsOf } from './post.ts'

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
  if (status < 200 || status >= 300) throw refusal(url, status, wordsOf(body, secrets))
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
