import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { readFile } from 'node:fs/promises'
import { prepareHome } from '../../../shared/home/home.ts'
import { type Logout, type Status, statusSchema } from '../../../shared/api/api.ts'
import { writeToken } from '../../../daemon/oauth/tokens/token-store.ts'
import { run } from '../../cli/support/cli.ts'
import { startDaemon } from '../../support/daemon/daemon.ts'
import { followEvents } from '../../support/daemon/events.ts'
import { sendJson, startScriptedProvider } from '../../support/providers/scripted-provider.ts'
import { filesIn, temporaryHome } from '../../support/temporary.ts'

describe('a logout while the provider cannot be reached', () => {
  it('is finished by the next daemon, though this one is killed', async () => {
    let revoke: (response: ServerResponse) => void = (response) => sendJson(response, 503, {})
    const provider = await startScriptedProvider(() => ({
      '/revoke': (response) => revoke(response),
    }))
    const { origin } = provider
    const home = await temporaryHome({
      gateway: `
oauth: { callback_port: 0 }
providers:
  mine:
    authorization_endpoint: ${origin}/authorize
    token_endpoint: ${origin}/token
    revocation_endpoint: ${origin}/revoke
`,
    })
    await prepareHome(home)
    await writeToken(home, {
      version: 1,
      provider: 'mine',
      accessToken: 'access-secret-1',
      refreshToken: 'refresh-secret-1',
      tokenType: 'Bearer',
      scopes: [],
      expiresAt: null,
      obtainedAt: new Date().toISOString(),
      account: { id: '1', name: 'ada@example.com' },
      clientId: 'me',
    })
    const first = await startDaemon({ home })
    const result = await run(['oauth', 'logout', 'mine', '--json'], { home })
    assert.equal(result.code, 0)
    const { removed, revokedAtProvider, detail } = JSON.parse(result.stdout) as Logout
    assert.deepEqual([removed, revokedAtProvider], [true, false])
    assert.match(detail ?? '', /answered 503; it is tried again until 20\d\d-\d\d-\d\d, or you can/)
    const status = statusSchema.parse(await first.client.get<Status>('/status'))
    assert.deepEqual(
      status.problems.map(({ code }) => code),
      ['revocation-pending'],
    )
    first.client.close()
    const killed = once(first.process, 'exit')
    first.process.kill('SIGKILL')
    await killed
    assert.match((await filesIn(home.tokens)).join(' '), /^revoke\/mine-[0-9a-f]{16}\.json$/)

    let asked: (response: ServerResponse) => void = () => undefined
    const request = new Promise<ServerResponse>((resolve) => (asked = resolve))
    revoke = (response) => asked(response)
    const second = await startDaemon({ home })
    const events = await followEvents(second)
    const response = await request
    revoke = (other) => sendJson(other, 200, {})
    sendJson(response, 200, {})
    const event = await events.next(({ kind }) => kind === 'oauth')
    events.close()
    assert.equal(event.state, 'done')
    assert.match(
      event.detail ?? '',
      /^mine: revoked: the tokens of ada@example\.com that were given up on 20/,
    )
    assert.deepEqual(await filesIn(home.tokens), [])
    const after = await second.client.get<Status>('/status')
    assert.deepEqual(after.problems, [])
    assert.equal(await second.stop(), 0)
    const log = await readFile(home.log, 'utf8')
    assert.equal(/secret-1/.test(`${log}${second.stdout()}${second.stderr()}`), false)
    provider.close()
  })
})
