import assert from 'node:assert/strict'
import { findHandshake, wantsEmptyAnswer } from '../../../daemon/webhook/pipeline.ts'
import { schemeNames } from '../../../shared/signatures/presets.ts'
import { schemeNamed } from '../../support/daemon/accepts.ts'

describe('handshakeOf', () => {
  const challenge = { type: 'url_verification', token: 'x', challenge: '3eZbrw1aBm2rZgRNFdxV' }

  it('answers the challenge of Slack, and of Slack alone', () => {
    for (const name of schemeNames) {
      const handshake = findHandshake(schemeNamed(name), {}, challenge)
      assert.equal(handshake?.text, name === 'slack' ? '3eZbrw1aBm2rZgRNFdxV' : undefined)
    }
  })

  it('answers the ping of GitHub, and of GitHub alone', () => {
    for (const name of schemeNames) {
      const handshake = findHandshake(schemeNamed(name), { 'x-github-event': ['ping'] }, {})
      const isPing = name === 'github' || name === 'hmac'
      assert.equal(handshake?.status, isPing ? 'ping' : undefined)
      assert.equal(handshake?.text, undefined)
    }
    for (const values of [['push'], ['ping', 'ping'], []])
      assert.equal(
        findHandshake(schemeNamed('github'), { 'x-github-event': values }, {}),
        undefined,
      )
  })

  it('takes nothing else of Slack for a handshake', () => {
    for (const payload of [
      null,
      'url_verification',
      [],
      {},
      { type: 'url_verification' },
      { type: 'url_verification', challenge: 3 },
      { type: 'event_callback', challenge: 'x' },
      { event: challenge },
      JSON.parse('{"__proto__":{"type":"url_verification","challenge":"x"}}') as unknown,
    ])
      assert.equal(findHandshake(schemeNamed('slack'), {}, payload), undefined)
  })

  it('answers the certificate check of a slash command with nothing', () => {
    const handshake = findHandshake(schemeNamed('slack'), {}, { ssl_check: '1', token: 'x' })
    assert.deepEqual([handshake?.status, handshake?.text], ['challenge', ''])
  })

  it('gives back no more than 4,096 characters', () => {
    const long = { ...challenge, challenge: 'x'.repeat(100_000) }
    assert.equal(findHandshake(schemeNamed('slack'), {}, long)?.text?.length, 4096)
  })
})

describe('wantsEmptyAnswer', () => {
  it('is so for every form of Slack, and for nothing else', () => {
    const form = 'application/x-www-form-urlencoded; charset=utf-8'
    assert.equal(wantsEmptyAnswer(schemeNamed('slack'), form), true)
    assert.equal(wantsEmptyAnswer(schemeNamed('slack'), 'application/json'), false)
    assert.equal(wantsEmptyAnswer(schemeNamed('slack'), undefined), false)
    assert.equal(wantsEmptyAnswer(schemeNamed('github'), form), false)
  })
})
