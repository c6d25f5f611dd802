import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { findHandshake, getReply } from '../../../../daemon/webhook/senders/handshakes.ts'
import { schemeNames } from '../../../../shared/signatures/presets.ts'
import type { HandshakeKind } from '../../../../shared/signatures/scheme.ts'
import { schemeNamed } from '../../../support/daemon/accepts.ts'

const find = (
  handshake: HandshakeKind,
  payload: unknown,
  headers: Readonly<Record<string, readonly string[]>> = {},
  secrets: readonly string[] = ['secret'],
) => findHandshake({ handshake }, headers, payload, () => secrets)

describe('a signed handshake', () => {
  const challenge = { type: 'url_verification', token: 'x', challenge: '3eZbrw1aBm2rZgRNFdxV' }

  it('is the challenge of Slack, at Slack alone', () => {
    for (const name of schemeNames) {
      const handshake = findHandshake(schemeNamed(name), {}, challenge)
      const isAnswered = handshake?.reply?.text === '3eZbrw1aBm2rZgRNFdxV'
      assert.equal(isAnswered, name === 'slack', name)
    }
  })

  it('is the ping of GitHub, at GitHub and for a described HMAC alone', () => {
    for (const name of schemeNames) {
      const { handshake } = schemeNamed(name)
      const found = findHandshake({ handshake }, { 'x-github-event': ['ping'] }, {})
      assert.equal(found?.status, handshake === 'github' ? 'ping' : undefined, name)
      assert.equal(found?.reply, undefined)
    }
    assert.equal(schemeNamed('hmac').handshake, 'github')
    for (const values of [['push'], ['ping', 'ping'], []])
      assert.equal(find('github', {}, { 'x-github-event': values }), undefined)
  })

  it('is nothing else that Slack sends', () => {
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
      assert.equal(find('slack', payload), undefined)
  })

  it('is the certificate check of a slash command, answered with nothing', () => {
    const handshake = find('slack', { ssl_check: '1', token: 'x' })
    assert.deepEqual([handshake?.status, handshake?.reply], ['challenge', { text: '' }])
  })

  it('gets back no more than 4,096 characters', () => {
    const long = { ...challenge, challenge: 'x'.repeat(100_000) }
    assert.equal(find('slack', long)?.reply?.text.length, 4096)
  })

  it('is the validation of Zoom, with the hash of its token', () => {
    const payload = {
      event: 'endpoint.url_validation',
      event_ts: 1_654_503_849_680,
      payload: { plainToken: 'qgg8vlvZRS6UYooatFL8Aw' },
    }
    const { text = '', type } = find('zoom', payload)?.reply ?? {}
    assert.equal(type, 'application/json')
    assert.deepEqual(JSON.parse(text), {
      plainToken: 'qgg8vlvZRS6UYooatFL8Aw',
      encryptedToken: createHmac('sha256', 'secret').update('qgg8vlvZRS6UYooatFL8Aw').digest('hex'),
    })
  })

  it('never makes Zoom a signature of something that could be a delivery', () => {
    for (const plainToken of ['v0:1654503849:{}', '', 'a b', 'x'.repeat(257), 7, null])
      assert.equal(
        find('zoom', { event: 'endpoint.url_validation', payload: { plainToken } }),
        undefined,
      )
    const payload = { event: 'endpoint.url_validation', payload: { plainToken: 'x' } }
    assert.equal(find('zoom', payload, {}, []), undefined)
  })

  it('is the challenge of Twitch by its header, and the end of a subscription', () => {
    const type = 'twitch-eventsub-message-type'
    const payload = { challenge: 'pogchamp-kappa-360noscope-vohiyo', subscription: {} }
    const found = find('twitch', payload, { [type]: ['webhook_callback_verification'] })
    assert.deepEqual(found?.reply, { text: 'pogchamp-kappa-360noscope-vohiyo' })
    assert.equal(find('twitch', payload, { [type]: ['notification'] }), undefined)
    assert.equal(find('twitch', payload), undefined)
    assert.match(find('twitch', {}, { [type]: ['revocation'] })?.detail ?? '', /ended/)
  })

  it('is the PING of Discord, for interactions and for events', () => {
    const interaction = { application_id: '1', id: '2', token: 'A_UNIQUE_TOKEN', version: 1 }
    const pong = { type: 'application/json', text: '{"type":1}' }
    assert.deepEqual(find('discord', { ...interaction, type: 1 })?.reply, pong)
    assert.equal(find('discord', { ...interaction, type: 2 }), undefined)
    // It comes with each key, and wants a list of choices.
    assert.equal(
      find('discord', { ...interaction, type: 4 })?.reply?.text,
      '{"type":8,"data":{"choices":[]}}',
    )
    const event = { version: 1, application_id: '1' }
    assert.deepEqual(find('discord', { ...event, type: 0 })?.reply, { code: 204, text: '' })
    assert.equal(find('discord', { ...event, type: 1, event: { type: 'X' } }), undefined)
  })

  it('is the challenge of monday.com as JSON', () => {
    const found = find('monday', { challenge: '3eZbrw1a' })?.reply
    assert.deepEqual(found, { type: 'application/json', text: '{"challenge":"3eZbrw1a"}' })
    assert.equal(find('monday', { challenge: 'x', event: {} }), undefined)
  })

  it('is a test of the address by HCP Terraform, Xero, Asana, Buildkite and Google Calendar', () => {
    const terraform = (trigger: string) => ({ notifications: [{ trigger }] })
    assert.equal(find('terraform', terraform('verification'))?.status, 'ping')
    assert.equal(find('terraform', terraform('run:completed')), undefined)
    assert.equal(find('xero', { events: [], firstEventSequence: 0 })?.status, 'ping')
    assert.equal(find('xero', { events: [{}] }), undefined)
    assert.equal(find('asana', { events: [] })?.status, 'ping')
    assert.equal(find('asana', { events: [{}] }), undefined)
    assert.equal(find('buildkite', {}, { 'x-buildkite-event': ['ping'] })?.status, 'ping')
    assert.equal(find('google-calendar', {}, { 'x-goog-resource-state': ['sync'] })?.status, 'ping')
    assert.equal(find('google-calendar', {}, { 'x-goog-resource-state': ['exists'] }), undefined)
  })

  it('names the address that Amazon SNS wants to be called', () => {
    const SubscribeURL = 'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription'
    const found = find('aws-sns', { Type: 'SubscriptionConfirmation', SubscribeURL })
    assert.equal(found?.confirm, SubscribeURL)
    assert.equal(find('aws-sns', { Type: 'Notification', SubscribeURL }), undefined)
    assert.match(find('aws-sns', { Type: 'UnsubscribeConfirmation' })?.detail ?? '', /ended/)
  })
})

describe('the response to a delivery', () => {
  const form = { 'content-type': ['application/x-www-form-urlencoded; charset=utf-8'] }

  it('is empty for every form of Slack, and as usual for its events', () => {
    assert.deepEqual(getReply(schemeNamed('slack'), form, {}), { text: '' })
    assert.equal(
      getReply(schemeNamed('slack'), { 'content-type': ['application/json'] }, {}),
      undefined,
    )
    assert.equal(getReply(schemeNamed('slack'), {}, {}), undefined)
    assert.equal(getReply(schemeNamed('github'), form, {}), undefined)
  })

  it('is what Discord shows to the person who asked, and nothing for its events', () => {
    const reply = getReply({ handshake: 'discord' }, {}, { type: 2, token: 'x' })
    assert.deepEqual(JSON.parse(reply?.text ?? ''), {
      type: 4,
      data: { content: 'Accepted.', flags: 64 },
    })
    assert.equal(getReply({ handshake: 'discord' }, {}, { type: 1, event: {} })?.code, 204)
  })
})
