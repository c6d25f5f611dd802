import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { toClientOptions } from '../../../../daemon/oauth/login/pending-logins.ts'
import { LoginError } from '../../../../daemon/oauth/providers/errors.ts'

describe('the options of the next login', () => {
  it('name what of the client nothing else knows', () => {
    const known = { clientId: 'a', clientSecret: 's' }
    const table = [
      [{ clientId: 'a' }, undefined, { clientId: 'a' }],
      [known, undefined, { clientId: 'a', secret: true }],
      [known, known, {}],
      [{ clientId: 'a' }, known, {}],
      [{ clientId: 'a', clientSecret: 't' }, known, { secret: true }],
      [{ clientId: 'b' }, known, { clientId: 'b' }],
      // A shell would take it for more.
      [{ clientId: '$(id)' }, undefined, { clientId: 'ID' }],
    ] as const
    for (const [client, remembered, options] of table)
      assert.deepEqual(toClientOptions(client, remembered), options)
  })

  it('are added to the command of an error, each once', () => {
    const both = { clientId: 'a', secret: true } as const
    const hintOf = (next: Omit<LoginError['next'], 'provider'>, options: typeof both | object) =>
      new LoginError('provider-refused', 'no', { provider: 'x', ...next }).withOptions(options).hint
    const flags = '--client-id a --client-secret-stdin'
    assert.equal(hintOf({}, {}), 'doorward oauth login x')
    assert.equal(hintOf({}, both), `doorward oauth login x ${flags}`)
    const first = 'copy it'
    assert.equal(
      hintOf({ first, options: { secret: true } }, both),
      `copy it, then: doorward oauth login x ${flags}`,
    )
    assert.equal(
      hintOf({ options: { device: true } }, { clientId: 'a' }),
      'doorward oauth login x --client-id a --device',
    )
  })
})
