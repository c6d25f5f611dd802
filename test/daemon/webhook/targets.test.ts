import assert from 'node:assert/strict'
import { expandAddress, expandFileName, expandTargets } from '../../../daemon/webhook/targets.ts'
import type { SentKind } from '../../../shared/targets/schema.ts'
import { parseTarget } from '../../../shared/targets/targets.ts'
import { parseTemplate } from '../../../shared/templates.ts'
import { scopeOf } from '../../support/scope.ts'

const fileName = (template: string, values: unknown) =>
  expandFileName(parseTemplate(template), scopeOf(values))

describe('expandFileName', () => {
  const taken: readonly [string, unknown, string][] = [
    ['answers.md', {}, 'answers.md'],
    ['../up/./answers.md', {}, '../up/./answers.md'],
    ['~/answers/{{event.a}}.md', { a: 'x' }, '~/answers/x.md'],
    ['/srv/{{event.a}}', { a: 5 }, '/srv/5'],
    ['{{event.a}}-{{event.b}}.md', { a: 'a b', b: true }, 'a b-true.md'],
    ['{{event.a}}', { a: '.hidden' }, '.hidden'],
    ['{{event.a}}', { a: 'v1.2' }, 'v1.2'],
    ['{{event.a}}', { a: 'é😀' }, 'é😀'],
    ['{{event.a}}', { a: 'x'.repeat(200) }, 'x'.repeat(200)],
    ['x{{event.a}}/y', { a: '~' }, 'x~/y'],
  ]
  for (const [template, values, path] of taken)
    it(`makes ${path.slice(0, 40)} of ${template}`, () =>
      assert.equal(fileName(template, values), path))

  const refused: readonly [string, string, unknown][] = [
    ['a missing value', '{{event.a}}', {}],
    ['null', '{{event.a}}', { a: null }],
    ['an empty value', 'x{{event.a}}.md', { a: '' }],
    ['white space', 'x{{event.a}}.md', { a: ' \t' }],
    ['..', 'answers/{{event.a}}', { a: '..' }],
    ['.. with a tail', 'answers/{{event.a}}', { a: '..x' }],
    ['.', 'answers/{{event.a}}/x', { a: '.' }],
    ['. and .', '{{event.a}}{{event.b}}/x', { a: '.', b: '.' }],
    ['. behind a written dot', 'answers/.{{event.a}}/x', { a: '.' }],
    ['a slash', '{{event.a}}', { a: 'a/b' }],
    ['an absolute path', '{{event.a}}', { a: '/etc/passwd' }],
    ['a backslash', '{{event.a}}', { a: 'a\\b' }],
    ['..\\', '{{event.a}}', { a: '..\\x' }],
    ['NUL', '{{event.a}}', { a: 'a\0b' }],
    ['a line feed', '{{event.a}}', { a: 'a\nb' }],
    ['a turn of direction', '{{event.a}}', { a: 'a\u202efdp.exe' }],
    ['a C1 control character', '{{event.a}}', { a: 'a\u009b2J' }],
    ['300 characters', '{{event.a}}', { a: 'x'.repeat(300) }],
    ['an object', '{{event.a}}.md', { a: { b: 'c' } }],
    ['a list', '{{event.a}}.md', { a: ['b'] }],
    ['the whole payload', '{{event}}', { a: 'b' }],
    [
      'a value nested too deeply',
      '{{event.a}}',
      { a: JSON.parse(`${'['.repeat(1e5)}${']'.repeat(1e5)}`) as unknown },
    ],
    ["~ where the user's own folder begins", '{{event.a}}/x.md', { a: '~' }],
    ['a drive letter', '{{event.a}}/x.md', { a: 'C:' }],
    ['a drive letter and a name', '{{event.a}}', { a: 'c:x' }],
  ]
  for (const [name, template, values] of refused)
    it(`refuses ${name}, without quoting it`, () => {
      assert.throws(
        () => fileName(template, values),
        (error: Error & { code?: string }) => {
          assert.ok(error.code === 'target-invalid' || error.code === 'payload-not-json')
          assert.doesNotMatch(error.message, /passwd|xxxx|[\u0000-\u001f\u009b\u202e]/)
          return true
        },
      )
    })
})

