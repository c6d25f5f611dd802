import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { parseSnsUrl, RemoteKeys } from '../../../../daemon/webhook/senders/remote-keys.ts'
import { makeCertificates } from '../../../support/servers/private-network.ts'

const hour = 3_600_000
const unavailable = { code: 'unavailable' }
const refused = (localDetail: RegExp) => ({ code: 'signature-invalid', localDetail })

describe('the keys of Google', () => {
  const pair = generateKeyPairSync('rsa', { modulusLength: 2048 })
  let at = 0
  let asked: string[] = []
  let names: string[] | undefined
  const keys = () =>
    new RemoteKeys(
      async (url) => {
        asked.push(url.href)
        if (!names) throw new Error('down')
        const jwk = pair.publicKey.export({ format: 'jwk' })
        return JSON.stringify({ keys: names.map((kid) => ({ ...jwk, kid })) })
      },
      () => at,
    )
  beforeEach(() => {
    at = hour
    asked = []
    names = ['one']
  })

  it('are fetched from one address, once for many deliveries', async () => {
    const remote = keys()
    const found = Array.from({ length: 20 }, async () => remote.findOfGoogle('one'))
    assert.equal((await Promise.all(found)).length, 20)
    await remote.findOfGoogle('one')
    assert.deepEqual(asked, ['https://www.googleapis.com/oauth2/v3/certs'])
  })

  it('are fetched again for a new key, but not more than once a minute', async () => {
    const remote = keys()
    await remote.findOfGoogle('one')
    for (const kid of ['two', 'three'])
      await assert.rejects(remote.findOfGoogle(kid), refused(/does not have/))
    assert.equal(asked.length, 1)
    names = ['two']
    at += 61_000
    await remote.findOfGoogle('two')
    assert.equal(asked.length, 2)
  })

  it('serve for a day while Google cannot be reached', async () => {
    const remote = keys()
    await remote.findOfGoogle('one')
    names = undefined
    at += 23 * hour
    await remote.findOfGoogle('one')
    at += 2 * hour
    await assert.rejects(remote.findOfGoogle('one'), unavailable)
  })
})

describe('the certificates of Amazon SNS', () => {
  const good = 'https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-0000.pem'
  const message = (SigningCertURL: unknown) => Buffer.from(JSON.stringify({ SigningCertURL }))

  it('are on a host of SNS, by https', () => {
    for (const url of [
      good,
      'https://sns.cn-north-1.amazonaws.com.cn/x',
      'https://sns.us-gov-west-1.amazonaws.com/',
    ])
      assert.ok(parseSnsUrl(url), url)
    for (const url of [
      'http://sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com.evil.example/x.pem',
      'https://evil.example/sns.eu-west-1.amazonaws.com/x.pem',
      'https://evil.example#sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com@evil.example/x.pem',
      'https://a:b@sns.eu-west-1.amazonaws.com/x.pem',
      'https://sns.eu-west-1.amazonaws.com:8443/x.pem',
      'https://s3.eu-west-1.amazonaws.com/x.pem',
      'https://sns.evil.amazonaws.com.co/x.pem',
      'https://sns.amazonaws.com/x.pem',
      'https://127.0.0.1/x.pem',
      'file:///etc/passwd',
      '',
      7,
      undefined,
    ])
      assert.equal(parseSnsUrl(url), undefined, String(url))
  })

  it('are fetched from nowhere else, and only as a .pem', async () => {
    const asked: string[] = []
    const remote = new RemoteKeys(async (url) => {
      asked.push(url.href)
      return ''
    })
    for (const url of [
      'https://evil.example/x.pem',
      'https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=x',
      'https://sns.eu-west-1.amazonaws.com/a/../x.txt',
      `${good}?x=1`,
      `${good}?`,
      `${good}#1`,
      undefined,
    ])
      await assert.rejects(remote.findOfSns(message(url)), refused(/certificate/))
    await assert.rejects(remote.findOfSns(Buffer.from('x')), refused(/no message/))
    assert.deepEqual(asked, [])
  })

  it('are kept, must be valid now, and cannot be made to be fetched without end', async () => {
    const { cert, expiredCert } = await makeCertificates()
    let answer = cert
    let asked = 0
    const remote = new RemoteKeys(async () => {
      asked += 1
      return answer.toString()
    })
    const key = await remote.findOfSns(message(good))
    assert.equal(key.asymmetricKeyType, 'ec')
    await remote.findOfSns(message(good))
    assert.equal(asked, 1)
    answer = expiredCert
    const expired = good.replace('0000', '0001')
    await assert.rejects(remote.findOfSns(message(expired)), refused(/not valid now/))
    answer = Buffer.from('no certificate')
    for (let at = 0; at < 20; at += 1)
      await assert.rejects(remote.findOfSns(message(good.replace('0000', `1${at}`))), unavailable)
    assert.ok(asked <= 6, String(asked))
    await remote.findOfSns(message(good))
    // Nor can they keep the keys of Google from being fetched.
    const before = asked
    answer = Buffer.from('{"keys":[]}')
    await assert.rejects(remote.findOfGoogle('one'), refused(/does not have/))
    assert.equal(asked, before + 1)
  })
})
