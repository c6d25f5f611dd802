import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import type { SignatureHeaders } from '../../../../daemon/webhook/signatures/header.ts'
import { diagnose } from '../../../../daemon/webhook/signatures/diagnosis.ts'
import type { SchemeName } from '../../../../shared/signatures/presets.ts'
import { distinct, refusalOf, schemeNamed } from '../../../support/daemon/accepts.ts'
import { type Headers, type Sender, senders } from '../../../support/servers/senders.ts'

const now = 1_790_000_000_000
const secret = 'the secret of the test'
const body =
  '{"action":"opened","url":"https://example.com/a","text":"tür ✓","list":[1,{"b":null}]}'
const hmac = (key: string | Buffer, text: string | Buffer = body, algorithm = 'sha256') =>
  createHmac(algorithm, key).update(text).digest()
const hex = (...args: Parameters<typeof hmac>) => hmac(...args).toString('hex')

type Case = {
  readonly scheme?: SchemeName
  readonly headers: SignatureHeaders
  readonly bytes?: string | Buffer
  readonly own?: readonly string[]
  readonly others?: readonly { path: string; secret: string }[]
  readonly nowMs?: number
}

/** What is found; first makes sure that it is refused, and that the finding gives nothing away. */
const finding = ({
  scheme = 'github',
  headers,
  bytes = body,
  own = [secret],
  others = [],
  nowMs = now,
}: Case): string => {
  const buffer = Buffer.from(bytes as string)
  assert.ok(refusalOf(scheme, own, headers, buffer, nowMs), 'it is not refused at all')
  const found = diagnose({
    bytes: buffer,
    headers,
    scheme: schemeNamed(scheme),
    secrets: { own, others },
    nowMs,
  })
  for (const value of [...own, ...others.map((other) => other.secret), hex(secret)])
    assert.ok(!found.includes(value.trim()), `it tells: ${found}`)
  assert.doesNotMatch(found, /[0-9a-f]{32}|[A-Za-z0-9+/]{40}/)
  return found
}

const github = (value: string): SignatureHeaders => ({ 'x-hub-signature-256': [value] })
const senderOf = (name: SchemeName): Sender => {
  const sender = senders.find(({ scheme }) => scheme === name)
  assert.ok(sender)
  return sender
}

