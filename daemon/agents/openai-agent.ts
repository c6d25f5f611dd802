import type { OpenAiAgent } from '../../shared/agents/schema.ts'
import type { DoorwardError } from '../../shared/errors.ts'
import { joinUrl } from '../../shared/net.ts'
import { retryAfterIn } from '../util/http-retry-after.ts'
import { openFenceIn } from '../util/markdown-fence.ts'
import { textAt, valueAt, parseJson } from '../util/payload-path.ts'
import { type Answer, cutTo, toAgentError } from './answer.ts'
import { getRequired } from './environment.ts'
import { type AgentResponse, describeBody, postToAgent, type Question } from './http-agent.ts'
import { readOpenAiUsage } from './usage.ts'

/** For the JSON around an answer. */
const jsonOverheadBytes = 4 * 1024 * 1024

/** How often to retry when the model is busy. */
export type BusyRules = {
  readonly attempts: number
  /** Doubles each time, plus up to as much again at random. */
  readonly firstWaitMs: number
  /** A server that asks for a longer wait is given up: other runs wait behind this one. */
  readonly maxWaitMs: number
}

const busyRules: BusyRules = { attempts: 6, firstWaitMs: 1000, maxWaitMs: 600_000 }

/**
 * Asks a model over the chat completions API (https://platform.openai.com/docs/api-reference/chat) of
 * OpenAI, Ollama, LM Studio, vLLM and others, without streaming. Retries while the model is busy. Throws
 * an `agent-…` error that names host, model and status, never the key or the prompt.
 */
export const askOpenAi = async (
  agent: OpenAiAgent,
  { prompt, used }: Pick<Question, 'prompt' | 'used'>,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
  rules: BusyRules = busyRules,
): Promise<Answer> => {
  const url = joinUrl(agent.base_url, '/chat/completions')
  const key = agent.api_key_env === undefined ? undefined : getRequired(agent.api_key_env, env)
  const messages = [
    ...(agent.system === undefined ? [] : [{ role: 'system', content: agent.system }]),
    { role: 'user', content: prompt },
  ]
  const response = await postToAgent(
    url,
    { model: agent.model, messages, stream: false },
    {
      headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
      timeoutMs: agent.timeout,
      limitBytes: agent.output_limit * 6 + jsonOverheadBytes,
      signal,
      retryAfterMs: (busyResponse, attempts) => busyForMs(busyResponse, attempts, rules),
    },
  )
  const { status, body, cut } = response
  const describe = (text: Buffer) => describeBody(text, key === undefined ? [] : [key])
  if (status < 200 || status >= 300) throw toStatusError(agent, url, status, describe(body))
  if (cut) throw toFailure(`the answer of ${url.host} is too long`)
  const document = parseJson(body)
  const usage = readOpenAiUsage(document, agent.model)
  if (usage) used?.(usage)
  if (document === undefined && isStream(response))
    throw toFailure(
      `${url.host} streams its answer, though doorward asked it not to`,
      'turn streaming off there, or set base_url to the server behind it',
    )
  const error = findError(document)
  if (error) throw toStatusError(agent, url, status, describe(Buffer.from(JSON.stringify(error))))
  return readAnswer(document, agent, url)
}

/** Too many requests; a model that is loading (llama.cpp); overloaded (529: Anthropic). */
const busyStatuses = new Set([429, 503, 529])

const busyForMs = (
  { status, headers, body }: AgentResponse,
  attempts: number,
  rules: BusyRules,
): number | undefined => {
  if (!busyStatuses.has(status) || attempts >= rules.attempts || isUnpaid(parseJson(body)))
    return undefined
  const backoffMs = rules.firstWaitMs * 2 ** (attempts - 1) * (1 + Math.random())
  // Retry-After may be 0, or a time that has just passed.
  const waitMs = Math.max(retryAfterIn(headers['retry-after']) ?? 0, backoffMs)
  return waitMs > rules.maxWaitMs ? undefined : waitMs
}

/** OpenAI answers 429 also when the account has no credit left: waiting does not help. */
const isUnpaid = (document: unknown): boolean =>
  [textAt(document, 'error', 'code'), textAt(document, 'error', 'type')].includes(
    'insufficient_quota',
  )

/** Some proxies always stream, and some of those do not say so in the content type. */
const isStream = ({ headers, body }: AgentResponse): boolean =>
  /^\s*text\/event-stream\b/i.test(headers['content-type'] ?? '') ||
  /^\s*(?:data|event|id|retry)?:/.test(body.subarray(0, 100).toString('latin1'))

