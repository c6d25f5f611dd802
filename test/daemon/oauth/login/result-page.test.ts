import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { resultPage } from '../../../../daemon/oauth/login/callback-page.ts'
import { LoginError } from '../../../../daemon/oauth/providers/errors.ts'
import { DoorwardError } from '../../../../shared/errors.ts'

const command = 'doorward oauth login mine'
const failed = (error: DoorwardError) => resultPage('Mine', command, { status: 'failed', error })

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

  it('shows what to do first, and the command after it', () => {
    const next = { provider: 'mine', first: 'copy the secret', options: { secret: true } } as const
    const page = failed(new LoginError('provider-refused', 'mine refused', next))
    assert.equal(page.message, 'Mine refused. Copy the secret.')
    assert.deepEqual(
      [page.advice, page.command],
      ['You can close this window. Then:', `${command} --client-secret-stdin`],
    )
  })

  it('shows how to start again where nothing has to be done first', () => {
    const later = { hint: 'try again later' }
    for (const [error, message] of [
      [new DoorwardError('provider-unavailable', 'no', later), 'No. Try again later.'],
      [new LoginError('provider-refused', 'no', { provider: 'mine' }), 'No.'],
      [new DoorwardError('provider-refused', 'no'), 'No.'],
    ] as const) {
      const page = failed(error)
      assert.deepEqual([page.message, page.command], [message, command])
      assert.equal(page.advice, 'You can close this window. To try again:')
    }
  })
})
