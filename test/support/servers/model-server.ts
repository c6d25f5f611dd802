import { once } from 'node:events'
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/**
 * How the model behaves: answers with a text, asks for a tool and answers with its result (or with what `answer`
 * makes of it), refuses with a status, or never answers.
 */
export type ModelBehaviour =
  | { readonly kind: 'answers'; readonly text: string; readonly usage?: CountUsage }
  | ({ readonly kind: 'asks-for-tool'; readonly answer?: (results: string) => string } & ToolCall)
  | { readonly kind: 'refuses'; readonly status: number; readonly message: string }
  | { readonly kind: 'hangs' }

/** The `usage` of an answer to the newest request, where it is one of Anthropic's API. */
type CountUsage = (requests: readonly ModelRequest[]) => Readonly<Record<string, number>>

type ToolCall = { readonly name: string; readonly input: unknown }

export type ModelRequest = {
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** A model that speaks as Anthropic, OpenAI (both of its APIs) and Gemini do, streaming and not. */
export type ModelServer = {
  readonly origin: string
  readonly requests: readonly ModelRequest[]
  readonly behave: (behaviour: ModelBehaviour) => void
  /** Resolves when the next request has come. */
  readonly untilAsked: () => Promise<void>
  readonly close: () => void
}

/** Starts a model on a free port of 127.0.0.1. */
export const startModelServer = async (): Promise<ModelServer> => {
  const requests: ModelRequest[] = []
  const waiting: (() => void)[] = []
  let behaviour: ModelBehaviour = { kind: 'answers', text: 'an answer' }
  const server = createServer((request, response) => {
    void (async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
      const body = Buffer.concat(chunks).toString()
      const { pathname } = new URL(request.url ?? '/', 'http://model')
      requests.push({ path: pathname, headers: request.headers, body })
      answer(response, requests, behaviour)
      for (const resolve of waiting.splice(0)) resolve()
    })()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    behave: (next) => {
      behaviour = next
    },
    untilAsked: async () => new Promise((resolve) => waiting.push(resolve)),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

const answer = (
  response: ServerResponse,
  requests: readonly ModelRequest[],
  behaviour: ModelBehaviour,
): void => {
  const { path = '', body = '' } = requests.at(-1) ?? {}
  const wire = wires.find(({ fits }) => fits.test(path))
  if (!wire) {
    sendJson(response, 404, { error: { message: `no such path ${path}`, type: 'not_found' } })
    return
  }
  if (behaviour.kind === 'hangs') return
  if (behaviour.kind === 'refuses') {
    const { status, message } = behaviour
    const type = status === 401 ? 'authentication_error' : 'api_error'
    const words = status === 401 ? 'UNAUTHENTICATED' : 'INTERNAL'
    sendJson(response, status, {
      type: 'error',
      error: { type, message, code: status, status: words },
    })
    return
  }
  const request = readJson(body)
  if (behaviour.kind === 'asks-for-tool') {
    const results = wire.results(request)
    const { answer: toAnswer = (text: string) => text } = behaviour
    sendEvents(
      response,
      results.length === 0 ? wire.call(behaviour) : wire.stream(toAnswer(JSON.stringify(results))),
    )
    return
  }
  const streams = path.includes(':stream') || (request as { stream?: boolean })?.stream
  const usage = behaviour.usage?.(requests)
  if (streams) sendEvents(response, wire.stream(behaviour.text, usage))
  else sendJson(response, 200, wire.whole(behaviour.text, usage))
}

/** A name and data of an event stream. */
type StreamEvent = readonly [string | undefined, unknown]

type Wire = {
  readonly fits: RegExp
  readonly whole: (text: string, usage?: ReturnType<CountUsage>) => unknown
  /** Messages of an event stream: an optional name, and the data. */
  readonly stream: (text: string, usage?: ReturnType<CountUsage>) => readonly StreamEvent[]
  /** The same for a call of a tool. */
  readonly call: (call: ToolCall) => readonly StreamEvent[]
  /** The results of tools in a request. */
  readonly results: (request: unknown) => readonly unknown[]
}

/** All objects in a value that fit. */
const findAll = (value: unknown, fits: (node: Record<string, unknown>) => boolean): unknown[] => {
  if (typeof value !== 'object' || value === null) return []
  const node = value as Record<string, unknown>
  return [
    ...(fits(node) ? [node] : []),
    ...Object.values(node).flatMap((one) => findAll(one, fits)),
  ]
}

const model = 'fake-model'

const anthropicMessage = (content: readonly unknown[], usage: ReturnType<CountUsage> = {}) => ({
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model,
  content,
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1, ...usage },
})

const openAiResponse = (status: string, output: readonly unknown[]) => ({
  id: 'resp_1',
  object: 'response',
  created_at: 0,
  model,
  status,
  output,
  usage: {
    input_tokens: 1,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 1,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 2,
  },
})

const responseItem = (text: string, status: string) => ({
  id: 'item_1',
  type: 'message',
  role: 'assistant',
  status,
  content: text === '' ? [] : [{ type: 'output_text', text, annotations: [] }],
})

const geminiAnswer = (parts: readonly unknown[]) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  modelVersion: model,
})

