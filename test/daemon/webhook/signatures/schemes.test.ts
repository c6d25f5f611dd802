import assert from 'node:assert/strict'
import type { SignatureHeaders } from '../../../../daemon/webhook/signatures/header.ts'
import { presetSchemes } from '../../../../shared/signatures/presets.ts'
import { distinct, refusalOf, schemeNamed } from '../../../support/daemon/accepts.ts'
import { type Headers, type Sender, senders } from '../../../support/servers/senders.ts'

const now = 1_790_000_000_000

const refusal = (sender: Sender, headers: SignatureHeaders, body: string, nowMs: number) =>
  refusalOf(sender.scheme, [sender.secret], headers, Buffer.from(body), nowMs)

/** The header of this request that holds the signature. */
const signatureHeader = ({ scheme }: Sender, headers: Headers): string => {
  const form = schemeNamed(scheme).forms.find(({ header }) => headers[header] !== undefined)
  assert.ok(form)
  return form.header
}

/** What is signed for one of them is signed for the others. */
const signAlike = [
  ['hmac', 'github', 'meta'],
  ['bitbucket', 'jira'],
  ['token', 'alertmanager', 'cloudevents', 'grafana'],
  ['azure-devops', 'alertmanager', 'grafana'],
]

/** What can happen to the value of a header, by name. */
const mutations: Readonly<Record<string, (value: string) => string>> = {
  'its last character is missing': (value) => value.slice(0, -1),
  'its last two characters are missing': (value) => value.slice(0, -2),
  'half of it is missing': (value) => value.slice(0, value.length / 2),
  'it is empty': () => '',
  'a character is appended': (value) => `${value}0`,
  'two characters are appended': (value) => `${value}00`,
  'an = is appended': (value) => `${value}=`,
  'its first character is missing': (value) => value.slice(1),
  'its last digit is another one': (value) =>
    value.replace(/[0-9A-Za-z](=*)$/, (end) => (end.startsWith('1') ? '2' : '1') + end.slice(1)),
  'a digit in its middle is another one': (value) => {
    const at = Math.floor(value.length * 0.7)
    return value.slice(0, at) + (value[at] === '5' ? '6' : '5') + value.slice(at + 1)
  },
  'its letters are in upper case': (value) => value.toUpperCase(),
  'its letters are in lower case': (value) => value.toLowerCase(),
  'it is there twice, joined': (value) => `${value}, ${value}`,
  'it stands in quotes': (value) => `"${value}"`,
  'it is full-width': (value) =>
    value.replaceAll(/[0-9]/g, (digit) => String.fromCharCode(digit.charCodeAt(0) + 0xfee0)),
  'it has a NUL in it': (value) => `${value.slice(0, 20)}\0${value.slice(20)}`,
  'it is the name of a property of every object': () => '__proto__',
  'it has another prefix': (value) => value.replace(/^(sha256|v0|v1|t)/, 'v9'),
  'it has no prefix': (value) => value.replace(/^(sha256=|v0=|v1,)/, ''),
  'it says sha1': (value) => value.replace(/^sha256=/, 'sha1='),
  'it is in hex for base64, or the other way': (value) => {
    const [, prefix = '', text = ''] = /^(sha256=|v0=|v1,|t=\d+,v1=)?(.*)$/.exec(value) ?? []
    const isHex = /^[0-9a-f]{64}$/.test(text)
    return prefix + Buffer.from(text, isHex ? 'hex' : 'base64').toString(isHex ? 'base64' : 'hex')
  },
}

/** Junk that some packages pass over (`parseInt`, `split`), that no sender sends, and that we refuse. */
const sloppy = new Set(['an = is appended', 'it is there twice, joined', 'it has a NUL in it'])

