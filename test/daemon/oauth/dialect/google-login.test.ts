import assert from 'node:assert/strict'
import { afterEach, describe, it } from 'mocha'
import { browse } from '../../../support/browser.ts'
import {
  type GoogleOptions,
  type GoogleProvider,
  startGoogleProvider,
} from '../../../support/google-provider.ts'
import { type OAuthApp, startOAuthApp } from '../../../support/oauth-app.ts'

describe('login to a Google', () => {
  let provider: GoogleProvider
  let app: OAuthApp

  afterEach(async () => {
    await app.close()
    provider.close()
  })

  const start = async (options: GoogleOptions = {}, entry: object = {}) => {
    provider = await startGoogleProvider(options)
    app = await startOAuthApp({
      gateway: {
        providers: {
          google: { ...provider.gatewayEntry, client_secret_env: 'GOOGLE_SECRET', ...entry },
        },
      },
      env: { GOOGLE_SECRET: provider.client.secret },
    })
  }
  const logIn = async (body: object = {}) => {
    const started = await app.start({ provider: 'google', ...body })
    const page = await browse(started.authorizationUrl)
    return { started, page, login: await app.ended(started.loginId) }
  }

  it('ends with tokens on the disk', async () => {
    await start()
    const { login } = await logIn()
    assert.equal(login.status, 'authorized')
  })
})
