import type { OpenAiAgent } from '../../shared/config/agent-schema.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { joinUrl } from '../../shared/net.ts'
import { retryAfterIn } from '../util/http-retry-after.ts'
import { openFenceIn } from '../util/markdown-fence.ts'
import { type Answer, cutTo } from './answer.ts'
import { envValue } from './environment.ts'
import { type Posted, postToAgent, describeBody } from './http-agent.ts'

/** What stands around an answer in JSON, and the escapes in it. */
const roomBytes = 4 * 1024 * 1024

/** How a model that takes no more requests now is asked again. */
export type BusyRules = {
  readonly tries: number
  /** Doubles each time; up to twice as long by chance. */
  readonly firstWaitMs: number
  /** Who asks for more is not waited for: a run of others waits behind this one. */
  readonly longestWaitMs: number
}

const busyRules: BusyRules = { tries: 6, firstWaitMs: 1000, longestWaitMs: 600_000 }

/**
 * Asks a model over the chat completions API (https://platform.openai.com/docs/api-reference/chat),
 * as OpenAI, Ollama, LM Studio and vLLM speak it; not streamed. One that is busy is asked again. Throws
 * an `agent-…` error that names host, model and status, never the key or the prompt.
 */
export const askOpenAi = async (
  agent: OpenAiAgent,
  prompt: string,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  rules: BusyRules = busyRules,
): Promise<Answer> => {
  const url = joinUrl(agent.base_url, '/chat/completions')
  const key = agent.api_key_env === undefined ? undefined : envValue(agent.api_key_env, env)
  const messages = [
    ...(agent.system === undefined ? [] : [{ role: 'system', content: agent.system }]),
    { role: 'user', content: prompt },
  ]
  const posted = await postToAgent(
    url,
    { model: agent.model, messages, stream: false },
    {
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      timeoutMs: agent.timeout,
      limitBytes: agent.output_limit * 6 + roomBytes,
      signal,
      againAfterMs: (posted, tries) => busyForMs(posted, tries, rules),
    },
  )
  const { status, body, cut } = posted
  const words = (said = body) => describeBody(said, key === undefined ? [] : [key])
  if (status < 200 || status >= 300) throw refusal(agent, url, status, words())
  if (cut) throw failed(`${url.host} answered with more than can be read`)
  const document = parseJson(body)
  if (document === undefined && isStream(posted))
    throw failed(
      `${url.host} streams its answer, though it was asked not to`,
      'turn streaming off where base_url leads, or name the server behind it',
    )
  const error = errorIn(document)
  if (error) throw refusal(agent, url, status, words(Buffer.from(JSON.stringify(error))))
  return answerIn(document, agent, url)
}

/** Too many requests, a model that is still loaded (llama.cpp) or has too much to do (529: Anthropic's). */
const busy = new Set([429, 503, 529])

const busyForMs = (
  { status, headers, body }: Posted,
  tries: number,
  { tries: most, firstWaitMs, longestWaitMs }: BusyRules,
): number | undefined => {
  if (!busy.has(status) || tries >= most || isUnpaid(parseJson(body))) return undefined
  const backoffMs = firstWaitMs * 2 ** (tries - 1) * (1 + Math.random())
  // Some say 0, or a time that has just passed.
  const waitMs = Math.max(retryAfterIn(headers['retry-after']) ?? 0, backoffMs)
  return waitMs > longestWaitMs ? undefined : waitMs
}

/** No waiting helps: OpenAI answers 429 too when the account has no credit left. */
const isUnpaid = (document: unknown): boolean => {
  const error = at(document, 'error')
  return [at(error, 'code'), at(error, 'type')].includes('insufficient_quota')
}

/** Some proxies stream whatever is asked for; not all of them say so. */
const isStream = ({ headers, body }: Posted): boolean =>
  /^\s*text\/event-stream\b/i.test(headers['content-type'] ?? '') ||
  /^\s*(?:data|event|id|retry)?:/.test(body.subarray(0, 100).toString('latin1'))

/**
 * Routers to many models have begun to answer when the one behind them fails: in place of its answer, or in
 * the middle of it (https://openrouter.ai/docs/api-reference/overview, NonStreamingChoice).
 */
const errorIn = (document: unknown): unknown => {
  const [choice] = listAt(document, 'choices')
  const error = at(choice, 'error') ?? at(document, 'error')
  if (choice === undefined || at(choice, 'error')) return error
  return at(choice, 'finish_reason') === 'error' ? (error ?? 'error') : undefined
}

