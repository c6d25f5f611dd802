import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { resultPage } from '../../../../daemon/oauth/login/callback-page.ts'
import { DoorwardError } from '../../../../shared/errors.ts'

const command = 'doorward oauth login mine'
const failed = (hint?: string) =>
  resultPage('Mine', command, {
    status: 'failed',
    error: new DoorwardError('provider-refused', 'mine refused', { hint }),
  })

describe('result page', () => {
  it('asks for nothing more when nothing is missing', () => {
    const page = resultPage('Mine', command, { status: 'authorized', account: null }, ['a'])
    assert.deepEqual(
      [page.kind, page.note, page.missing, page.command],
      ['done', undefined, undefined, undefined],
    )
  })

  it('names what is missing and the command that asks for all of it again', () => {
    const missing = { status: 'authorized', account: null, missingScopes: ['b', 'c'] } as const
    const outcome = { ...missing, missingScopes: [...missing.missingScopes] }
    const page = resultPage('Mine', command, outcome, ['a', 'b', 'c'])
    assert.deepEqual(page.missing, ['b', 'c'])
    assert.equal(page.command, 'doorward oauth login mine --scopes a,b,c')
  })

  it('makes a command that a shell reads as it is meant', () => {
    const outcome = { status: 'authorized' as const, account: null, missingScopes: ['$(id)'] }
    const page = resultPage('Mine', command, outcome, ['$(id)', "it's"])
    assert.equal(page.command, String.raw`doorward oauth login mine --scopes '$(id),it'\''s'`)
  })

  it('shows the command that a hint ends with, and its words before', () => {
    const page = failed('do this, then: doorward daemon restart')
    assert.equal(page.message, 'Mine refused. Do this.')
    assert.deepEqual(
      [page.advice, page.command],
      ['You can close this window. Then:', 'doorward daemon restart'],
    )
  })

  it('shows how to start again where a hint names no command', () => {
    for (const [hint, message] of [
      ['try again later', 'Mine refused. Try again later.'],
      [command, 'Mine refused.'],
      [undefined, 'Mine refused.'],
    ] as const) {
      const page = failed(hint)
      assert.deepEqual([page.message, page.command], [message, command])
      assert.equal(page.advice, 'You can close this window. To try again:')
    }
  })
})
