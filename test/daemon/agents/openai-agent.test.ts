import assert from 'node:assert/strict'
import { type BusyRules, askOpenAi } from '../../../daemon/agents/openai-agent.ts'
import type { Usage } from '../../../shared/api/api.ts'
import type { OpenAiAgent } from '../../../shared/agents/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { startModelServer } from '../../support/servers/model-server.ts'
import {
  type Script,
  sendJson,
  startScriptedProvider,
} from '../../support/providers/scripted-provider.ts'

const never = new AbortController().signal
const env = { KEY: ' key-canary\n' }

const agentAt = (origin: string, more: Partial<OpenAiAgent> = {}): OpenAiAgent => ({
  kind: 'openai',
  base_url: `${origin}/v1/`,
  model: 'a-model',
  api_key_env: 'KEY',
  timeout: 5000,
  concurrency: 1,
  output_limit: 1024,
  ...more,
})

const getFailure = async (asking: Promise<unknown>): Promise<DoorwardError> => {
  const error = await asking.then(
    () => assert.fail('it answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DoorwardError, String(error))
  for (const text of [error.message, error.localDetail, error.hint])
    assert.doesNotMatch(text ?? '', /canary/)
  return error
}

const quickly: BusyRules = { attempts: 4, firstWaitMs: 1, maxWaitMs: 60_000 }

/** Asks a scripted model. */
const askOne = async (
  handler: Script[string],
  more: Partial<OpenAiAgent> = {},
  signal = never,
  rules = quickly,
) => {
  const provider = await startScriptedProvider(() => ({ '/v1/chat/completions': handler }))
  try {
    return await askOpenAi(
      agentAt(provider.origin, more),
      { prompt: 'prompt-canary' },
      env,
      signal,
      rules,
    )
  } finally {
    provider.close()
  }
}

const chat = (message: unknown, finish = 'stop') => ({
  choices: [{ message, finish_reason: finish }],
})

describe('an agent of kind openai', () => {
  it('keeps the query of base_url behind the path', async () => {
    const provider = await startScriptedProvider(() => ({
      '/v1/chat/completions?api-version=2': (response) =>
        sendJson(response, 200, chat({ content: 'the answer' })),
    }))
    const base_url = `${provider.origin}/v1/?api-version=2`
    const answer = await askOpenAi(
      agentAt(provider.origin, { base_url }),
      { prompt: 'hello' },
      env,
      never,
    )
    provider.close()
    assert.equal(answer.text, 'the answer')
  })

  it('sends model, system message and key, and reads the answer', async () => {
    const model = await startModelServer()
    model.behave({ kind: 'answers', text: 'the answer' })
    const used: Usage[] = []
    const answer = await askOpenAi(
      agentAt(model.origin, { system: 'be brief' }),
      { prompt: 'hello', used: (usage) => used.push(usage) },
      env,
      never,
    )
    model.close()
    assert.deepEqual(answer, { text: 'the answer', cut: false })
    assert.deepEqual(used, [{ inputTokens: 1, outputTokens: 1, model: 'fake-model' }])
    const [request] = model.requests
    assert.equal(request?.path, '/v1/chat/completions')
    assert.equal(request.headers.authorization, 'Bearer key-canary')
    assert.deepEqual(JSON.parse(request.body), {
      model: 'a-model',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hello' },
      ],
      stream: false,
    })
  })

  it('sends no key without api_key_env, and is not asked when that variable is unset', async () => {
    const seen: unknown[] = []
    const handler: Script[string] = (response, request) => {
      seen.push(request.headers.authorization)
      sendJson(response, 200, chat({ content: 'x' }))
    }
    await askOne(handler, { api_key_env: undefined })
    const error = await getFailure(askOne(handler, { api_key_env: 'OTHER_KEY' }))
    assert.equal(error.code, 'agent-failed')
    assert.match(error.localDetail ?? '', /^OTHER_KEY is unset or empty \(set OTHER_KEY in \.env/)
    assert.deepEqual(seen, [undefined])
  })

  const refused: readonly [number, RegExp][] = [
    [200, /answered with an error \(200\): .*it says so/],
    [302, /redirect \(302\), which is not followed: .*\(set base_url/],
    [400, /rejected the request \(400\): .*it says so/],
    [401, /refused the API key \(401\).*set KEY to a valid one/],
    [403, /refused the API key \(403\)/],
    [404, /has no model "a-model".*fix model or base_url/],
    [413, /too long/],
    [429, /rate limit of .* reached \(429\)/],
    [500, /internal error \(500\)/],
    [503, /internal error \(503\)/],
  ]
  for (const [status, words] of refused)
    it(`explains ${status}, without the key or the prompt`, async () => {
      const error = await getFailure(
        askOne((response, request) => {
          response.setHeader('location', 'http://127.0.0.1:1/')
          const key = request.headers.authorization?.slice('Bearer '.length)
          sendJson(response, status, { error: { message: `it says so of ${key}` } })
        }),
      )
      assert.equal(error.code, 'agent-failed')
      assert.match(error.localDetail ?? '', words)
    })

  /** A model that answers with these statuses, the last of them repeatedly, and the times of the requests. */
  const busy = (...statuses: readonly number[]) => {
    const asked: number[] = []
    const handler =
      (headers: Record<string, string> = {}, document: unknown = {}): Script[string] =>
      (response) => {
        asked.push(performance.now())
        const status = statuses[asked.length - 1] ?? statuses.at(-1) ?? 0
        for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
        sendJson(response, status, status === 200 ? chat({ content: 'a' }) : document)
      }
    return { asked, handler }
  }

  it('retries while the model is busy', async () => {
    for (const status of [429, 503, 529]) {
      const { asked, handler } = busy(status, status, 200)
      assert.equal((await askOne(handler({ 'retry-after': '0' }))).text, 'a')
      assert.equal(asked.length, 3)
    }
  })

  it('gives up with the last error, after some attempts or when waiting does not help', async () => {
    const unpaid = { error: { type: 'insufficient_quota', code: 'insufficient_quota' } }
    for (const [status, headers, document, tries] of [
      [429, {}, { error: { message: 'slow down' } }, 4],
      [429, {}, unpaid, 1],
      [429, { 'retry-after': '59' }, {}, 1],
      [429, { 'retry-after': '999999999' }, {}, 1],
      [500, { 'retry-after': '0' }, {}, 1],
    ] as const) {
      const { asked, handler } = busy(status)
      const error = await getFailure(askOne(handler(headers, document)))
      assert.match(error.message, /\((429|500)\)$/)
      assert.equal(asked.length, tries)
    }
  })

  it('gives up when the daemon stops during a wait, and at its timeout', async () => {
    const stop = new AbortController()
    const { asked, handler } = busy(429)
    const slowly = { ...quickly, firstWaitMs: 2000 }
    const stopping: Script[string] = (response, ...rest) => {
      response.once('close', () => setImmediate(() => stop.abort()))
      handler()?.(response, ...rest)
    }
    const started = performance.now()
    const stopped = await getFailure(askOne(stopping, {}, stop.signal, slowly))
    assert.equal(stopped.code, 'agent-stopped')
    const late = await getFailure(askOne(handler(), { timeout: 1500 }, never, slowly))
    assert.match(late.message, /rate limit/)
    assert.ok(performance.now() - started < 1500)
    assert.equal(asked.length, 2)
  })

  it('fails on anything but a chat completion with a text', async () => {
    const bad: readonly [Script[string], RegExp][] = [
      [(response) => response.end('<html>'), /is not a chat completion$/],
      [(response) => sendJson(response, 200, { choices: [] }), /is not a chat completion/],
      [(response) => sendJson(response, 200, chat({ content: null })), /is empty/],
      [(response) => sendJson(response, 200, null), /is not a chat completion/],
      [(response) => response.destroy(), /^127\.0\.0\.1:\d+ closed the connection \(ECONNRESET\)$/],
      [(response) => response.end('x'.repeat(6_000_000)), /is too long/],
    ]
    for (const [handler, words] of bad)
      assert.match((await getFailure(askOne(handler))).message, words)
  })

  it('names a server that always streams', async () => {
    const stream = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n'
    for (const [type, body] of [
      ['text/event-stream; charset=utf-8', stream],
      ['text/plain', `: a comment\n\n${stream}`],
      ['application/json', stream],
      ['text/event-stream', ''],
    ] as const) {
      const error = await getFailure(
        askOne((response) => response.writeHead(200, { 'content-type': type }).end(body)),
      )
      assert.match(error.message, /streams its answer, though doorward asked it not to$/)
      assert.match(error.hint ?? '', /^turn streaming off/)
    }
    const whole = await askOne((response) => {
      response.setHeader('content-type', 'text/event-stream')
      response.end(JSON.stringify(chat({ content: 'a' })))
    })
    assert.equal(whole.text, 'a')
  })

  it('reads parts and refusals as text, and marks an answer that the model cut', async () => {
    const getText = async (message: unknown, finish?: string) =>
      (await askOne((response) => sendJson(response, 200, chat(message, finish)))).text
    assert.equal(await getText({ content: [{ type: 'text', text: 'a' }, { text: 'b' }] }), 'ab')
    assert.equal(await getText({ content: null, refusal: 'I will not' }), 'I will not')
    assert.equal(
      await getText({ content: 'a' }, 'length'),
      'a\n[cut: the model reached its own limit]',
    )
    assert.equal(
      await getText({ content: 'a' }, 'content_filter'),
      'a\n[cut: a content filter stopped the model]',
    )
    assert.match(await getText({ content: 'a'.repeat(2000) }), /\[cut: longer than 1024 bytes\]$/)
  })

  it('removes the thoughts before the answer, and nothing else', async () => {
    const getText = async (content: string) =>
      (await askOne((response) => sendJson(response, 200, chat({ content })))).text
    assert.equal(await getText('<think>\nshall I?\n</think>\n\nyes'), 'yes')
    assert.equal(await getText('\n<think></think>\n\nyes, by </think>'), 'yes, by </think>')
    for (const whole of ['it writes <think>a</think> first', '<think>cut off in the middle'])
      assert.equal(await getText(whole), whole)
    for (const thought of ['<think>hm</think>\n', 'hm\n</think>\n'])
      assert.match((await getFailure(getText(thought))).message, /is empty/)
  })

  it('reports why the model stopped before any text', async () => {
    for (const [finish, words] of [
      ['length', /is empty: the model reached its own limit$/],
      ['content_filter', /is empty: a content filter stopped the model$/],
    ] as const) {
      const thought = chat({ content: '', reasoning_content: 'first I' }, finish)
      const error = await getFailure(askOne((response) => sendJson(response, 200, thought)))
      assert.match(error.message, words)
    }
  })

  it('times out, before the first byte and before the last', async () => {
    for (const handler of [
      () => undefined,
      (response) => response.write('{'),
    ] as Script[string][]) {
      const error = await getFailure(askOne(handler, { timeout: 200 }))
      assert.equal(error.code, 'agent-timeout')
      assert.match(error.message, /longer than 0\.2 s/)
    }
  })

  it('gives up when the daemon stops', async () => {
    const stop = new AbortController()
    const asking = askOne(() => stop.abort(), {}, stop.signal)
    assert.equal((await getFailure(asking)).code, 'agent-stopped')
  })
})