describe('expandAddress', () => {
  const address = (kind: SentKind, template: string, values: unknown) =>
    expandAddress(kind, parseTemplate(template), scopeOf(values))

  for (const [kind, template, values, expected] of [
    ['github', '{{event.r}}#{{event.n}}', { r: 'acme/door', n: 7 }, 'acme/door#7'],
    ['slack', '#team-{{event.t}}', { t: 'door' }, '#team-door'],
    [
      'slack',
      '{{event.c}}/{{event.t}}',
      { c: 'C012', t: '1700000000.000100' },
      'C012/1700000000.000100',
    ],
    ['gitlab', '{{event.p}}!{{event.n}}', { p: 'acme/tools/door', n: 7 }, 'acme/tools/door!7'],
    ['email', '{{event.u}}@example.com', { u: 'jane' }, 'jane@example.com'],
    ['telegram', '{{event.c}}', { c: -100_123 }, '-100123'],
    ['discord', '{{event.d}}', { d: 'ops' }, 'ops'],
    ['telegram', '@me', {}, '@me'],
  ] as const)
    it(`makes ${kind}:${expected}`, () => assert.equal(address(kind, template, values), expected))

  for (const [kind, template, value] of [
    ['github', '{{event.a}}#1', '../../user'],
    ['github', '{{event.a}}#1', 'acme/door#2'],
    ['github', 'acme/door#{{event.a}}', '1/../../../other/repo/issues/1'],
    ['github', 'acme/door#{{event.a}}', -1],
    ['github', 'acme/door#{{event.a}}', 1.5],
    ['slack', '#{{event.a}}', 'canary,#other'],
    ['slack', '#a-{{event.a}}', ''],
    ['slack', '#a-{{event.a}}', undefined],
    ['slack', '#a-{{event.a}}', true],
    ['slack', '#a-{{event.a}}', { b: 1 }],
    ['slack', '{{event.a}}', '<!here>'],
    ['slack', '{{event.a}}', 'reply'],
    ['slack', '{{event.a}}', 'https://hooks.slack.com/commands/canary'],
    ['slack', '#canary-{{event.a}}', 'x/1700000000.000100'],
    ['slack', 'C012/{{event.a}}', ''],
    ['gitlab', '{{event.a}}!1', '../../user'],
    ['gitlab', '{{event.a}}!1', 'acme/door!2/notes?x=canary'],
    ['gitlab', 'acme/door#{{event.a}}', '1/../../merge_requests/1'],
    ['gitlab', 'acme/{{event.a}}#1', '..'],
    ['email', '{{event.a}}@example.com', 'eve@canary.example,x'],
    ['email', '{{event.a}}', 'a@b.example\r\nBcc: canary@x.example'],
    ['email', '{{event.a}}', 'Canary <a@b.example>'],
    ['telegram', '{{event.a}}', '@me'],
    ['telegram', '{{event.a}}', '1?x=canary'],
    ['discord', '{{event.a}}', 'https://canary.example'],
  ] as const)
    it(`refuses ${JSON.stringify(value)} in ${kind}:${template}, without quoting it`, () => {
      assert.throws(
        () => address(kind, template, { a: value }),
        (error: Error & { code?: string; hint?: string }) => {
          assert.equal(error.code, 'target-invalid')
          assert.doesNotMatch(`${error.message} ${error.hint}`, /canary|\.\.\//i)
          return true
        },
      )
    })
})

describe('expandTargets', () => {
  const targets = ['log', 'none', 'file:{{event.a}}.md', 'notify:desktop', 'file:b.md'].map(
    (text) => parseTarget(text),
  )

  it('keeps the order, leaves none out and names the file as it will be', () => {
    const ready = expandTargets(targets, scopeOf({ a: 'x' }))
    assert.deepEqual(ready, [
      { text: 'log', kind: 'log' },
      { text: 'file:x.md', kind: 'file', path: 'x.md' },
      { text: 'notify:desktop', kind: 'notify' },
      { text: 'file:b.md', kind: 'file', path: 'b.md' },
    ])
  })

  it('leaves out of a list what has no value in the event, unless nothing is left', () => {
    const sha = 'a'.repeat(40)
    const checks = ['event.pull_request.head.sha', 'event.merge_group.head_sha'].map((path) =>
      parseTarget(`github-check:acme/door@{{${path}}}`),
    )
    const kinds = (event: object) => expandTargets(checks, scopeOf(event)).map(({ kind }) => kind)
    assert.deepEqual(kinds({ pull_request: { head: { sha } } }), ['github-check'])
    assert.deepEqual(kinds({ merge_group: { head_sha: sha }, pull_request: null }), [
      'github-check',
    ])
    assert.deepEqual(kinds({ pull_request: { head: { sha: 'main' } } }), ['invalid'])
    assert.deepEqual(kinds({}), ['invalid', 'invalid'])
  })

  it('fails the one target whose value may not be used, and no other', () => {
    const ready = expandTargets(targets, scopeOf({ a: '../x' }))
    assert.deepEqual(
      ready.map(({ kind }) => kind),
      ['log', 'invalid', 'notify', 'file'],
    )
    const [, bad] = ready
    assert.ok(bad?.kind === 'invalid')
    assert.equal(bad.error.code, 'target-invalid')
  })
})
