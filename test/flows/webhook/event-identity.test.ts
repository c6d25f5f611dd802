import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { fixtureAgent } from '../../support/fixtures.ts'
import { send } from '../../support/servers/http.ts'
import { type TargetServer, startTargetServer } from '../../support/servers/target-server.ts'
import { temporaryFolder } from '../../support/temporary.ts'

describe('what an agent knows of its event', () => {
  let daemon: RunningDaemon
  let server: TargetServer

  before(async () => {
    server = await startTargetServer((response) => void response.end('answer'))
    const programs = await temporaryFolder()
    const llm = join(programs, 'llm')
    await writeFile(llm, `#!${process.execPath}\nconsole.log(JSON.stringify(process.env))\n`)
    await chmod(llm, 0o755)
    daemon = await startDaemon({
      variables: { PATH: [programs, process.env['PATH']].join(delimiter) },
      agents: `
agents:
  command: { kind: command, command: ${JSON.stringify(fixtureAgent('prints-env'))} }
  llm: { kind: llm }
  http: { kind: http, url: "${server.origin}/" }
`,
      webhooks: `
webhooks:
  - { path: /command, agent: command, prompt_template: x }
  - { path: /llm, agent: llm, prompt_template: x }
  - { path: /http, agent: http, prompt_template: x }
`,
    })
  })
  after(async () => {
    server.close()
    assert.equal(await daemon.stop(), 0)
  })

  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
    const reply = await send(`${daemon.url}${path}`, {
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    })
    const event = await untilFinished(daemon, String(reply.json()['id']))
    assert.equal(event.state, 'done', event.detail)
    return event
  }
  const variables = (result = '{}') => {
    const env = JSON.parse(result) as Record<string, string>
    return ['EVENT_ID', 'WEBHOOK', 'DELIVERY_ID'].map((name) => env[`DOORWARD_${name}`])
  }

  for (const path of ['/command', '/llm'])
    it(`is in the environment of a program (${path})`, async () => {
      const { id, result } = await ask(path, { 'x-github-delivery': 'delivery-1' })
      assert.deepEqual(variables(result), [id, path, 'delivery-1'])
      const other = await ask(path)
      assert.deepEqual(variables(other.result), [other.id, path, undefined])
    })

  it('is in the request to a server', async () => {
    const { id } = await ask('/http', { 'x-github-delivery': 'delivery-2' })
    const expected = { prompt: 'x', webhook: '/http', eventId: id, deliveryId: 'delivery-2' }
    assert.deepEqual(server.requests.at(-1)?.fields, expected)
    const other = await ask('/http')
    assert.deepEqual(server.requests.at(-1)?.fields, {
      prompt: 'x',
      webhook: '/http',
      eventId: other.id,
    })
  })
})
