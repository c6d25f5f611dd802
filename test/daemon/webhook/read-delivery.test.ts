import assert from 'node:assert/strict'
import { getDeliveryId } from '../../../daemon/webhook/read-delivery.ts'
import { hmacScheme, toScheme } from '../../../shared/signatures/described.ts'
import type { SchemeName } from '../../../shared/signatures/presets.ts'
import type { SignatureScheme } from '../../../shared/signatures/scheme.ts'

const fields = { header: 'x', algorithm: 'sha256', prefix: '' } as const
const hmac = hmacScheme(fields)
const scheme = (name: SchemeName): SignatureScheme => toScheme(name, fields)
const verified = { payload: {}, signedId: undefined }

describe('the id of a delivery', () => {
  for (const name of [
    'x-github-delivery',
    'webhook-id',
    'svix-id',
    'idempotency-key',
    'x-gitlab-event-uuid',
    'x-shopify-webhook-id',
    'linear-delivery',
    'request-id',
  ])
    it(`reads ${name} with hmac`, () => {
      assert.equal(getDeliveryId(hmac, { [name]: ['msg_1-a'] }), 'msg_1-a')
    })

  const headerOf: readonly [SchemeName, string][] = [
    ['github', 'x-github-delivery'],
    ['gitlab', 'webhook-id'],
    ['gitlab', 'idempotency-key'],
    ['gitlab', 'x-gitlab-event-uuid'],
    ['shopify', 'x-shopify-webhook-id'],
    ['shopify', 'shopify-webhook-id'],
    ['linear', 'linear-delivery'],
    ['sentry', 'request-id'],
  ]
  for (const [name, header] of headerOf)
    it(`reads ${header} with ${name}, which does not sign it`, () => {
      const headers = { [header]: ['a'], 'x-other-delivery': ['b'] }
      assert.equal(getDeliveryId(scheme(name), headers, verified), 'a')
    })

  it('takes a signed id however long, and no header beside it', () => {
    const signedId = 'm'.repeat(256)
    const headers = { 'svix-id': [signedId], 'webhook-id': ['of whoever sends it again'] }
    const found = getDeliveryId(scheme('standard-webhooks'), headers, { ...verified, signedId })
    assert.equal(found, signedId)
  })

  it('reads no header that the scheme does not have', () => {
    for (const name of ['stripe', 'slack', 'github', 'sentry'] as const)
      assert.equal(
        getDeliveryId(scheme(name), { 'webhook-id': ['a'], id: ['b'] }, verified),
        undefined,
      )
  })

  for (const [name, field] of [
    ['stripe', 'id'],
    ['slack', 'event_id'],
  ] as const)
    it(`reads ${field} of the verified body with ${name}, which signs it`, () => {
      const payload = { [field]: 'evt_1' }
      assert.equal(getDeliveryId(scheme(name), {}), undefined)
      assert.equal(getDeliveryId(scheme(name), {}, { ...verified, payload }), 'evt_1')
      for (const id of [true, null, '', ['a'], { a: 1 }])
        assert.equal(
          getDeliveryId(scheme(name), {}, { ...verified, payload: { [field]: id } }),
          undefined,
        )
      for (const odd of [null, 'text', 3, [], JSON.parse('{"__proto__":{"id":"x"}}') as unknown])
        assert.equal(getDeliveryId(scheme(name), {}, { ...verified, payload: odd }), undefined)
    })

  it('prefers the id that the signature covers to any other', () => {
    const headers = { 'webhook-id': ['unsigned'], 'svix-id': ['signed'] }
    for (const name of ['standard-webhooks', 'gitlab'] as const)
      assert.equal(
        getDeliveryId(scheme(name), headers, { ...verified, signedId: 'signed' }),
        'signed',
      )
  })

  it('takes up to 128 visible characters as they are', () => {
    assert.equal(getDeliveryId(hmac, { 'webhook-id': ['x'.repeat(128)] }), 'x'.repeat(128))
  })

  const hashed: readonly [string, string, string][] = [
    ['129 characters', 'x'.repeat(129), 'x'.repeat(130)],
    ['spaces', '2026-11-24 10:00:00 #5', '2026-11-24 10:00:00 #6'],
    ['an escape sequence', '\u001b[31m', '\u001b[32m'],
    ['characters beyond ASCII', 'é', 'è'],
  ]
  for (const [name, one, other] of hashed)
    it(`has a hash in place of ${name}, another one for each id`, () => {
      const inHeader = (value: string) => getDeliveryId(hmac, { 'x-github-delivery': [value] })
      const inBody = (id: string) =>
        getDeliveryId(scheme('stripe'), {}, { ...verified, payload: { id } })
      for (const idOf of [inHeader, inBody]) {
        assert.match(idOf(one) ?? '', /^sha256:[0-9a-f]{64}$/)
        assert.equal(idOf(one), idOf(one))
        assert.notEqual(idOf(one), idOf(other))
      }
    })

  for (const [name, values] of [
    ['an empty one', ['']],
    ['one sent twice', ['a', 'a']],
  ] as const)
    it(`gives none for ${name}`, () =>
      assert.equal(getDeliveryId(hmac, { 'x-github-delivery': values }), undefined))

  it('gives none without a header that it knows', () => {
    assert.equal(getDeliveryId(hmac, {}), undefined)
    assert.equal(getDeliveryId(hmac, { 'x-delivery': ['a'] }), undefined)
  })
})