/**
 * A router to many models answers 200 before the model behind it fails: the error is in place of the
 * answer or after a part of it (https://openrouter.ai/docs/api-reference/overview, NonStreamingChoice).
 */
const findError = (document: unknown): unknown => {
  const choice = getFirstChoice(document)
  const choiceError = valueAt(choice, ['error'])
  const error = choiceError ?? valueAt(document, ['error'])
  if (choice === undefined || choiceError) return error
  return textAt(choice, 'finish_reason') === 'error' ? (error ?? 'error') : undefined
}

const getFirstChoice = (document: unknown): unknown => valueAt(document, ['choices', '0'])

const readAnswer = (document: unknown, agent: OpenAiAgent, { host }: URL): Answer => {
  const choice = getFirstChoice(document)
  if (choice === undefined)
    throw toFailure(`the answer of ${host} is not a chat completion`, 'is base_url right?')
  const message = valueAt(choice, ['message'])
  const text =
    removeThinking(toText(valueAt(message, ['content']))) || toText(valueAt(message, ['refusal']))
  const cutReason = describeCut(choice)
  const reason = cutReason === undefined ? '' : `: ${cutReason}`
  if (text === '') throw toFailure(`the answer of ${agent.model} at ${host} is empty${reason}`)
  return cutTo(cutReason === undefined ? text : `${text}\n[cut${reason}]`, agent.output_limit)
}

/** Why the model stopped early; the reader of the answer must know. */
const describeCut = (choice: unknown): string | undefined => {
  const reason = textAt(choice, 'finish_reason')
  if (reason === 'length') return 'the model reached its own limit'
  return reason === 'content_filter' ? 'a content filter stopped the model' : undefined
}

/** Text, or a list of parts with texts. */
const toText = (content: unknown): string => {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content.map((part: unknown) => textAt(part, 'text') ?? '').join('')
}

const toStatusError = (
  agent: OpenAiAgent,
  { host }: URL,
  status: number,
  words: string,
): DoorwardError => {
  const [message, hint] = describeStatus(agent, host, status)
  return toFailure(message, hint, words)
}

const describeStatus = (
  { model, api_key_env: keyName = 'api_key_env' }: OpenAiAgent,
  host: string,
  status: number,
): readonly [message: string, hint?: string] => {
  if (status < 300) return [`${host} answered with an error (${status})`]
  if (status < 400)
    return [
      `${host} answered with a redirect (${status}), which is not followed`,
      'set base_url to the address it redirects to',
    ]
  if (status === 401 || status === 403)
    return [`${host} refused the API key (${status})`, `set ${keyName} to a valid one`]
  if (status === 404)
    return [
      `${host} has no model "${model}", or no chat API at this base_url (404)`,
      'fix model or base_url',
    ]
  if (status === 413) return [`the prompt is too long for ${host} (413)`, 'set max_value_length']
  if (status === 429) return [`rate limit of ${host} reached (429)`]
  if (status >= 500) return [`${host} has an internal error (${status})`]
  return [`${host} rejected the request (${status})`]
}

const toFailure = (message: string, hint?: string, words = ''): DoorwardError =>
  toAgentError('agent-failed', message, { hint, words })

/**
 * Removes the thoughts before the answer, where the server does not separate them (llama.cpp and vLLM
 * without their reasoning format, older Ollama). Thoughts without an end stay.
 */
const removeThinking = (text: string): string => {
  const end = /^\s*<think>/.test(text) ? text.indexOf(thinkingEnd) : findUnopenedEnd(text)
  return end === -1 ? text : text.slice(end + thinkingEnd.length).trimStart()
}

const thinkingEnd = '</think>'

/**
 * The end of thoughts that the model's template begins (DeepSeek-R1, QwQ), so that the text has only the
 * end mark, alone on its line. A mark in a sentence, in code, or after a begin mark is part of the answer:
 * losing half an answer is worse than showing a thought.
 */
const findUnopenedEnd = (text: string): number => {
  const end = text.indexOf(thinkingEnd)
  if (end === -1) return -1
  const before = text.slice(0, end)
  const isAlone =
    /(?:^|\n)[ \t]{0,3}$/.test(before.slice(-20)) &&
    text.slice(end).split('\n', 1)[0]?.trim() === thinkingEnd
  return isAlone && !before.includes('<think>') && !openFenceIn(before) ? end : -1
}
