import assert from 'node:assert/strict'
import { standard } from '../../../../daemon/oauth/dialects/standard.ts'
import { standardAnswer } from '../../../../daemon/oauth/dialects/token-endpoint.ts'

const read = async (document: unknown): Promise<unknown> => {
  const answer = new Response(JSON.stringify(document))
  return (await standardAnswer(answer, standard, { isIssuerKnown: false })).json()
}

describe('an answer of a token endpoint', () => {
  it('is read without what says nothing', async () => {
    const answer = { access_token: 'a', refresh_token: '', scope: null, expires_in: 60 }
    assert.deepEqual(await read(answer), {
      access_token: 'a',
      expires_in: 60,
      token_type: 'Bearer',
    })
  })

  // LinkedIn and Shopify leave it out; others spell it in their own way.
  it('is read as that of a bearer token, however that is spelt', async () => {
    for (const token_type of [
      undefined,
      null,
      '',
      'bearer',
      'BEARER',
      ' Bearer ',
      'BearerToken',
      'bearer_token',
    ])
      assert.deepEqual(await read({ access_token: 'a', token_type }), {
        access_token: 'a',
        token_type: 'Bearer',
      })
  })

  it('is refused with the type of a token that is no bearer token, if that can be shown', async () => {
    for (const [token_type, shown] of [
      ['user', '"user"'],
      ['access_token', '"access_token"'],
      ['DPoP', '"DPoP"'],
      ['gho_secretsecret1', 'unknown'],
      [['bearer'], 'unknown'],
      [7, 'unknown'],
    ] as const)
      await assert.rejects(read({ access_token: 'a', token_type }), {
        code: 'provider-refused',
        message: `the provider sent a token of the type ${shown}, and only Bearer can be used`,
      })
  })

  // https://dev.twitch.tv/docs/authentication/getting-tokens-oidc
  it('is read with its scopes as one text, also where they are a list', async () => {
    assert.deepEqual(await read({ scope: ['user:read:email', 'openid'] }), {
      scope: 'user:read:email openid',
    })
    for (const scope of ['a b', '', 7, [7], {}]) assert.deepEqual(await read({ scope }), { scope })
  })
})