const answerIn = (document: unknown, agent: OpenAiAgent, url: URL): Answer => {
  const [choice] = listAt(document, 'choices')
  const message = at(choice, 'message')
  const text = withoutThinking(toText(at(message, 'content'))) || toText(at(message, 'refusal'))
  if (document === undefined || choice === undefined)
    throw failed(`${url.host} answered with what is no chat completion`, 'is base_url right?')
  const stop = stopIn(choice)
  if (text === '')
    throw failed(
      `${agent.model} at ${url.host} answered without a text${stop === undefined ? '' : `: ${stop}`}`,
    )
  const whole = stop === undefined ? text : `${text}\n[cut: ${stop}]`
  return cutTo(whole, agent.output_limit)
}

/** The model had to stop: whoever reads the answer must know that it is not whole. */
const stopIn = (choice: unknown): string | undefined => {
  const reason = at(choice, 'finish_reason')
  if (reason === 'length') return 'the model reached its own limit'
  return reason === 'content_filter' ? 'a content filter stopped the model' : undefined
}

/** Text, or a list of parts with texts. */
const toText = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((part: unknown) => at(part, 'text'))
    .filter((text) => typeof text === 'string')
    .join('')
}

const refusal = (agent: OpenAiAgent, url: URL, status: number, said: string): DoorwardError => {
  const { host } = url
  const key = agent.api_key_env ?? 'api_key_env'
  const [message, wayOut] = ((): [string, string?] => {
    if (status >= 300 && status < 400)
      return [
        `${host} answered with a redirect (${status}), which is not followed`,
        'set base_url to where it leads',
      ]
    if (status === 401 || status === 403)
      return [`${host} refused the API key (${status})`, `set ${key} to one that is valid`]
    if (status === 404)
      return [
        `${host} knows no model "${agent.model}", or no chat at this base_url (404)`,
        'mend model or base_url',
      ]
    if (status === 413) return [`the prompt is too long for ${host} (413)`, 'set max_value_length']
    if (status === 429) return [`${host} takes no more requests now (429)`]
    if (status < 300) return [`${host} answered with an error (${status})`]
    if (status >= 500) return [`${host} has a fault of its own (${status})`]
    return [`${host} did not take the request (${status})`]
  })()
  const way = wayOut === undefined ? '' : ` (${wayOut})`
  return new DoorwardError('agent-failed', message, {
    hint: wayOut,
    localDetail: `${message}${said === '' ? '' : `: ${said}`}${way}`,
  })
}

const failed = (message: string, wayOut?: string): DoorwardError =>
  new DoorwardError('agent-failed', message, {
    hint: wayOut,
    localDetail: wayOut === undefined ? message : `${message} (${wayOut})`,
  })

const parseJson = (body: Buffer): unknown => {
  try {
    return JSON.parse(new TextDecoder().decode(body))
  } catch {
    return undefined
  }
}

const at = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

const listAt = (value: unknown, name: string): unknown[] => {
  const list = at(value, name)
  return Array.isArray(list) ? list : []
}

/**
 * What a model said to itself before its answer, where its server does not keep that apart (llama.cpp and vLLM
 * without their reasoning format, older Ollama), is no part of the answer. One that never ends is left.
 */
const withoutThinking = (text: string): string => {
  const begun = /^\s*<think>/.test(text)
  const end = begun ? text.indexOf(thinkingEnd) : endOfBegunThinking(text)
  return end === -1 ? text : text.slice(end + thinkingEnd.length).trimStart()
}

const thinkingEnd = '</think>'

/**
 * Where the template of the model has begun the thought itself (DeepSeek-R1, QwQ), only its end is in the
 * text: alone in its line, as these models write it. A text that speaks of the mark has it within a line or in
 * code, or what it ends before it; half of such a text is worse to lose than a thought is to read.
 */
const endOfBegunThinking = (text: string): number => {
  const end = text.indexOf(thinkingEnd)
  if (end === -1) return -1
  const before = text.slice(0, end)
  const rest = text.slice(end)
  const isAlone =
    /(?:^|\n)[ \t]{0,3}$/.test(before.slice(-20)) && rest.split('\n', 1)[0]?.trim() === thinkingEnd
  return isAlone && !before.includes('<think>') && !openFenceIn(before) ? end : -1
}
