import assert from 'node:assert/strict'
import { beforeEach, describe, it } from 'mocha'
import { findClient, rememberClient } from '../../../../daemon/oauth/providers/client-store.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { type Home, prepareHome } from '../../../../shared/home/home.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'
import { temporaryHome } from '../../../support/temporary.ts'

describe('the client of a login', () => {
  let home: Home

  beforeEach(async () => {
    home = await temporaryHome()
    await prepareHome(home)
    await rememberClient(home, 'github', { clientId: 'remembered', clientSecret: 'old secret' })
  })
  const found = (
    entry: object,
    env: NodeJS.ProcessEnv = {},
    request: { readonly clientId?: string; readonly clientSecret?: string } = {},
  ) =>
    findClient(
      home,
      findProvider('github', gatewayOf({ providers: { github: entry } })),
      env,
      request,
    )

  it('is the one of the last login where nothing else names one', async () =>
    assert.deepEqual(await found({}), { clientId: 'remembered', clientSecret: 'old secret' }))

  it('is the one of gateway.yaml and its environment before the one of the last login', async () => {
    const entry = { client_id: 'configured', client_secret_env: 'SECRET' }
    assert.deepEqual(await found(entry, { SECRET: 'new secret' }), {
      clientId: 'configured',
      clientSecret: 'new secret',
    })
    assert.deepEqual(await found({ client_secret_env: 'SECRET' }, { SECRET: 'new secret' }), {
      clientId: 'remembered',
      clientSecret: 'new secret',
    })
  })

  it('is the one that the login is asked for with before all others', async () =>
    assert.deepEqual(
      await found({ client_id: 'configured' }, {}, { clientId: 'asked', clientSecret: 'mine' }),
      { clientId: 'asked', clientSecret: 'mine' },
    ))

  it('never goes to a provider with the secret of another client', async () => {
    assert.deepEqual(await found({ client_id: 'configured' }), { clientId: 'configured' })
    const entry = { client_id: 'configured', client_secret_env: 'SECRET' }
    assert.deepEqual(await found(entry, { SECRET: 'new secret' }, { clientId: 'asked' }), {
      clientId: 'asked',
    })
  })
})