const chatUsage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }

const chatChunk = (delta: unknown, finish: string | null) => ({
  id: 'chat_1',
  object: 'chat.completion.chunk',
  created: 0,
  model,
  choices: [{ index: 0, delta, finish_reason: finish }],
})

const wires: readonly Wire[] = [
  {
    fits: /\/v1\/messages$/,
    whole: (text, usage) => ({
      ...anthropicMessage([{ type: 'text', text }], usage),
      stop_reason: 'end_turn',
    }),
    stream: (text, usage) =>
      [
        { type: 'message_start', message: anthropicMessage([], usage) },
        { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: { output_tokens: 1 },
        },
        { type: 'message_stop' },
      ].map((data) => [data.type, data] as const),
    call: ({ name, input }) =>
      [
        { type: 'message_start', message: anthropicMessage([]) },
        {
          type: 'content_block_start',
          index: 0,
          content_block: { type: 'tool_use', id: 'toolu_1', name, input: {} },
        },
        {
          type: 'content_block_delta',
          index: 0,
          delta: { type: 'input_json_delta', partial_json: JSON.stringify(input) },
        },
        { type: 'content_block_stop', index: 0 },
        {
          type: 'message_delta',
          delta: { stop_reason: 'tool_use', stop_sequence: null },
          usage: { output_tokens: 1 },
        },
        { type: 'message_stop' },
      ].map((data) => [data.type, data] as const),
    results: (request) => findAll(request, ({ type }) => type === 'tool_result'),
  },
  {
    fits: /\/chat\/completions$/,
    whole: (text) => ({
      id: 'chat_1',
      object: 'chat.completion',
      created: 0,
      model,
      choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
      usage: chatUsage,
    }),
    stream: (text) => [
      [undefined, chatChunk({ role: 'assistant', content: text }, null)],
      [undefined, { ...chatChunk({}, 'stop'), usage: chatUsage }],
      [undefined, '[DONE]'],
    ],
    call: ({ name, input }) => {
      const called = { name, arguments: JSON.stringify(input) }
      const calls = [{ index: 0, id: 'call_1', type: 'function', function: called }]
      return [
        [undefined, chatChunk({ role: 'assistant', tool_calls: calls }, null)],
        [undefined, chatChunk({}, 'tool_calls')],
        [undefined, '[DONE]'],
      ]
    },
    results: (request) => findAll(request, ({ role }) => role === 'tool'),
  },
  {
    fits: /\/responses$/,
    whole: (text) => openAiResponse('completed', [responseItem(text, 'completed')]),
    stream: (text) => {
      const place = { item_id: 'item_1', output_index: 0, content_index: 0 }
      return [
        { type: 'response.created', response: openAiResponse('in_progress', []) },
        {
          type: 'response.output_item.added',
          output_index: 0,
          item: responseItem('', 'in_progress'),
        },
        { type: 'response.output_text.delta', ...place, delta: text },
        { type: 'response.output_text.done', ...place, text },
        {
          type: 'response.output_item.done',
          output_index: 0,
          item: responseItem(text, 'completed'),
        },
        {
          type: 'response.completed',
          response: openAiResponse('completed', [responseItem(text, 'completed')]),
        },
      ].map((data) => [data.type, data] as const)
    },
    call: ({ name, input }) => {
      const called = { type: 'function_call', id: 'item_1', call_id: 'call_1', name }
      const item = { ...called, arguments: JSON.stringify(input), status: 'completed' }
      return [
        { type: 'response.created', response: openAiResponse('in_progress', []) },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: openAiResponse('completed', [item]) },
      ].map((data) => [data.type, data] as const)
    },
    results: (request) => findAll(request, ({ type }) => type === 'function_call_output'),
  },
  {
    fits: /:(stream)?generateContent$/i,
    whole: (text) => geminiAnswer([{ text }]),
    stream: (text) => [[undefined, geminiAnswer([{ text }])]],
    call: ({ name, input }) => [
      [undefined, geminiAnswer([{ functionCall: { name, args: input } }])],
    ],
    results: (request) =>
      findAll(request, ({ functionResponse }) => functionResponse !== undefined),
  },
]

const readJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const sendJson = (response: ServerResponse, status: number, document: unknown): void => {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(document))
}

const sendEvents = (
  response: ServerResponse,
  messages: readonly (readonly [string | undefined, unknown])[],
): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const [name, data] of messages)
    response.write(
      `${name === undefined ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`,
    )
  response.end()
}
