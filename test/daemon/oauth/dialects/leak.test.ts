import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, it } from 'mocha'
import { approve, browse } from '../../../support/desktop/browser.ts'
import { startGitHubProvider } from '../../../support/providers/github-provider.ts'
import { startGoogleProvider } from '../../../support/providers/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/providers/oauth-app.ts'
import { startSlackProvider } from '../../../support/providers/slack-provider.ts'

describe('log, events and answers of a dialect', () => {
  let provider: Awaited<ReturnType<(typeof starts)[number][1]>>
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const starts = [
    ['google', () => startGoogleProvider()],
    ['github', () => startGitHubProvider({ accessTokenSeconds: 28_800 })],
    ['slack', () => startSlackProvider()],
  ] as const
  for (const [name, start] of starts)
    it(`${name}: hold no token, code, state, verifier or secret`, async () => {
      provider = await start()
      app = await startOAuthApp({
        gateway: { providers: { mine: { ...provider.gatewayEntry, scopes: ['chat:write'] } } },
      })
      const texts: string[] = []
      const logIn = async (clientSecret: string) => {
        const { authorizationUrl, loginId } = await app.start({ provider: 'mine', clientSecret })
        const callback = await approve(authorizationUrl)
        texts.push((await browse(callback)).text, JSON.stringify(await app.ended(loginId)))
        return new URL(callback).searchParams
      }
      const secret = provider.client.secret
      const callback = await logIn(secret)
      const path = join(app.home.tokens, 'mine.json')
      const record = JSON.parse(await readFile(path, 'utf8')) as Record<string, string>
      texts.push(JSON.stringify((await app.send('GET', '/oauth/tokens')).body))
      await logIn('not-the-real-secret')
      // A provider that says what it was sent.
      const echo = Object.values(record).join(' ')
      const body = { ok: false, error: echo, error_description: echo, message: echo }
      for (const status of [400, 200, 500]) provider.fail({ status, body, path: '/', times: 2 })
      texts.push(JSON.stringify((await app.send('DELETE', '/oauth/tokens/mine')).body))

      texts.push(...app.logLines, ...app.events.map((event) => JSON.stringify(event)))
      const sent = provider.requests.find(({ form }) => form.has('code_verifier'))
      const hidden = {
        access: record['accessToken'],
        refresh: record['refreshToken'],
        code: callback.get('code'),
        state: callback.get('state'),
        verifier: sent?.form.get('code_verifier'),
        secret,
        wrongSecret: 'not-the-real-secret',
      }
      assert.ok(app.logLines.length >= 3)
      for (const [what, value] of Object.entries(hidden)) {
        assert.ok(value && value.length > 10, what)
        for (const text of texts) assert.equal(text.includes(value), false, what)
      }
      // What is secret is never in an address either, but for the code that the provider sends.
      const urls = provider.requests.map(({ path, query }) => `${path}?${query.toString()}`)
      for (const value of [hidden.access, hidden.refresh, hidden.verifier, secret])
        assert.equal(urls.join(' ').includes(value ?? ''), false)
    })
})
