import assert from 'node:assert/strict'
import { parse } from '../../../daemon/webhook/read-delivery.ts'
import { verify } from '../../../daemon/webhook/signatures/verify.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { presetScheme } from '../../../shared/signatures/presets.ts'

const parsed = (
  body: string | Buffer,
  contentType: string | undefined = 'application/json',
  contentEncoding?: string,
  scheme: Parameters<typeof parse>[2] = {},
) =>
  parse(
    verify(Buffer.from(body), {}, 'none', 0),
    { 'content-type': contentType, 'content-encoding': contentEncoding },
    scheme,
  )

const form = 'application/x-www-form-urlencoded'

describe('parse', () => {
  const taken: readonly [string, unknown, string?, string?][] = [
    ['{"a":1}', { a: 1 }],
    ['null', null],
    [' "text" ', 'text'],
    ['\ufeff{"a":1}', { a: 1 }],
    ['{"a":1}', { a: 1 }, 'application/json; charset=utf-8'],
    ['{"a":1}', { a: 1 }, 'application/cloudevents+json'],
    ['{"a":1}', { a: 1 }, 'application/json', 'identity'],
    ['{"a":1}', { a: 1 }, 'application/json', ''],
    ['{"a":1}', { a: 1 }, ''],
    ['a=1&b=x+y', { a: '1', b: 'x y' }, form],
    ['payload=%7B%22a%22%3A%22b+c%22%7D', { a: 'b c' }, form],
    ['x=1&payload=null&y=2', null, form],
    ['payload=%22%C3%A9%f0%9f%98%80%22&x=100%&y=%zz', 'é😀', form],
    ['{"a":1,"a":2}', { a: 2 }],
    // What JavaScript would round is text.
    ['9007199254740991', 9007199254740991],
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['[1234567890123456789,1]', ['1234567890123456789', 1]],
    [
      '{"12345678901234567890":1.2345678901234567,"b":"x 12345678901234567890\\""}',
      { '12345678901234567890': 1.2345678901234567, b: 'x 12345678901234567890"' },
    ],
    ['{"a": 12345678901234567890 }', { a: '12345678901234567890' }],
    ['[1e20,100000000000000000000.5,10000000000000000000E1]', [1e20, 1e20, 1e20]],
    ['payload=%7B%22a%22%3A12345678901234567890%7D', { a: '12345678901234567890' }, form],
  ]
  for (const [body, value, type, encoding] of taken)
    it(`reads ${JSON.stringify(body)} as ${type ?? 'JSON'}`, () => {
      assert.deepEqual(parsed(body, type, encoding), value)
    })

  it('reads a large integer as text wherever it stands in a long body', () => {
    const large = '9007199254740993'
    const piece = 32 * 1024
    for (const cut of [piece, 2 * piece, 3 * piece])
      for (let at = cut - 64; at < cut + 16; at += 1)
        for (const behind of ['', 'x'.repeat(piece)]) {
          const before = `["${'x'.repeat(at - 4)}",`
          assert.equal(before.length, at)
          const body = `${before}${large},"${behind}"]`
          assert.deepEqual((parsed(body) as unknown[])[1], large, `at ${at} of ${body.length}`)
        }
  })

  const refused: readonly [string, string | Buffer, string, string?, string?][] = [
    ['an empty body', '', 'payload-not-json'],
    ['white space', ' \n', 'payload-not-json'],
    ['broken JSON', '{"a":', 'payload-not-json'],
    ['a number as a name', '{12345678901234567890:1}', 'payload-not-json'],
    ['a number as a later name', '{"a":1,12345678901234567890 :1}', 'payload-not-json'],
    ['a number with a zero in front', '012345678901234567890', 'payload-not-json'],
    ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'payload-not-json'],
    ['UTF-16', Buffer.from('{}', 'utf16le'), 'payload-not-json'],
    ['a form whose payload is no JSON', 'payload=secret-word', 'payload-not-json', form],
    ['an empty form', '', 'media-type-unsupported', form],
    ['a form of 101 fields', 'a&'.repeat(100), 'media-type-unsupported', form],
    ['text without a content type', 'hello', 'payload-not-json', ''],
    ['JSON that is called a form', '{"a":"&payload={}&"}', 'media-type-unsupported', form],
    ['the same, after white space', ' \n{"a":"&payload={}&"}', 'media-type-unsupported', form],
    ['a JSON text that is called a form', '"&payload={}&"', 'media-type-unsupported', form],
    [
      'a multipart form that is called a form',
      '--b\r\n&payload={}&',
      'media-type-unsupported',
      form,
    ],
    ['a form that codes no UTF-8', 'payload=%7B%22a%22%3A%22%E9%22%7D', 'payload-not-json', form],
    ['a form with a surrogate', 'payload=1&%ED%A0%80=x', 'payload-not-json', form],
    ['a form with two payloads', 'payload=1&payload=2', 'media-type-unsupported', form],
    ['text', '{}', 'media-type-unsupported', 'text/plain'],
    ['a type that only begins like JSON', '{}', 'media-type-unsupported', 'application/jsonx'],
    ['gzip', '{}', 'media-type-unsupported', 'application/json', 'gzip'],
    ['gzip behind identity', '{}', 'media-type-unsupported', 'application/json', 'identity, gzip'],
  ]
  for (const [name, body, code, type, encoding] of refused)
    it(`refuses ${name}`, () => {
      assert.throws(() => parsed(body, type, encoding), { code })
    })

  it('tells the owner, and not the sender, what came instead', () => {
    for (const [body, type, encoding, told] of [
      [
        '{}',
        'text/plain; charset=utf-8',
        undefined,
        'the body is text/plain: send application/json',
      ],
      ['', form, undefined, 'the body is a form: a form needs a field'],
      [
        'payload=1&payload=2',
        form,
        undefined,
        'the body is a form: a form needs exactly one field named payload',
      ],
      [
        '{}',
        form,
        undefined,
        'the body is JSON that is called a form: send it as application/json',
      ],
      [
        '{}',
        'application/json',
        'gzip',
        'the body has the content encoding gzip: send the body without a content encoding',
      ],
    ] as const)
      assert.throws(
        () => parsed(body, type, encoding),
        (error: unknown) => {
          assert.ok(error instanceof DoorwardError)
          assert.equal(error.localDetail, told)
          assert.equal(error.message, 'unsupported content type')
          return true
        },
      )
  })

  it('reads a form without a payload as its fields', () => {
    const fields = parsed('command=%2Fdo&text=a+b&text=c&__proto__=x', form)
    assert.deepEqual(Object.entries(fields as object), [
      ['command', '/do'],
      ['text', 'c'],
      ['__proto__', 'x'],
    ])
  })

  it('takes no header of a mail for its whole payload, and none for another that it hides', () => {
    const mailgun = presetScheme('mailgun')
    const headers = 'sender=me%40evil.example&sender=boss%40example.com&payload=%7B%22a%22%3A1%7D'
    assert.deepEqual(parsed(headers, form, undefined, mailgun), {
      sender: ['me@evil.example', 'boss@example.com'],
      payload: '{"a":1}',
    })
  })

  it('reads JSON called text/plain where the sender calls it so', () => {
    const scheme = { jsonAsText: true } as const
    assert.deepEqual(parsed('{"a":1}', 'text/plain; charset=UTF-8', undefined, scheme), { a: 1 })
    assert.throws(() => parsed('a=1', 'text/html', undefined, scheme), {
      code: 'media-type-unsupported',
    })
  })

  it('never quotes the payload in its error', () => {
    for (const [body, type] of [
      ['{"canary', 'application/json'],
      ['payload=canary', form],
    ] as const)
      try {
        parsed(body, type)
        assert.fail('it was read')
      } catch (error) {
        assert.ok(error instanceof DoorwardError)
        assert.doesNotMatch([error.message, error.hint, String(error.cause)].join(), /canary/)
      }
  })

  it('gives __proto__ as a plain own property', () => {
    const value = parsed('{"__proto__":{"polluted":true}}') as Record<string, unknown>
    assert.deepEqual(Object.keys(value), ['__proto__'])
    assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
  })

  it('makes an object of XML, and refuses entities, depth and size', () => {
    const xml = (text: string) => parsed(text, 'text/plain', undefined, { bodyType: 'xml' })
    assert.deepEqual(
      xml(
        '<?xml version="1.0"?><feed lang="en"><entry><id>1</id></entry><entry><yt:videoId>007</yt:videoId></entry></feed>',
      ),
      { feed: { '@lang': 'en', entry: [{ id: '1' }, { 'yt:videoId': '007' }] } },
    )
    for (const text of [
      '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
      '<!doctype a SYSTEM "file:///etc/passwd"><a/>',
      '<a><!ENTITY b "c"></a>',
      '<a><b></a>',
      '{"a":1}',
      '',
      '<a>'.repeat(3000) + '</a>'.repeat(3000),
      `<a>${'<b/>'.repeat(50_001)}</a>`,
      `<a>${'x'.repeat(1024 * 1024)}</a>`,
    ])
      assert.throws(() => xml(text), { code: 'payload-not-json' }, text.slice(0, 60))
    const named = xml('<a><__proto__><polluted>1</polluted></__proto__></a>') as { a: object }
    assert.deepEqual(Object.keys(named.a), ['#__proto__'])
    assert.equal((named.a as Record<string, unknown>)['polluted'], undefined)
  })

  it('takes 100,000 levels without a stack overflow', () => {
    const depth = 100_000
    assert.ok(Array.isArray(parsed('['.repeat(depth) + ']'.repeat(depth))))
  })
})
