import assert from 'node:assert/strict'
import { describe, it } from 'mocha'
import { loadCallbackPage } from '../../../../daemon/oauth/login/callback-page.ts'
import { readAccount } from '../../../../daemon/oauth/login/save-grant.ts'

describe('callback page', () => {
  it('escapes whatever a provider says', () => {
    const evil = `"><img src=x onerror=alert(1)>'{{style}}`
    const { html } = loadCallbackPage()({
      kind: 'done',
      title: evil,
      message: evil,
      advice: evil,
      account: evil,
      command: evil,
    })
    assert.equal(html.includes('<img'), false)
    assert.equal(html.match(/<style>/g)?.length, 1)
    assert.ok(html.includes('&#34;&#62;&#60;img'))
  })

  it('shows a name without the characters that hide or turn text', () => {
    assert.deepEqual(readAccount({ sub: 'a', email: 'x\u202Emoc.evil\u200B\n@y' }), {
      id: 'a',
      name: 'xmoc.evil@y',
    })
    assert.deepEqual(readAccount({ id: 7, login: 'octocat' }), { id: '7', name: 'octocat' })
    assert.deepEqual(readAccount({ sub: 'a', email: { $ne: 1 } }), { id: 'a', name: 'a' })
    assert.equal(readAccount({ email: 'no@id' }), undefined)
  })
})
