import assert from 'node:assert/strict'
import { standard } from '../../../../daemon/oauth/dialects/standard.ts'
import { standardAnswer } from '../../../../daemon/oauth/dialects/token-response.ts'

const read = async (document: unknown): Promise<unknown> => {
  const answer = new Response(JSON.stringify(document))
  return (await standardAnswer(answer, standard, { isIssuerKnown: false })).json()
}

describe('an answer of a token endpoint', () => {
  it('is read without what says nothing', async () => {
    const answer = { access_token: 'a', refresh_token: '', scope: null, expires_in: 60 }
    assert.deepEqual(await read(answer), { access_token: 'a', expires_in: 60 })
  })

  // https://dev.twitch.tv/docs/authentication/getting-tokens-oidc
  it('is read with its scopes as one text, also where they are a list', async () => {
    assert.deepEqual(await read({ scope: ['user:read:email', 'openid'] }), {
      scope: 'user:read:email openid',
    })
    for (const scope of ['a b', '', 7, [7], {}]) assert.deepEqual(await read({ scope }), { scope })
  })
})
