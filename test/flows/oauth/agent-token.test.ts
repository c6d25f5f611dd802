import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { EventRecord } from '../../../shared/api.ts'
import { type RunningDaemon, startDaemon, untilFinished } from '../../support/daemon/daemon.ts'
import { send } from '../../support/servers/http.ts'
import { temporaryHome } from '../../support/temporary.ts'

const printToken = JSON.stringify([
  process.execPath,
  '-e',
  'process.stdout.write(String(process.env.TOKEN))',
])

describe('an agent with a token in its environment', () => {
  let daemon: RunningDaemon

  before(async () => {
    const home = await temporaryHome({
      webhooks: `webhooks:
  - { path: /with, agent: with-token, prompt_template: x }
  - { path: /without, agent: without-token, prompt_template: x }
`,
      agents: `agents:
  with-token: { kind: command, command: ${printToken}, env: { TOKEN: "oauth:github" } }
  without-token: { kind: command, command: ${printToken}, env: { TOKEN: "oauth:slack" } }
`,
    })
    await mkdir(home.tokens, { mode: 0o700 })
    const record = {
      version: 1,
      provider: 'github',
      account: null,
      scopes: ['repo'],
      tokenType: 'Bearer',
      accessToken: 'gho_canary',
      expiresAt: null,
      obtainedAt: new Date().toISOString(),
      clientId: 'id',
    }
    await writeFile(join(home.tokens, 'github.json'), JSON.stringify(record), { mode: 0o600 })
    daemon = await startDaemon({ home })
  })
  after(() => daemon.stop())

  const runAt = async (path: string) => {
    const headers = { 'content-type': 'application/json' }
    const reply = await send(`${daemon.url}${path}`, { headers, body: '{}' })
    return untilFinished(daemon, String(reply.json()['id']))
  }

  it('gets a fresh one, and that is told without it', async () => {
    const event = await runAt('/with')
    assert.deepEqual([event.state, event.result], ['done', 'gho_canary'])
    const { events } = await daemon.client.get<{ events: EventRecord[] }>('/events')
    const told = events.filter(({ kind }) => kind === 'oauth')
    assert.deepEqual(
      told.map(({ state, detail }) => [state, detail]),
      [['done', 'github: token issued to agent with-token']],
    )
    const log = await readFile(daemon.home.log, 'utf8')
    assert.equal(log.includes('gho_canary'), false)
  })

  it('fails at its stage, with the way out, when there is no login', async () => {
    const event = await runAt('/without')
    assert.deepEqual([event.state, event.stage, event.code], ['failed', 'agent', 'not-logged-in'])
    assert.match(event.detail ?? '', /not logged in to slack/)
  })
})