describe('the table of signature schemes', () => {
  it('says where each line of it comes from', () => {
    for (const { source } of presetSchemes) assert.match(source, /^https:\/\//)
  })

  for (const sender of senders)
    describe(sender.name, () => {
      const signed = async (nowMs: number, secret?: string) => {
        const body = sender.bodyAt(nowMs)
        return { body, headers: await sender.sign(body, nowMs, secret) }
      }

      it('is accepted', async () => {
        const at = sender.usesRealClock ? Date.now() : now
        const request = await signed(at)
        assert.equal(refusal(sender, distinct(request.headers), request.body, at), undefined)
        if (sender.accepts) assert.equal(await sender.accepts(request, at), true)
      })

      it('is refused when another secret signed', async () => {
        const { headers, body } = await signed(now, sender.otherSecret)
        assert.ok(refusal(sender, distinct(headers), body, now))
      })

      it('is accepted while the secret is one of several, in whichever place', async () => {
        const { headers, body } = await signed(now)
        for (const secrets of [
          [sender.otherSecret, sender.secret],
          [sender.secret, sender.otherSecret],
          ['third of the test', sender.otherSecret, sender.secret],
        ])
          assert.equal(
            refusalOf(sender.scheme, secrets, distinct(headers), Buffer.from(body), now),
            undefined,
          )
      })

      it('is refused without its header, or with it twice', async () => {
        const { headers, body } = await signed(now)
        const name = signatureHeader(sender, headers)
        const { [name]: value = '', ...without } = headers
        assert.match(refusal(sender, distinct(without), body, now) ?? '', /^there is no /)
        for (const values of [
          [value, value],
          [value, 'x'],
          ['x', value],
        ])
          assert.match(
            refusal(sender, { ...distinct(headers), [name]: values }, body, now) ?? '',
            /is there more than once/,
          )
      })

      it('is refused with any header of its signature changed, as its own package refuses it', async () => {
        const at = sender.usesRealClock ? Date.now() : now
        const { headers, body } = await signed(at)
        const form = schemeNamed(sender.scheme).forms.find(({ header }) => headers[header])
        const names = [form?.header, form?.timestampHeader, form?.idHeader]
        for (const name of names.filter((known) => known !== undefined))
          for (const [what, mutate] of Object.entries(mutations)) {
            const value = mutate(headers[name] ?? '')
            if (value === headers[name]) continue
            // Of several signatures any may fit, and the word Bearer has no case.
            if (!sender.accepts && form?.list !== 'one' && what.includes('joined')) continue
            if (form?.in !== undefined && what.includes('lower case')) continue
            const changed = { ...headers, [name]: value }
            const why = refusal(sender, distinct(changed), body, at)
            const theirs = await sender.accepts?.({ headers: changed, body }, at)
            if (why === undefined) assert.equal(theirs, true, `only we accept ${name}: ${what}`)
            else if (theirs === true) assert.ok(sloppy.has(what), `only we refuse ${name}: ${what}`)
          }
      })

      it('takes nothing for the signature of a body with one bit changed', async () => {
        const { headers, body } = await signed(now)
        const form = schemeNamed(sender.scheme).forms.find(({ header }) => headers[header])
        if (form?.check === 'token') return
        const bytes = Buffer.from(body)
        for (let at = 0; at < bytes.length; at += 1) {
          const changed = Buffer.from(bytes)
          changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8))
          assert.ok(
            refusalOf(sender.scheme, [sender.secret], distinct(headers), changed, now),
            `byte ${at}`,
          )
        }
      })

      it('refuses every signature that another sender would make with the same secret', async () => {
        const { body } = await signed(now)
        for (const other of senders) {
          if (other.scheme === sender.scheme) continue
          const isSame = (names: readonly string[]) =>
            names.includes(other.scheme) && names.includes(sender.scheme)
          if (signAlike.some(isSame)) continue
          const secret = other.secret.startsWith('whsec_') ? other.secret : sender.secret
          const headers = await other.sign(body, now, secret).catch(() => undefined)
          if (!headers || sender.scheme === 'gitlab' || other.scheme === 'gitlab') continue
          assert.ok(refusal(sender, distinct(headers), body, now), other.name)
        }
      })
    })
})

