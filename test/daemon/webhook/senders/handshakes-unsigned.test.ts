import assert from 'node:assert/strict'
import {
  findUnsignedHandshake,
  handshakeMethods,
} from '../../../../daemon/webhook/senders/handshakes-unsigned.ts'
import type { HandshakeKind } from '../../../../shared/signatures/scheme.ts'
import { prepareVerifier, type Verifier } from '../../../../daemon/webhook/signatures/verify.ts'
import { schemeNamed } from '../../../support/daemon/accepts.ts'

const withSecret = prepareVerifier(schemeNamed('github'), ['secret'])

type Sent = {
  readonly method?: string
  readonly query?: string
  readonly headers?: Readonly<Record<string, readonly string[]>>
  readonly body?: string
}

type Kept = {
  readonly verifier?: Verifier
  readonly confirm?: boolean
  readonly verifyTokens?: readonly string[]
}

const find = (
  handshake: HandshakeKind,
  { method = handshakeMethods({ handshake })[0] ?? '', query = '', headers = {}, body = '' }: Sent,
  { verifier = withSecret, confirm = false, verifyTokens = ['mine'] }: Kept = {},
) =>
  findUnsignedHandshake(
    {
      scheme: { handshake, title: 'a sender' },
      verifier,
      confirm,
      secretNames: ['HOOK_SECRET'],
      verifyTokens: () => verifyTokens,
    },
    { method, url: `/hook${query}`, headers, bytes: Buffer.from(body) },
  )

const unset = { verifier: 'unset' } as const
const refused = { code: 'signature-invalid' }
const unavailable = { code: 'unavailable' }

describe('a handshake without a signature', () => {
  it('is the challenge of Meta with the right verify token, and no other', () => {
    const query = (token: string) =>
      `?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=${token}`
    assert.deepEqual(find('meta', { query: query('mine') })?.reply, { text: '1158201444' })
    for (const bad of [
      query('other'),
      query(''),
      query('mine&hub.verify_token=mine'),
      '?hub.mode=subscribe',
    ])
      assert.throws(() => find('meta', { query: bad }), refused, bad)
    assert.throws(() => find('meta', { query: query('mine') }, { verifyTokens: [] }), refused)
    assert.throws(() => find('meta', { query: query('mine') }, { ...unset }), unavailable)
    assert.equal(find('meta', {}), undefined)
    assert.equal(find('meta', { method: 'POST', query: query('mine') }), undefined)
  })

  it('is the challenge of Dropbox and of Microsoft Graph, once there is a secret', () => {
    assert.deepEqual(find('dropbox', { query: '?challenge=a%20b' })?.reply, { text: 'a b' })
    assert.equal(find('dropbox', {}), undefined)
    assert.throws(() => find('dropbox', { query: '?challenge=x' }, unset), unavailable)
    const query = '?validationToken=Validation%3A%20Testing+client'
    assert.deepEqual(find('microsoft-graph', { query })?.reply, {
      text: 'Validation: Testing client',
    })
    assert.equal(find('microsoft-graph', { body: '{}' }), undefined)
    assert.throws(() => find('microsoft-graph', { query }, unset), unavailable)
    assert.equal(find('dropbox', { query: `?challenge=${'x'.repeat(4097)}` }), undefined)
  })

  it('is the HEAD of Trello and the OPTIONS of CloudEvents', () => {
    assert.deepEqual(find('trello', {})?.reply, { text: '' })
    assert.equal(find('trello', { method: 'GET' }), undefined)
    const headers = { 'webhook-request-origin': ['eventemitter.example.com'] }
    assert.deepEqual(find('cloudevents', { headers })?.reply.headers, {
      Allow: 'POST, OPTIONS',
      'WebHook-Allowed-Origin': 'eventemitter.example.com',
      'WebHook-Allowed-Rate': '*',
    })
    for (const origin of [[], ['a', 'b'], ['a\r\nb'], ['<b>'], ['']])
      assert.equal(
        find('cloudevents', { headers: { 'webhook-request-origin': origin } }),
        undefined,
      )
  })

  it('is the secret of Asana, with the consent of the owner and while there is none', () => {
    const secret = 'b537207f20cbfa02357cf448134da559e8bd39d61597dcd5631b8012eae53e81'
    const headers = { 'x-hook-secret': [secret] }
    const found = find('asana', { headers }, { ...unset, confirm: true })
    assert.equal(found?.secret, secret)
    assert.deepEqual(found.reply.headers, { 'X-Hook-Secret': secret })
    assert.doesNotMatch(found.detail, new RegExp(secret))
    assert.throws(() => find('asana', { headers }, unset), refused)
    assert.throws(() => find('asana', { headers }, { confirm: true }), refused)
    const odd = { 'x-hook-secret': ['short # x'] }
    assert.throws(() => find('asana', { headers: odd }, { ...unset, confirm: true }), refused)
    assert.equal(find('asana', { body: '{"events":[]}' }, { confirm: true }), undefined)
  })

  it('is the verification token of Notion while there is no secret, and only its owner sees it', () => {
    const token = 'secret_tMrlL1qK5vuQAh1b6cZGhFChZTSYJlce98V0pYn7yBl'
    const body = JSON.stringify({ verification_token: token })
    const found = find('notion', { body }, unset)
    assert.equal(found?.token, token)
    assert.doesNotMatch(found.detail + found.reply.text, /secret_/)
    assert.equal(find('notion', { body }), undefined)
    for (const other of ['{}', '{"verification_token":7}', `{"a":1,${body.slice(1)}`])
      assert.equal(find('notion', { body: other }, unset), undefined)
  })

  it('is the ping of WooCommerce', () => {
    assert.deepEqual(find('woocommerce', { body: 'webhook_id=42' })?.reply, { text: '' })
    for (const body of ['webhook_id=42&a=b', 'webhook_id=', '{}'])
      assert.equal(find('woocommerce', { body }), undefined)
    assert.throws(() => find('woocommerce', { body: 'webhook_id=42' }, unset), unavailable)
  })

  it('is none at other senders', () => {
    for (const kind of ['github', 'slack', 'zoom', 'twitch', 'discord', 'monday'] as const)
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'POST'])
        assert.equal(find(kind, { method, query: '?challenge=x&validationToken=y' }), undefined)
  })
})
