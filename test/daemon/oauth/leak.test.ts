import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, describe, it } from 'mocha'
import {
  type AuthorizationServer,
  startAuthorizationServer,
} from '../../support/providers/authorization-server.ts'
import { approve, browse, visit } from '../../support/desktop/browser.ts'
import { type OAuthApp, startOAuthApp } from '../../support/providers/oauth-app.ts'

describe('log, events and answers of oauth', () => {
  let server: AuthorizationServer
  let app: OAuthApp

  before(async () => {
    server = await startAuthorizationServer()
  })
  afterEach(() => app.close())
  after(() => server.close())

  it('hold no token, code, state, verifier or secret', async () => {
    app = await startOAuthApp({
      gateway: {
        providers: {
          mine: {
            issuer: server.issuer,
            scopes: ['openid'],
            client_id: 'confidential',
            client_secret_env: 'MINE_SECRET',
          },
        },
      },
      env: { MINE_SECRET: server.secret },
    })
    const answers: unknown[] = []
    const send = async (method: string, path: string, body?: unknown) =>
      answers.push((await app.send<unknown>(method, path, body)).body)

    const started = await app.start({ provider: 'mine' })
    const callback = new URL(await approve(started.authorizationUrl))
    const url = callback.href.replace(/state=[^&]+/, 'state=wrong')
    await send('POST', `/oauth/logins/${started.loginId}/redirect`, { url })
    const refused = await visit(url)
    const page = await browse(callback.href)
    answers.push(await app.ended(started.loginId))
    const sent = server.tokenRequests.at(-1)
    const record = JSON.parse(await readFile(join(app.home.tokens, 'mine.json'), 'utf8')) as Record<
      string,
      string
    >

    server.answer = 'deny'
    const denied = await app.start({ provider: 'mine' })
    await browse(denied.authorizationUrl)
    server.answer = 'consent'
    const failing = await app.start({ provider: 'mine', clientSecret: 'not-the-real-secret' })
    await browse(failing.authorizationUrl)
    answers.push(await app.ended(denied.loginId), await app.ended(failing.loginId))
    await send('GET', '/oauth/tokens')
    await send('DELETE', '/oauth/tokens/mine')

    const secrets = [
      record['accessToken'],
      record['refreshToken'],
      callback.searchParams.get('code'),
      callback.searchParams.get('state'),
      sent?.get('code_verifier'),
      server.secret,
      'not-the-real-secret',
    ]
    const texts = [
      ...app.logLines,
      ...[...app.events, ...answers].map((value) => JSON.stringify(value)),
      page.text,
      refused.text,
    ]
    assert.ok(app.logLines.length >= 6)
    for (const secret of secrets) {
      assert.ok(secret && secret.length > 10)
      for (const text of texts) assert.equal(text.includes(secret), false, text)
    }
    assert.equal(started.loginId === callback.searchParams.get('state'), false)
  })
})
