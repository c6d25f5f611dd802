import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { prepareVerifier, verify } from '../../../../daemon/webhook/signatures/verify.ts'
import type { SchemeName } from '../../../../shared/signatures/presets.ts'
import { distinct, schemeNamed } from '../../../support/daemon/accepts.ts'

/** Examples that senders publish, with the page of each. */
type Example = {
  readonly scheme: SchemeName
  readonly secret: string
  readonly body: string
  readonly header: string
  readonly value: string
  readonly url?: string
}

const atlassian = {
  secret: "It's a Secret to Everybody",
  body: 'Hello World!',
  header: 'x-hub-signature',
  value: 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9',
}
const circleci = { scheme: 'circleci', header: 'circleci-signature' } as const

const examples: readonly Example[] = [
  // https://support.atlassian.com/bitbucket-cloud/docs/manage-webhooks/
  { scheme: 'bitbucket', ...atlassian },
  // https://developer.atlassian.com/cloud/jira/platform/webhooks/
  { scheme: 'jira', ...atlassian },
  // https://circleci.com/docs/guides/integration/outbound-webhooks/
  {
    ...circleci,
    secret: 'secret',
    body: 'hello world',
    value: 'v1=734cc62f32841568f45715aeb9f4d7891324e6d948e4c6c60c0621cdac48623a',
  },
  {
    ...circleci,
    secret: 'another-secret',
    body: 'lalala',
    value: 'v1=daa220016c8f29a8b214fbfc3671aeec2145cfb1e6790184ffb38b6d0425fa00',
  },
  {
    ...circleci,
    secret: 'hunter123',
    body: 'an-important-request-payload',
    value: 'v1=9be2242094a9a8c00c64306f382a7f9d691de910b4a266f67bd314ef18ac49fa',
  },
  // https://developer.squareup.com/docs/webhooks/step3validate
  {
    scheme: 'square',
    secret: 'asdf1234',
    body: '{"hello":"world"}',
    header: 'x-square-hmacsha256-signature',
    value: '2kRE5qRU2tR+tBGlDwMEw2avJ7QM4ikPYD/PJ3bd9Og=',
    url: '/webhook',
  },
]

describe('the example that a sender publishes', () => {
  for (const { scheme, secret, body, header, value, url = '/' } of examples) {
    const verifier = prepareVerifier(schemeNamed(scheme), [secret], 'https://example.com')
    const check = (text: string) =>
      verify(Buffer.from(text), distinct({ [header]: value }), verifier, 0, { method: 'POST', url })

    it(`is accepted: ${scheme}, ${body}`, () => {
      assert.equal(check(body).bytes.toString(), body)
      assert.throws(() => check(`${body} `), { code: 'signature-invalid' })
    })
  }
})

describe('two signatures while a secret is rotated', () => {
  it('are accepted from PagerDuty if either fits', () => {
    const verifier = prepareVerifier(schemeNamed('pagerduty'), ['key'])
    const sign = (key: string) => `v1=${createHmac('sha256', key).update('{}').digest('hex')}`
    const check = (...keys: string[]) => {
      const value = keys.map(sign).join(',')
      return verify(Buffer.from('{}'), { 'x-pagerduty-signature': [value] }, verifier, 0)
    }
    assert.ok(check('old', 'key'))
    assert.ok(check('key', 'old'))
    assert.throws(() => check('old', 'older'), { code: 'signature-invalid' })
  })
})
