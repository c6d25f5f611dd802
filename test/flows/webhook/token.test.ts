import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../shared/api/api.ts'
import { run } from '../../cli/support/cli.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { filesIn } from '../../support/temporary.ts'

const secret = 'canary-of-the-token-3f9a'
const wrong = 'canary-of-a-wrong-one-77b1'

describe('a token that comes in the address', () => {
  let daemon: RunningDaemon

  before(async () => {
    const entry = (path: string, more: string) =>
      `  - { path: ${path}, agent: echo, prompt_template: "{{event.a}}", secret_env: TOKEN, ${more} }\n`
    daemon = await startDaemon({
      variables: { TOKEN: secret },
      agents: `agents:
  echo: { kind: echo }
  file: { kind: command, event_file: true, command: [sh, -c, 'cat "$DOORWARD_EVENT_FILE"'] }
`,
      webhooks: `webhooks:
${entry('/query', 'signature_scheme: token, token_in: "query:key"')}${entry('/field', 'signature_scheme: token, token_in: "field:key"')}${entry('/whole', 'signature_scheme: token, token_in: "field:key"').replace('echo', 'file').replace('event.a', 'event')}${entry('/basic', 'signature_scheme: azure-devops')}${entry('/ours', 'signature_scheme: hmac')}`,
    })
  })
  after(async () => assert.equal(await daemon.stop(), 0))

  const post = async (path: string, headers = {}) =>
    (await send(`${daemon.url}${path}`, { headers, body: '{"a":1}' })).status

  it('is checked, and is in no log, event, metric or file afterwards', async () => {
    assert.equal(await post(`/query?key=${secret}`), 202)
    assert.equal(await post(`/query?x=%ff&key=${wrong}`), 401)
    assert.equal(await post(`/query?key=${secret}&key=${secret}`), 401)
    assert.equal(await post(`/ours?key=${secret}`), 401)
    assert.equal(await post(`/nothing?key=${secret}`), 404)
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    const details = await Promise.all(
      events.map(async ({ id }) => daemon.client.get<unknown>(`/events/${id}`)),
    )
    const metrics = await send(`${daemon.url}/metrics`, {
      method: 'GET',
      headers: { authorization: `Bearer ${daemon.apiToken}` },
    })
    const root = daemon.home.root
    const files = (await filesIn(root)).filter((name) => !name.endsWith('.sock'))
    const texts = files.map(async (name) => readFile(join(root, name), 'utf8'))
    const all = [
      JSON.stringify(details),
      metrics.text,
      daemon.stderr(),
      ...(await Promise.all(texts)),
    ]
    for (const text of all) for (const value of [secret, wrong]) assert.ok(!text.includes(value))
  })

  it('is not in the prompt, the answer or the file of an event when it came in the body', async () => {
    const body = JSON.stringify({ a: 'kept', key: secret })
    const reply = await send(`${daemon.url}/whole`, { body })
    const { prompt, result } = await untilFinished(daemon, String(reply.json()['id']))
    const hidden = '{"a":"kept","key":"[the token]"}'
    assert.ok(prompt?.includes(hidden), prompt)
    assert.equal(result, hidden)
  })

  for (const path of ['/query', '/field', '/basic'])
    it(`is sent by webhook send, as the sender of ${path} does`, async () => {
      const sent = await run(['webhook', 'send', path, '-', '--wait'], {
        home: daemon.home,
        env: { TOKEN: secret },
        stdin: '{"a":"it ran"}',
      })
      assert.equal(sent.code, 0, sent.stderr)
      assert.match(sent.stdout, /it ran/)
      assert.ok(!`${sent.stdout}${sent.stderr}`.includes(secret))
    })

  it('is told to prove less than a signature, by config check and doctor', async () => {
    const options = { home: daemon.home, env: { TOKEN: secret } }
    const checked = await run(['config', 'check'], options)
    assert.match(
      `${checked.stdout}${checked.stderr}`,
      /webhook \/query: a token proves less than a signature: .* the log of a proxy/,
    )
    const doctor = await run(['doctor'], options)
    assert.match(doctor.stdout.replaceAll(/\s+/g, ' '), /a token proves less than a signature/)
    assert.match(doctor.stdout.replaceAll(/\s+/g, ' '), /TOKEN is set, a token of azure-devops/)
  })
})
