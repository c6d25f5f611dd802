import assert from 'node:assert/strict'
import {
  isAddress,
  isOutputsKind,
  type SentKind,
  sentKinds,
} from '../../../shared/targets/schema.ts'
import { parseTarget } from '../../../shared/targets/targets.ts'

const good: Readonly<Record<SentKind, readonly string[]>> = {
  slack: [
    '#general',
    '#a-b_c.d',
    '#通知',
    '@jane.doe',
    'C0123ABCD',
    'C123',
    'U0123ABCD',
    '@U0123ABCD',
    'C0123ABCD/1700000000.000100',
    '#general/1700000000.000100',
  ],
  telegram: ['1', '-100123', '@my_channel', '-1001234567890/45', '@my_group/7'],
  discord: ['ops', 'a-b.c_1'],
  email: ['jane@example.com', "o'brien+x@mail.example.co", 'root@localhost', 'a@bücher.example'],
  github: ['acme/door#1', 'a-b/c.d_e#12', 'octo_corp/.github#3'],
  'github-review': ['acme/door#1', 'octo_corp/.github#3'],
  'github-check': [`acme/door@${'a'.repeat(40)}`, `a-b/c.d_e@${'0'.repeat(64)}`],
  push: ['acme/api#7', 'a_b/.github#1'],
  'pull-request': ['acme/door', 'octo_corp/.github', 'acme/door@main', 'a-b/c.d_e@release/1.x'],
  gitlab: ['acme/door!1', 'acme/a-b/c.d_e#12', '_a/.gitlab!3', `${'g/'.repeat(20)}p#1`],
  'gitlab-review': ['acme/door!1', 'acme/a-b/c.d_e!12'],
  'github-outputs': ['acme/door#1', 'octo_corp/.github'],
  'gitlab-outputs': ['acme/a-b/c.d_e!12', 'acme/door#1', 'acme/door'],
  jira: ['PROJ-7', 'A1_B-1234567890'],
  linear: ['ENG-7', '9cfb482a-81e3-4154-b5b9-2c805e70a02d'],
  http: ['archive'],
}

const bad: Readonly<Record<SentKind, readonly string[]>> = {
  slack: [
    'general',
    '#',
    '##a',
    '#a b',
    '#a,#b',
    '<!here>',
    '@',
    '#a\n',
    '#.',
    'c0123abcd',
    '#a/b',
    'C0123ABCD/',
    'C0123ABCD/1700000000',
    'C0123ABCD/1700000000.1',
    'C0123ABCD/1700000000.000100/x',
    'C0123ABCD/1700000000.000100\n',
    '@jane/1700000000.000100',
    '/1700000000.000100',
    'https://hooks.slack.com/commands/1',
    'replies',
  ],
  telegram: [
    '0',
    '01',
    '1.5',
    '-',
    '@me',
    '@a b',
    'me',
    '1\n',
    '@1abc',
    '1e5',
    '--1',
    '@x/../y',
    '1/0',
    '1/',
    '1/2/3',
    '1/a',
    '@me/1',
  ],
  discord: ['', '-a', 'a b', 'a/b', '__proto__', 'x'.repeat(65), 'a\n'],
  email: [
    'jane',
    '@example.com',
    'jane@',
    'a@b@c.example',
    'a@b.example,c@d.example',
    'a@b.example\r\nBcc: x@y.example',
    'a@b.example\n',
    'Jane <a@b.example>',
    '"a b"@c.example',
    'a%x@b.example',
    'a!b@c.example',
    'a b@c.example',
    '.a@b.example',
    'a..b@c.example',
    'a@-b.example',
    'a@b..example',
    'a@[127.0.0.1]',
    `${'a'.repeat(65)}@b.example`,
  ],
  github: [
    'acme/door',
    'acme/door#0',
    'acme/door#-1',
    'acme/door#01',
    'acme/door#1.5',
    'acme#1',
    'acme/../x#1',
    'acme/..#1',
    'acme/door/x#1',
    'acme/door#1/../../x',
    'acme/do or#1',
    'acme/door#1\n',
    '-a/b#1',
    'acme/door?x#1',
    'acme/door#1#2',
  ],
  'github-review': ['acme/door', 'acme/door#0', 'acme/..#1', 'acme/door#1\n', 'acme/door#1/files'],
  'github-check': [
    'acme/door',
    'acme/door@main',
    `acme/door@${'a'.repeat(39)}`,
    `acme/door@${'A'.repeat(40)}`,
    `acme/..@${'a'.repeat(40)}`,
    `acme/door@${'a'.repeat(40)}\n`,
    `acme/door@${'a'.repeat(40)}/x`,
    `acme/door#1@${'a'.repeat(40)}`,
  ],
  push: ['acme/api', 'acme/api#0', 'acme/api#7x', 'acme/..#7', 'acme/api@main'],
  'pull-request': [
    'acme',
    'acme/..',
    'acme/door/x',
    'acme/door#1',
    'acme/door\n',
    'acme/door@',
    'acme/..@main',
    'acme/door@-x',
    'acme/door@a..b',
    'acme/door@a//b',
    'acme/door@a/',
    'acme/door@a.lock',
    'acme/door@a b',
    'acme/door@main\n',
    'acme/door@main@x',
  ],
  gitlab: [
    'acme/door',
    'acme!1',
    'acme/door!0',
    'acme/door!01',
    'acme/door#-1',
    'acme/../door!1',
    'acme/..!1',
    './door!1',
    '/acme/door!1',
    'acme//door!1',
    'acme/door/!1',
    '-a/b#1',
    'acme/do or#1',
    'acme/door%2Fx#1',
    'acme/door?x!1',
    'acme/door!1\n',
    'acme/door!1#2',
    `${'g/'.repeat(21)}p#1`,
  ],
  'gitlab-review': ['acme/door#1', 'acme!1', 'acme/..!1', 'acme/door!1\n'],
  'github-outputs': ['', 'acme', 'acme/door#', 'acme/door#0', 'acme/door!1', 'acme/door\n'],
  'gitlab-outputs': ['', 'door', 'acme/door!', 'acme/../door#1', 'acme/door#1\n'],
  jira: [
    '',
    'PROJ',
    'proj-7',
    'PROJ-0',
    'PROJ-07',
    'PROJ-7/comment',
    '../PROJ-7',
    'PROJ-7\n',
    '10001',
  ],
  linear: ['', 'eng-7', 'ENG-0', 'ENG-7 ', 'ENG-7\n', '9cfb482a-81e3-4154-b5b9', 'ENG/7'],
  http: ['', 'https://example.com', 'a/b', 'a b'],
}