describe('the diagnosis of a refused signature', () => {
  const good = hex(secret)

  it('finds SHA-1 for SHA-256, whatever its prefix', () => {
    for (const prefix of ['sha256=', 'sha1=', ''])
      assert.match(
        finding({ headers: github(`${prefix}${hex(secret, body, 'sha1')}`) }),
        /made with SHA-1/,
      )
  })

  const secretsCases: readonly [string, string, string | Buffer, RegExp][] = [
    ['a line break behind our secret', `${secret}\n`, secret, /white space or quotes are removed/],
    ['white space before our secret', ` ${secret}`, secret, /white space or quotes are removed/],
    ['quotes around our secret', `"${secret}"`, secret, /white space or quotes are removed/],
    [
      'single quotes and a line break',
      `'${secret}'\n`,
      secret,
      /white space or quotes are removed/,
    ],
  ]
  for (const [name, own, key, expected] of secretsCases)
    it(`finds ${name}`, () => {
      const headers = github(`sha256=${hex(key)}`)
      assert.match(finding({ headers, own: [own] }), expected)
    })

  it("finds the secret of another webhook, and says which webhook's", () => {
    const others = [
      { path: '/webhook/a', secret: 'first-of-others' },
      { path: '/webhook/b', secret: 'next-of-others' },
    ]
    const found = finding({ headers: github(`sha256=${hex('next-of-others')}`), others })
    assert.match(found, /^the secret of the webhook \/webhook\/b matches/)
  })

  it('finds a Standard Webhooks secret that is not decoded', () => {
    const own = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const signed = `msg_1.${now / 1000}.${body}`
    for (const key of [own, own.slice(6)])
      assert.match(
        finding({
          scheme: 'standard-webhooks',
          own: [own],
          headers: distinct({
            'webhook-id': 'msg_1',
            'webhook-timestamp': String(now / 1000),
            'webhook-signature': `v1,${hmac(key, signed).toString('base64')}`,
          }),
        }),
        /does not decode its base64/,
      )
  })

  it('finds a body that a relay parsed and wrote again with JSON.stringify', () => {
    const headers = github(`sha256=${hex(secret, JSON.stringify(JSON.parse(body)))}`)
    for (const received of [
      JSON.stringify(JSON.parse(body), null, 2),
      `${body}\n`,
      body.replaceAll('/', '\\/'),
    ])
      assert.match(
        finding({ headers, bytes: received }),
        /matches the body .* a relay such as smee/,
      )
  })

  it('names such relays where the body looks like theirs, and only there', () => {
    const headers = github(`sha256=${hex(secret, body.replaceAll('/', '\\/'))}`)
    assert.match(finding({ headers }), /none of the usual .* a relay such as smee .* by a tunnel$/)
    for (const bytes of [`${body} `, 'a=b', '\0'])
      assert.doesNotMatch(finding({ headers, bytes }), /smee/)
  })

  it('finds by how much a clock is wrong, while the signature matches', async () => {
    for (const name of ['stripe', 'slack', 'standard-webhooks'] as const) {
      const sender = senderOf(name)
      const text = sender.bodyAt(now)
      const headers = distinct(await sender.sign(text, now))
      const at = (nowMs: number) =>
        finding({ scheme: name, own: [sender.secret], headers, bytes: text, nowMs })
      assert.match(at(now + 412_000), /clock of this machine is 412 s fast/)
      assert.match(at(now - 7200_000), /clock of this machine is 7200 s slow/)
      const forged = finding({
        scheme: name,
        own: [sender.otherSecret],
        headers,
        bytes: text,
        nowMs: now + 412_000,
      })
      assert.match(forged, /none of the usual causes/)
    }
  })

  it('finds a header that came twice', () => {
    const value = `sha256=${good}`
    assert.match(
      finding({ headers: { 'x-hub-signature-256': [value, value] } }),
      /a proxy adds the header again/,
    )
  })

  it('finds that another sender signed, and names its scheme', async () => {
    for (const sender of senders) {
      // A form of GitHub or ClickUp, or a token whose header says nothing of the sender.
      if (['hmac', 'github', 'meta', 'intercom', 'lemon-squeezy'].includes(sender.scheme)) continue
      if (schemeNamed(sender.scheme).forms.at(-1)?.in && sender.scheme !== 'grafana') continue
      const headers = distinct(await sender.sign(body, now).catch((): Headers => ({})))
      const expected =
        sender.scheme === 'gitlab' && headers['webhook-signature']
          ? 'standard-webhooks'
          : sender.scheme
      assert.ok(
        finding({ headers }).endsWith(`set signature_scheme: ${expected}`),
        `${sender.name}: ${finding({ headers })}`,
      )
    }
    const ours = await senderOf('github').sign(body, now)
    assert.match(
      finding({ scheme: 'slack', headers: distinct(ours) }),
      /as github signs: set signature_scheme: github/,
    )
  })

  it('finds that SHA-1 alone was sent', () => {
    const headers = { 'x-hub-signature': [`sha1=${hex(secret, body, 'sha1')}`] }
    assert.match(finding({ headers }), /header with SHA-1 is present/)
  })

  it('finds that nothing was signed', () => {
    assert.match(finding({ headers: {} }), /no secret is set at the sender/)
    assert.match(finding({ scheme: 'gitlab', headers: {} }), /GitLab sends no token/)
    const authorization = [`Bearer ${secret}`]
    assert.match(finding({ headers: { authorization } }), /set signature_scheme: token$/)
  })

  it('finds what is wrong with a token of GitLab', () => {
    const at = (value: string, own: string, others: { path: string; secret: string }[] = []) =>
      finding({ scheme: 'gitlab', headers: { 'x-gitlab-token': [value] }, own: [own], others })
    assert.match(at('s3cr3t', 's3cr3t\n'), /white space or quotes are removed/)
    assert.match(at('s3cr3t ', 's3cr3t'), /the sender adds white space/)
    assert.match(at('0th3r', 's3cr3t', [{ path: '/b', secret: '0th3r' }]), /webhook \/b matches/)
    assert.match(at('x', 's3cr3t'), /differs from the token/)
    assert.match(at('x', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'), /is a signing token/)
  })

  it('says so when no usual cause fits', () => {
    assert.match(finding({ headers: github(`sha256=${hex('a third')}`) }), /none of the usual/)
    assert.match(finding({ headers: github('junk') }), /the signature cannot be read/)
    assert.match(finding({ headers: github('') }), /the signature cannot be read/)
  })

  it('says nothing of the secret where the signature cannot be computed', () => {
    const own = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
    const time = String(now / 1000)
    const unknown = 'a'.repeat(64)
    const standard = {
      'webhook-timestamp': time,
      'webhook-signature': `v1,${hmac('x').toString('base64')}`,
    }
    const cases: readonly [SchemeName, Headers][] = [
      ['slack', { 'x-slack-signature': `v0=${unknown}` }],
      ['slack', { 'x-slack-signature': `v0=${unknown}`, 'x-slack-request-timestamp': 'soon' }],
      ['standard-webhooks', { ...standard, 'webhook-id': '' }],
      ['standard-webhooks', standard],
      ['stripe', { 'stripe-signature': `t=${time},t=1,v1=${unknown}` }],
      ['stripe', { 'stripe-signature': `t=${now},v1=${unknown}` }],
      ['stripe', { 'stripe-signature': `v1=${unknown}` }],
      ['stripe', { 'stripe-signature': `t=${time},v0=${unknown}` }],
      ['github', { 'x-hub-signature-256': `sha256=${unknown.slice(1)}` }],
    ]
    for (const [scheme, headers] of cases)
      assert.match(
        finding({ scheme, own: [own], headers: distinct(headers) }),
        /^the signature cannot be read/,
        JSON.stringify(headers),
      )
    assert.match(
      finding({
        scheme: 'stripe',
        headers: { 'stripe-signature': [`t=${time},v1=${unknown}`] },
      }),
      /the sender has another secret/,
    )
  })

  it('stays quick whatever is sent', () => {
    const large = Buffer.alloc(5 * 1024 * 1024, 0x20)
    const nested = '['.repeat(100_000) + ']'.repeat(100_000)
    // Small to send, and gigabytes when it is written with each item indented.
    const items = Array.from({ length: 110_000 }, () => '1').join(',')
    const steep = '['.repeat(3500) + items + ']'.repeat(3500)
    const others = Array.from({ length: 5000 }, (_, at) => ({ path: `/${at}`, secret: `s${at}` }))
    const wrong = 'ab'.repeat(32)
    const started = performance.now()
    for (const [headers, bytes] of [
      [github(`sha256=${wrong}`), large],
      [github(`sha256=${wrong}`), nested],
      [github(`sha256=${wrong}`), steep],
      [github(`sha256=${wrong}`), `"${'\\u00e9'.repeat(40_000)}"`],
      [github(`sha256=${wrong},`.repeat(1000)), body],
      [github('a'.repeat(16_000)), body],
      [github(','.repeat(16_000)), body],
      [github(' '.repeat(16_000)), body],
    ] as const)
      assert.ok(finding({ headers, bytes, others }).length > 10)
    for (const value of [
      't=1,'.repeat(4000),
      'v1='.repeat(5000),
      `t=${'9'.repeat(9000)},v1=${wrong}`,
    ])
      assert.ok(finding({ scheme: 'stripe', headers: { 'stripe-signature': [value] } }))
    for (const value of ['v1,'.repeat(5000), 'v1,a '.repeat(3000)])
      assert.ok(
        finding({
          scheme: 'standard-webhooks',
          own: ['whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'],
          headers: { 'webhook-signature': [value] },
        }),
      )
    assert.ok(performance.now() - started < 3000)
  })
})
