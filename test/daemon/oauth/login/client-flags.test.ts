import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { toClientFlags, withClientFlags } from '../../../../daemon/oauth/login/pending-logins.ts'
import { DoorwardError } from '../../../../shared/errors.ts'

describe('typed client', () => {
  it('is what of the client nothing else knows', () => {
    const known = { clientId: 'a', clientSecret: 's' }
    assert.equal(toClientFlags({ clientId: 'a' }, undefined), ' --client-id a')
    assert.equal(toClientFlags(known, undefined), ' --client-id a --client-secret-stdin')
    assert.equal(toClientFlags(known, known), '')
    assert.equal(toClientFlags({ clientId: 'a' }, known), '')
    assert.equal(
      toClientFlags({ clientId: 'a', clientSecret: 't' }, known),
      ' --client-secret-stdin',
    )
    assert.equal(toClientFlags({ clientId: 'b' }, known), ' --client-id b')
  })

  it('shows no id that a shell would take for more', () =>
    assert.equal(toClientFlags({ clientId: '$(id)' }, undefined), ' --client-id ID'))

  const hintOf = (hint: string | undefined, options: string) =>
    withClientFlags(new DoorwardError('provider-refused', 'no', { hint }), 'x', options).hint

  it('is added to a hint to log in again, each option once', () => {
    const both = ' --client-id a --client-secret-stdin'
    const table = [
      [undefined, ' --client-id a', 'doorward oauth login x --client-id a'],
      ['doorward oauth login x', both, `doorward oauth login x${both}`],
      [
        'copy it, then: doorward oauth login x --client-secret-stdin',
        both,
        `copy it, then: doorward oauth login x${both}`,
      ],
      [
        'doorward oauth login x --client-id ID',
        both,
        'doorward oauth login x --client-secret-stdin --client-id ID',
      ],
      [
        'doorward oauth login x --device',
        ' --client-id a',
        'doorward oauth login x --client-id a --device',
      ],
    ] as const
    for (const [hint, options, expected] of table) assert.equal(hintOf(hint, options), expected)
  })

  it('leaves every other hint as it is', () => {
    for (const hint of ['try again later', 'doorward oauth login xy', 'doorward daemon logs'])
      assert.equal(hintOf(hint, ' --client-id a'), hint)
    assert.equal(hintOf('doorward oauth login x', ''), 'doorward oauth login x')
    assert.equal(hintOf(undefined, ''), undefined)
  })
})
