import assert from 'node:assert/strict'
import { requestedTokens } from '../../../../cli/commands/oauth/exec.ts'

describe('requestedTokens', () => {
  it('names the variable after the provider unless told', () => {
    assert.deepEqual(requestedTokens(['github', 'my-own_idp', 'slack=SLACK', 'github=_gh2']), [
      { provider: 'github', variable: 'GITHUB_TOKEN' },
      { provider: 'my-own_idp', variable: 'MY_OWN_IDP_TOKEN' },
      { provider: 'slack', variable: 'SLACK' },
      { provider: 'github', variable: '_gh2' },
    ])
  })

  const wrong: readonly (readonly [string, readonly string[], string])[] = [
    ['a variable without a name', ['github='], 'usage'],
    ['a variable that begins with a digit', ['github=1A'], 'usage'],
    ['a default that begins with a digit', ['4chan'], 'usage'],
    ['a variable with a character that no shell takes', ['github=A-B'], 'usage'],
    ['a variable with a second =', ['github=A=B'], 'usage'],
    ['a variable with a line end', ['github=A\nB'], 'usage'],
    ['two tokens in one variable', ['github=T', 'slack=T'], 'usage'],
    ['the same twice', ['github', 'github'], 'usage'],
    ['what can be no provider', ['../x'], 'provider-unknown'],
    ['nothing', [''], 'provider-unknown'],
  ]
  for (const [what, words, code] of wrong)
    it(`refuses ${what}`, () => assert.throws(() => requestedTokens(words), { code }))
})
