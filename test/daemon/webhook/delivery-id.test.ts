import assert from 'node:assert/strict'
import { deliveryIdOf } from '../../../daemon/webhook/delivery-id.ts'

describe('deliveryIdOf', () => {
  for (const name of [
    'x-github-delivery',
    'webhook-id',
    'svix-id',
    'x-gitlab-event-uuid',
    'x-shopify-webhook-id',
    'linear-delivery',
    'request-id',
  ])
    it(`reads ${name}`, () => assert.equal(deliveryIdOf({ [name]: ['msg_1-a'] }), 'msg_1-a'))

  it('takes up to 128 visible characters', () => {
    assert.equal(deliveryIdOf({ 'webhook-id': ['x'.repeat(128)] }), 'x'.repeat(128))
  })

  const refused: readonly [string, readonly string[]][] = [
    ['an empty one', ['']],
    ['129 characters', ['x'.repeat(129)]],
    ['one sent twice', ['a', 'a']],
    ['a space', ['a b']],
    ['a line feed', ['a\nb']],
    ['an escape sequence', ['\u001b[31m']],
    ['characters beyond ASCII', ['é']],
  ]
  for (const [name, values] of refused)
    it(`gives none for ${name}`, () =>
      assert.equal(deliveryIdOf({ 'x-github-delivery': values }), undefined))

  it('gives none without a header that it knows', () => {
    assert.equal(deliveryIdOf({}), undefined)
    assert.equal(deliveryIdOf({ 'x-delivery': ['a'] }), undefined)
  })
})