describe('the name of a target', () => {
  for (const kind of sentKinds) {
    it(`is taken as ${kind} has it`, () => {
      for (const address of good[kind]) {
        assert.ok(isAddress(kind, address), address)
        if (isOutputsKind(kind)) continue
        const target = parseTarget(`${kind}:${address}`)
        assert.equal(target.kind, kind)
      }
    })

    it(`is refused where ${kind} knows none like it`, () => {
      for (const address of bad[kind]) assert.ok(!isAddress(kind, address), JSON.stringify(address))
      for (const address of bad[kind].filter((text) => text.trim() === text && text !== '@me'))
        assert.throws(() => parseTarget(`${kind}:${address}`), {
          code: 'config-invalid',
          hint: new RegExp(`^write ${isOutputsKind(kind) ? 'outputs' : kind}:`),
        })
    })
  }

  it('may be slack:reply in the configuration, but not as a value of an event', () => {
    assert.equal(parseTarget('slack:reply').text, 'slack:reply')
    assert.ok(!isAddress('slack', 'reply'))
  })

  it('may be made of an event, but for http', () => {
    for (const text of [
      'slack:#{{event.a}}',
      'github:{{event.r}}#{{event.n}}',
      'discord:{{event.a}}',
    ])
      assert.equal(parseTarget(text).text, text)
    assert.throws(() => parseTarget('http:{{event.a}}'), {
      code: 'config-invalid',
      message: /an event cannot choose/,
    })
    assert.throws(() => parseTarget('slack:#{{evnt.a}}'), { code: 'config-invalid' })
  })

  it('is looked for nearby when its kind is unknown', () => {
    for (const [text, hint] of [
      ['slak:#a', 'did you mean "slack:"?'],
      ['mail:a@b.example', 'did you mean "email:"?'],
      ['flie:a.md', 'did you mean "file:"?'],
      ['Log', 'did you mean "log"?'],
      ['notify:desktp', 'did you mean "notify:desktop"?'],
    ] as const)
      assert.throws(() => parseTarget(text), { message: `unknown target "${text}"`, hint })
  })
})