describe('the time in a signature', () => {
  const at = (name: string) => {
    const sender = senders.find((known) => known.scheme === name)
    assert.ok(sender)
    return sender
  }
  const refusedAt = async (sender: Sender, signedMs: number, nowMs: number) => {
    const body = sender.bodyAt(signedMs)
    return refusal(sender, distinct(await sender.sign(body, signedMs)), body, nowMs)
  }

  for (const name of ['stripe', 'slack', 'standard-webhooks', 'gitlab'])
    it(`may be 300 s old or ahead with ${name}, and no second more`, async () => {
      const sender = at(name)
      for (const offset of [-300, -299, 0, 1, 299, 300])
        for (const part of [0, 999])
          assert.equal(
            await refusedAt(sender, now, now + offset * 1000 + part),
            undefined,
            `${offset}`,
          )
      assert.match((await refusedAt(sender, now, now + 301_000)) ?? '', /301 s in the past/)
      assert.match((await refusedAt(sender, now, now - 300_001)) ?? '', /301 s in the future/)
      assert.match((await refusedAt(sender, now + 86_400_000 * 365, now)) ?? '', /in the future/)
    })

  for (const name of ['stripe', 'slack'])
    it(`is as old as the package of ${name} lets it be`, async () => {
      const sender = at(name)
      const body = sender.bodyAt(now)
      const headers = await sender.sign(body, now)
      for (const offset of [0, 1, 299_000, 299_999, 300_000, 300_999, 301_000, 400_000, 9e9]) {
        const theirs = await sender.accepts?.({ headers, body }, now + offset)
        const ours = refusal(sender, distinct(headers), body, now + offset) === undefined
        assert.equal(ours, theirs, `${offset} ms`)
      }
    })

  it('may be 60 s old or ahead in the body of Linear, to the millisecond', async () => {
    const linear = at('linear')
    for (const offset of [-60_000, -1, 0, 1, 60_000])
      assert.equal(await refusedAt(linear, now, now + offset), undefined)
    assert.match((await refusedAt(linear, now, now + 60_001)) ?? '', /61 s in the past/)
    assert.match((await refusedAt(linear, now, now - 60_001)) ?? '', /61 s in the future/)
  })

  it('is needed in the body of Linear, as a number, as its own package needs it', async () => {
    const linear = at('linear')
    const real = Date.now()
    for (const [stamp, fits] of [
      [real, true],
      [real + 0.5, true],
      [String(real), false],
      [null, false],
      [undefined, false],
      [Math.floor(real / 1000), false],
      [[real], false],
      [{}, false],
      [true, false],
    ] as const) {
      const body = JSON.stringify({ type: 'Issue', webhookTimestamp: stamp })
      const headers = await linear.sign(body, real)
      assert.equal(refusal(linear, distinct(headers), body, real) === undefined, fits)
      assert.equal(await linear.accepts?.({ headers, body }, real), fits)
    }
    for (const body of [
      '[]',
      'null',
      '3',
      '"x"',
      `{"__proto__":{"webhookTimestamp":${real}}}`,
      '{',
    ])
      assert.ok(refusal(linear, distinct(await linear.sign(body, real)), body, real), body)
  })

  for (const text of [
    '',
    ' ',
    '1e9',
    '1.79e9',
    '0x6ab13b80',
    '+1790000000',
    '-1',
    '01790000000',
    '1790000000.0',
    '1790000000 ',
    'NaN',
    'Infinity',
    '１７９０００００００',
    '9'.repeat(400),
  ])
    it(`is refused when it is written as ${JSON.stringify(text.slice(0, 20))}`, async () => {
      for (const [name, header] of [
        ['slack', 'x-slack-request-timestamp'],
        ['standard-webhooks', 'webhook-timestamp'],
      ] as const) {
        const sender = at(name)
        const body = sender.bodyAt(now)
        const headers = { ...(await sender.sign(body, now)), [header]: text }
        assert.match(refusal(sender, distinct(headers), body, now) ?? '', /not a time/)
      }
      const stripe = at('stripe')
      const body = stripe.bodyAt(now)
      const { 'stripe-signature': value = '' } = await stripe.sign(body, now)
      const changed = { 'stripe-signature': value.replace(/^t=\d+/, `t=${text}`) }
      assert.ok(refusal(stripe, distinct(changed), body, now))
    })
})

