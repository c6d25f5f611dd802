import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, rename, symlink, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, it } from 'mocha'
import type { PendingRevocation } from '../../../../daemon/oauth/logout/revocation-store.ts'
import { writeToken } from '../../../../daemon/oauth/tokens/token-store.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { sendJson, startScriptedProvider } from '../../../support/providers/scripted-provider.ts'
import { filesIn, temporaryHome } from '../../../support/temporary.ts'

const day = 24 * 60 * 60 * 1000
const file = 'mine-0123456789abcdef.json'
const pending: PendingRevocation = {
  version: 1,
  provider: 'mine',
  tokens: { accessToken: 'access-secret-1', refreshToken: 'refresh-secret-1' },
  client: { clientId: 'me', clientSecret: 'client-secret-1' },
  account: { id: '1', name: 'ada@example.com' },
  extent: 'grant',
  since: new Date().toISOString(),
  lastFailure: 'id.example answered 500',
}

describe('a pending revocation', () => {
  let home: Home
  let folder: string
  let app: OAuthApp | undefined
  let provider: Awaited<ReturnType<typeof startScriptedProvider>>
  let revoke: (response: ServerResponse) => void

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    folder = join(home.tokens, 'revoke')
    await mkdir(folder, { mode: 0o700 })
    revoke = (response) => sendJson(response, 200, {})
    provider = await startScriptedProvider(() => ({
      '/revoke': (response) => revoke(response),
    }))
  })
  afterEach(async () => {
    await app?.close()
    app = undefined
    provider.close()
  })

  const write = (change: Partial<PendingRevocation> = {}, name = file) =>
    writeFile(join(folder, name), JSON.stringify({ ...pending, ...change }), { mode: 0o600 })
  const read = async () =>
    JSON.parse(await readFile(join(folder, file), 'utf8')) as PendingRevocation
  const startApp = async () => {
    app = await startOAuthApp({
      home,
      gateway: {
        providers: {
          mine: {
            authorization_endpoint: `${provider.origin}/authorize`,
            token_endpoint: `${provider.origin}/token`,
            revocation_endpoint: `${provider.origin}/revoke`,
          },
        },
      },
    })
    await app.oauth.start()
    return app
  }
  const tokensSent = () =>
    provider.requests
      .filter(({ path }) => path === '/revoke')
      .map(({ body }) => new URLSearchParams(body).get('token'))

  it('of an earlier daemon is tried at the start, with the client it was kept with', async () => {
    await write()
    const { untilEvent } = await startApp()
    const { state, provider: name, detail } = await untilEvent(({ what }) => what === 'revoked')
    assert.deepEqual([state, name], ['done', 'mine'])
    assert.match(detail ?? '', /^revoked: the tokens of ada@example\.com that were given up on 20/)
    assert.deepEqual(await filesIn(folder), [])
    const sent = new URLSearchParams(provider.requests[0]?.body)
    assert.equal(sent.get('client_secret'), 'client-secret-1')
    assert.deepEqual(tokensSent(), ['refresh-secret-1', 'access-secret-1'])
    assert.deepEqual(await app?.oauth.problems(), [])
    assert.equal(/secret-1/.test(JSON.stringify([app?.events, app?.logLines])), false)
  })

  const olderForms: [string, string][] = [
    ['0.1.0 wrote it', ''],
    ['an older 0.1.0 wrote it, which counted its attempts', ',\n  "attempts": 3'],
  ]
  for (const [what, more] of olderForms)
    it(`is taken over as ${what}`, async () => {
      const text = `{
  "version": 1,
  "provider": "mine",
  "tokens": {
    "accessToken": "access-secret-1",
    "refreshToken": "refresh-secret-1"
  },
  "client": {
    "clientId": "me",
    "clientSecret": "client-secret-1"
  },
  "account": {
    "id": "1",
    "name": "ada@example.com"
  },
  "extent": "grant",
  "since": "${new Date(Date.now() - 2 * day).toISOString()}"${more},
  "lastFailure": "id.example answered 500"
}
`
      await writeFile(join(folder, file), text, { mode: 0o600 })
      const { untilEvent, oauth } = await startApp()
      await untilEvent(({ what: happened }) => happened === 'revoked')
      assert.deepEqual(tokensSent(), ['refresh-secret-1', 'access-secret-1'])
      assert.deepEqual(await filesIn(folder), [])
      assert.deepEqual(await oauth.problems(), [])
    })

  it('stays pending after another failed attempt', async () => {
    await write()
    revoke = (response) => sendJson(response, 503, {})
    const { oauth } = await startApp()
    await oauth.close()
    const { lastFailure, since } = await read()
    assert.match(lastFailure ?? '', /answered 503/)
    assert.equal(since, pending.since)
    assert.deepEqual(app?.events, [])
  })

  it('is given up after thirty days and a last try, and that is said with the way out', async () => {
    await write({ since: new Date(Date.now() - 31 * day).toISOString() })
    revoke = (response) => sendJson(response, 503, {})
    const { untilEvent } = await startApp()
    const event = await untilEvent(({ what }) => what === 'revocation-failed')
    assert.deepEqual([event.state, event.code], ['failed', 'provider-unavailable'])
    assert.match(event.detail ?? '', /answered 503, for 30 days; you can revoke the access in your/)
    assert.deepEqual(await filesIn(folder), [])
    assert.equal(tokensSent().length, 1)
  })

  it('of thirty days ago is done all the same when the last try works', async () => {
    await write({ since: new Date(Date.now() - 31 * day).toISOString() })
    const { untilEvent } = await startApp()
    await untilEvent(({ what }) => what === 'revoked')
  })

  it('is given up immediately when the provider refuses it', async () => {
    await write()
    revoke = (response) => sendJson(response, 400, { error: 'invalid_client' })
    const { untilEvent } = await startApp()
    const event = await untilEvent(({ what }) => what === 'revocation-failed')
    assert.equal(event.code, 'provider-refused')
    assert.match(event.detail ?? '', /invalid_client; you can revoke/)
    assert.deepEqual(await filesIn(folder), [])
  })

  it('waits for a provider that gateway.yaml does not name any more', async () => {
    await write({ provider: 'gone' }, 'gone-0123456789abcdef.json')
    const { oauth } = await startApp()
    await oauth.close()
    assert.deepEqual(await filesIn(folder), ['gone-0123456789abcdef.json'])
    assert.match((await oauth.problems())[0]?.detail ?? '', /there is no provider gone/)
  })

  it('waits while somebody logs in there, and is tried when that has ended', async () => {
    const { start, send, oauth, untilEvent } = await startApp()
    const login = await start({ provider: 'mine', clientId: 'me' })
    await write()
    await oauth.start()
    await send('GET', '/oauth/tokens')
    assert.deepEqual(tokensSent(), [])
    await send('DELETE', `/oauth/logins/${login.loginId}`)
    await untilEvent(({ what }) => what === 'revoked')
  })

  it('that somebody removes is not tried any more', async () => {
    await write()
    let asked: (response: ServerResponse) => void = () => undefined
    const hanging = new Promise<ServerResponse>((resolve) => (asked = resolve))
    revoke = (response) => asked(response)
    const { oauth } = await startApp()
    const response = await hanging
    await rename(join(folder, file), join(home.root, 'taken-away'))
    sendJson(response, 503, {})
    await oauth.close()
    assert.deepEqual(await filesIn(folder), [])
  })

  it('is broken off by a stop and still there for the next daemon', async () => {
    await write()
    let asked: () => void = () => undefined
    const hanging = new Promise<void>((resolve) => (asked = resolve))
    revoke = () => asked()
    const { oauth } = await startApp()
    await hanging
    await oauth.close()
    const { origin } = provider
    const server = { tokenOrigin: origin, revocationOrigin: origin }
    assert.deepEqual(await read(), { ...pending, server })
  })

  it('finishes a logout that was cut short before the token file went', async () => {
    await write()
    await writeToken(home, { ...record, ...pending.tokens, obtainedAt: '2026-01-01T00:00:00.000Z' })
    const { untilEvent } = await startApp()
    await untilEvent(({ what }) => what === 'revoked')
    assert.deepEqual(await filesIn(home.tokens), [])
  })

  it('leaves alone what a later login has too', async () => {
    await write()
    const later = { ...record, ...pending.tokens, obtainedAt: '2100-01-01T00:00:00.000Z' }
    await writeToken(home, later)
    const { oauth } = await startApp()
    await oauth.close()
    assert.deepEqual(tokensSent(), [])
    assert.deepEqual(await filesIn(home.tokens), ['mine.json'])
  })

  const unusable: [string, () => Promise<unknown>, string, RegExp][] = [
    [
      'that others can read',
      async () => {
        await write()
        await chmod(join(folder, file), 0o644)
      },
      'token-file-insecure',
      /^chmod 600 /,
    ],
    [
      'that is a link',
      async () => {
        await write()
        await rename(join(folder, file), join(home.root, 'elsewhere'))
        await symlink(join(home.root, 'elsewhere'), join(folder, file))
      },
      'token-file-insecure',
      /replace it with the file itself/,
    ],
    [
      'that is damaged',
      () =>
        writeFile(join(folder, file), '{"tokens":{"accessToken":"access-secret-1"', {
          mode: 0o600,
        }),
      'token-file-damaged',
      /^rm .*mine-0123456789abcdef\.json$/,
    ],
    [
      'of another provider than its name says',
      () => write({ provider: 'other' }),
      'token-file-damaged',
      /^rm /,
    ],
    [
      'in a folder that others can reach',
      async () => {
        await write()
        await chmod(folder, 0o755)
      },
      'token-file-insecure',
      /^chmod 700 /,
    ],
  ]
  for (const [what, plant, code, hint] of unusable)
    it(`${what} is never used, and that is said once`, async () => {
      await plant()
      const { oauth } = await startApp()
      const problems = await oauth.problems()
      assert.deepEqual(
        problems.map((problem) => problem.code),
        [code],
      )
      assert.match(problems[0]?.hint ?? '', hint)
      await oauth.close()
      assert.deepEqual(tokensSent(), [])
      assert.equal((await filesIn(folder)).length, 1)
      assert.equal(/secret-1/.test(JSON.stringify([problems, app?.logLines])), false)
    })

  it('that a killed daemon left half written is removed', async () => {
    await write({}, `${file}.0123456789ab.tmp`)
    await write({}, 'not-ours')
    const { oauth } = await startApp()
    await oauth.close()
    assert.deepEqual(await filesIn(folder), ['not-ours'])
    assert.deepEqual(tokensSent(), [])
  })
})

const record = {
  version: 1 as const,
  provider: 'mine',
  accessToken: 'access-2',
  tokenType: 'Bearer',
  scopes: [],
  expiresAt: null,
  obtainedAt: '2100-01-01T00:00:00.000Z',
  account: { id: '1', name: 'ada@example.com' },
  clientId: 'me',
}
