import assert from 'node:assert/strict'
import {
  compareLogins,
  formatLogin,
  isLoginName,
  parseLogin,
} from '../../../shared/config/name-forms.ts'

describe('the name of a login', () => {
  it('is a provider, or a provider and an account', () => {
    assert.deepEqual(parseLogin('github'), { provider: 'github' })
    assert.deepEqual(parseLogin('my-idp_2@work-2'), { provider: 'my-idp_2', account: 'work-2' })
    for (const name of ['github', 'github@work']) {
      const login = parseLogin(name)
      assert.equal(login && formatLogin(login), name)
    }
  })

  it('is nothing else: it becomes the name of a file', () => {
    const long = 'a'.repeat(35)
    for (const name of ['', '@', '@a', 'a@', 'a@b@c', 'a@B', 'a@b_c', 'a@-b', 'a@b.json', 'a@b\n'])
      assert.equal(isLoginName(name), false, name)
    for (const name of ['a@../b', 'a@b/c', `a@${long}`, 'A@b', 'a@b c', 'a@b\u0000'])
      assert.equal(isLoginName(name), false, name)
  })

  it('sorts the accounts of a provider behind it', () => {
    const names = ['github@work', 'google', 'github-x', 'github@a', 'github', 'git']
    assert.deepEqual(names.sort(compareLogins), [
      'git',
      'github',
      'github@a',
      'github@work',
      'github-x',
      'google',
    ])
  })
})