describe('several signatures in one header', () => {
  const [stripe, standard] = ['stripe', 'standard-webhooks'].map((name) =>
    senders.find(({ scheme }) => scheme === name),
  ) as [Sender, Sender]

  it('is how Stripe rolls a secret: any v1 may fit, v0 counts for nothing', async () => {
    const body = stripe.bodyAt(now)
    const { 'stripe-signature': value = '' } = await stripe.sign(body, now)
    const [t = '', v1 = ''] = value.split(',')
    const wrong = `v1=${'0'.repeat(64)}`
    for (const [header, fits] of [
      [`${t},${wrong},${v1}`, true],
      [`${t},${v1},${wrong}`, true],
      [`${t},v1=junk,${v1}`, true],
      [`${t},v0=${'0'.repeat(64)},${v1}`, true],
      [`${v1},${t}`, true],
      [`${t},${v1.replace('v1', 'v0')}`, false],
      [`${t},${v1.replace('v1', 'v2')}`, false],
      [`${t},${wrong}`, false],
      [t, false],
      [v1, false],
      [`${t}${v1}`, false],
    ] as const) {
      const headers = { 'stripe-signature': header }
      assert.equal(refusal(stripe, distinct(headers), body, now) === undefined, fits, header)
      assert.equal(await stripe.accepts?.({ headers, body }, now), fits, header)
    }
    // Two times could be meant for two readers.
    const twice = { 'stripe-signature': `t=1,${t},${v1}` }
    assert.match(refusal(stripe, distinct(twice), body, now) ?? '', /more than one "t="/)
    const flood = { 'stripe-signature': `${t},${Array(21).fill(wrong).join(',')},${v1}` }
    assert.match(refusal(stripe, distinct(flood), body, now) ?? '', /more than 20/)
  })

  it('is how Standard Webhooks rolls a secret: any v1 may fit, v1a is passed over', async () => {
    const real = Date.now()
    const body = standard.bodyAt(real)
    const headers = await standard.sign(body, real)
    const good = headers['webhook-signature'] ?? ''
    const wrong = `v1,${Buffer.alloc(32).toString('base64')}`
    const asymmetric = `v1a,${Buffer.alloc(64).toString('base64')}`
    for (const [value, fits] of [
      [`${wrong} ${good}`, true],
      [`${good} ${wrong}`, true],
      [`${asymmetric} ${good}`, true],
      [`v1,junk ${good}`, true],
      [`v2,x ${good}`, true],
      [good.replace('v1,', 'v1a,'), false],
      [asymmetric, false],
      [wrong, false],
      [good.replace('v1,', 'v2,'), false],
      [`${wrong},${good}`, false],
    ] as const) {
      const changed = { ...headers, 'webhook-signature': value }
      assert.equal(refusal(standard, distinct(changed), body, real) === undefined, fits, value)
      assert.equal(await standard.accepts?.({ headers: changed, body }, real), fits, value)
    }
  })

  it('takes only the one base64 text of a MAC', async () => {
    const body = standard.bodyAt(now)
    const headers = await standard.sign(body, now)
    const good = headers['webhook-signature'] ?? ''
    const spare = good.replace(/(.)=$/, (_, last: string) => `${next(last)}=`)
    assert.deepEqual(Buffer.from(spare.slice(3), 'base64'), Buffer.from(good.slice(3), 'base64'))
    for (const value of [spare, good.slice(0, -1), `${good}=`, good.replace('v1,', 'v1, ')])
      assert.ok(refusal(standard, distinct({ ...headers, 'webhook-signature': value }), body, now))
  })

  /** The digit after this one, which differs in bits that mean nothing at the end. */
  const next = (digit: string): string => {
    const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    return digits[digits.indexOf(digit) + 1] ?? ''
  }

  it('does not let an id reach into the time or the body (full stops)', async () => {
    // Signed once as id "a", time 5, body "….{now}.{…}": read as another id, time and body.
    const inner = '{"evil":true}'
    const body = `{"text":"x.${now / 1000}.${inner}`
    const headers = await standard.sign(body, 5000)
    const id = `${headers['webhook-id']}.5.{"text":"x`
    const forged = { ...headers, 'webhook-id': id, 'webhook-timestamp': String(now / 1000) }
    assert.match(refusal(standard, distinct(forged), inner, now) ?? '', /no id may have/)
  })
})

describe('GitLab', () => {
  const [signedSender, tokenSender] = senders.filter(({ scheme }) => scheme === 'gitlab') as [
    Sender,
    Sender,
  ]
  const body = '{"object_kind":"push"}'
  const accepted = (secrets: readonly string[], headers: Headers) =>
    refusalOf('gitlab', secrets, distinct(headers), Buffer.from(body), now) === undefined

  it('is never taken by its token where the secret is a signing token', async () => {
    const { secret } = signedSender
    const token = { 'x-gitlab-token': secret }
    assert.equal(accepted([secret], token), false)
    const headers = await signedSender.sign(body, now)
    const broken = { ...headers, ...token, 'webhook-signature': 'v1,AAAA' }
    assert.equal(accepted([secret], broken), false)
    assert.equal(accepted([secret], { ...headers, 'x-gitlab-token': 'wrong' }), true)
  })

  it('is taken by a plain token though it sends id and time with it, as GitLab does', async () => {
    assert.equal(accepted([tokenSender.secret], await tokenSender.sign(body, now)), true)
  })

  it('commits to the signature while both kinds of secret are there', async () => {
    const secrets = [tokenSender.secret, signedSender.secret]
    const both = { ...(await tokenSender.sign(body, now)), ...(await signedSender.sign(body, now)) }
    assert.equal(accepted(secrets, both), true)
    assert.equal(accepted(secrets, { ...both, 'webhook-signature': 'v1,AAAA' }), false)
    assert.equal(accepted(secrets, await tokenSender.sign(body, now)), true)
  })

  it('compares tokens as bytes, whatever they hold', async () => {
    for (const secret of ['tür', '✓ token', 'a', 'x'.repeat(4000)]) {
      assert.equal(accepted([secret], await tokenSender.sign(body, now, secret)), true)
      assert.equal(accepted([secret], { 'x-gitlab-token': `${secret}x` }), false)
      assert.equal(accepted([secret], { 'x-gitlab-token': '' }), false)
    }
  })
})

describe('a secret that is none of its scheme', () => {
  it('verifies nothing', async () => {
    for (const secret of [
      'whsec_',
      'whsec_not base64!',
      'whsec_A',
      ' whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    ])
      assert.throws(() => refusalOf('standard-webhooks', [secret], {}, Buffer.from('{}'), now), {
        code: 'unavailable',
      })
  })
})
