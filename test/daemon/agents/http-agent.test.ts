import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { askHttp } from '../../../daemon/agents/http-agent.ts'
import type { Usage } from '../../../shared/api/api.ts'
import type { HttpAgent } from '../../../shared/agents/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import {
  type Script,
  sendJson,
  startScriptedProvider,
} from '../../support/providers/scripted-provider.ts'

const question = { prompt: 'prompt-canary', webhook: '/a', eventId: 'evt_1', deliveryId: 'd-1' }

const ask = async (
  handler: Script[string],
  more: Partial<HttpAgent> = {},
  env: NodeJS.ProcessEnv = {},
  used?: (usage: Usage) => void,
) => {
  const provider = await startScriptedProvider(() => ({ '/ask': handler }))
  const agent: HttpAgent = {
    kind: 'http',
    url: `${provider.origin}/ask`,
    timeout: 5000,
    concurrency: 1,
    output_limit: 1024,
    ...more,
  }
  try {
    const asked = used ? { ...question, used } : question
    return await askHttp(agent, asked, env, new AbortController().signal)
  } finally {
    provider.close()
  }
}

const getFailure = async (asking: Promise<unknown>): Promise<DoorwardError> => {
  const error = await asking.then(
    () => assert.fail('it answered'),
    (error: unknown) => error,
  )
  assert.ok(error instanceof DoorwardError, String(error))
  assert.doesNotMatch(`${error.message} ${error.localDetail}`, /canary/)
  return error
}

describe('an agent of kind http', () => {
  it('posts prompt, webhook, event and delivery as JSON with its headers; the body is the answer', async () => {
    let seen: unknown
    const answer = await ask(
      (response, request, body) => {
        const { 'content-type': type, 'x-key': key, 'x-plain': plain } = request.headers
        seen = [request.method, type, key, plain, JSON.parse(body)]
        response.end('the answer\n')
      },
      { headers: { 'X-Key': 'env:KEY', 'X-Plain': 'as it is' } },
      { KEY: 'key-canary' },
    )
    assert.deepEqual(answer, { text: 'the answer\n', cut: false })
    assert.deepEqual(seen, ['POST', 'application/json', 'key-canary', 'as it is', question])
  })

  it('reads what the run used at usage_path, also where it failed', async () => {
    const used: Usage[] = []
    const note = (usage: Usage) => used.push(usage)
    const usage = { input_tokens: 20, output_tokens: 3, cost_usd: 0.5 }
    const read = { inputTokens: 20, outputTokens: 3, costUsd: 0.5 }
    const say = (status: number) => (response: ServerResponse) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ text: 'yes', spent: { usage } }))
    }
    const paths = { answer_path: 'text', usage_path: 'spent.usage' }
    assert.equal((await ask(say(200), paths, {}, note)).text, 'yes')
    await getFailure(ask(say(500), paths, {}, note))
    const whole = await ask(say(200), { usage_path: 'spent.usage', output_limit: 10 }, {}, note)
    assert.match(whole.text, /^\{"text":"y\n\[cut/)
    assert.deepEqual(used, [read, read, read])
    await ask(say(200), { answer_path: 'text', usage_path: 'spent.other' }, {}, note)
    await ask(say(200), { answer_path: 'text' }, {}, note)
    assert.equal(used.length, 3)
  })

  it('reads JSON behind a byte order mark', async () => {
    const handler: Script[string] = (response) => response.end('\ufeff{"a":"here"}')
    assert.equal((await ask(handler, { answer_path: 'a' })).text, 'here')
  })

  it('reads the answer at its path, as text or as JSON', async () => {
    const handler: Script[string] = (response) =>
      sendJson(response, 201, { result: [{ text: 'here' }, { n: 1 }] })
    assert.equal((await ask(handler, { answer_path: 'result.0.text' })).text, 'here')
    assert.equal((await ask(handler, { answer_path: 'result.1' })).text, '{"n":1}')
    assert.match(
      (await getFailure(ask(handler, { answer_path: 'result.2' }))).message,
      /has no result\.2$/,
    )
    assert.match(
      (await getFailure(ask(handler, { answer_path: 'toString' }))).message,
      /has no toString$/,
    )
    const html: Script[string] = (response) => response.end('<html>')
    assert.match((await getFailure(ask(html, { answer_path: 'a' }))).message, /not JSON$/)
  })

  it('cuts a long answer and says so', async () => {
    const answer = await ask((response) => response.end('x'.repeat(100_000)))
    assert.ok(answer.cut && answer.text.endsWith('\n[cut: longer than 1024 bytes]'))
  })

  it('fails with the status and the first words, without a secret header', async () => {
    const error = await getFailure(
      ask(
        (response, request) => {
          response.statusCode = 503
          response.end(`busy, ${String(request.headers['x-key'])}\u001b[31m`)
        },
        { headers: { 'x-key': 'env:KEY' } },
        { KEY: 'key-canary' },
      ),
    )
    assert.match(error.localDetail ?? '', /answered 503: busy, <secret>$/)
    assert.doesNotMatch(error.message, /busy/)
  })

  it('does not pass half an answer on after a timeout', async () => {
    // As in HTTP/1.0, where only the end of the connection marks the end of the body.
    const error = await getFailure(
      ask(
        (response) => {
          response.removeHeader('transfer-encoding')
          response.write('half an ans')
        },
        { timeout: 300 },
      ),
    )
    assert.equal(error.code, 'agent-timeout')
  })

  it('follows no redirect', async () => {
    const error = await getFailure(
      ask((response) => response.writeHead(307, { location: '/elsewhere' }).end()),
    )
    assert.match(error.message, /redirect \(307\), which is not followed$/)
  })

  it('is not asked when the variable of a header is unset or invalid', async () => {
    const headers = { 'x-key': 'env:KEY' }
    const handler: Script[string] = () => assert.fail('it was asked')
    assert.match((await getFailure(ask(handler, { headers }))).message, /^KEY is unset or empty$/)
    const bad = await getFailure(ask(handler, { headers }, { KEY: 'a\r\nx: b' }))
    assert.match(bad.message, /cannot be reached \(ERR_INVALID_CHAR\)/)
  })
})
