import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { clientUnknown } from '../../../../daemon/oauth/providers/client-store.ts'
import { findProvider } from '../../../../daemon/oauth/providers/providers.ts'
import { gatewayOf } from '../../../support/providers/oauth-app.ts'

describe('a login without a client', () => {
  const errorOf = (name: string, entry?: object, port?: number) =>
    clientUnknown(
      findProvider(name, gatewayOf(entry ? { providers: { [name]: entry } } : {})),
      port ?? 53_174,
    )

  it('says what to create where, what to register, and the command that then works', () => {
    const secret = '--client-id ID --client-secret-stdin'
    const issuer = 'https://id.example'
    const table = [
      [
        errorOf('google'),
        `create an OAuth client of the type desktop app at https://console.cloud.google.com/apis/credentials, then: doorward oauth login google ${secret}`,
      ],
      [
        errorOf('github'),
        `create an OAuth app with the callback URL http://127.0.0.1/callback at https://github.com/settings/developers, then: doorward oauth login github ${secret}`,
      ],
      [
        errorOf('slack'),
        'create an app with PKCE and the redirect URL http://127.0.0.1:53174/callback at https://api.slack.com/apps, then: doorward oauth login slack --client-id ID',
      ],
      [
        errorOf('work', { issuer }),
        'register an app (native, public) with the redirect URI http://127.0.0.1:53174/callback at work, then: doorward oauth login work --client-id ID',
      ],
    ] as const
    for (const [error, hint] of table)
      assert.deepEqual([error.code, error.hint], ['client-unknown', hint])
  })

  it('names the host and port that the provider is set to', () => {
    const slack = errorOf('slack', { redirect_host: 'localhost' }, 8080)
    assert.match(slack.hint ?? '', / http:\/\/localhost:8080\/callback /)
    assert.match(errorOf('slack', undefined, 0).hint ?? '', / http:\/\/127\.0\.0\.1\/callback /)
  })
})
