import assert from 'node:assert/strict'
import {
  checkLines,
  toDocument,
  listPrivateTexts,
  summaryLine,
} from '../../../../cli/commands/doctor/doctor.ts'
import type { Check } from '../../../../shared/api/checks.ts'
import { measureWidth } from '../../../../shared/text.ts'
import { wrapWords } from '../../../../cli/terminal/wrap.ts'
import { checkConfig } from '../../../../shared/config/load.ts'
import { readYaml } from '../../../../shared/config/yaml.ts'

const plain = (_: unknown, text: string) => text
const coloured = (_: unknown, text: string) => `\u001b[31m${text}\u001b[39m`

const checks: readonly Check[] = [
  { group: 'home', name: 'folder', status: 'ok', detail: '/h is yours alone' },
  {
    group: 'secrets',
    name: '/webhook/a-path-that-is-longer-than-most',
    status: 'error',
    detail: 'SECRET is unset or empty: deliveries are answered 503',
    hint: 'set SECRET in .env of the home folder',
  },
  {
    group: 'secrets',
    name: '/short',
    status: 'warning',
    detail: 'text \u001b[2Jfrom outside',
    hint: 'mend it',
  },
  { group: 'targets', name: 'targets', status: 'skipped', detail: 'the daemon does not run' },
  { group: 'tunnel', name: 'tunnel', status: 'skipped', detail: 'the daemon does not run' },
]

describe('doctor: the page', () => {
  const lines = (columns: number | undefined, paint = plain) =>
    checkLines(checks, { columns, paint })

  it('shows a mark, what is so, and under it what mends it', () => {
    assert.deepEqual(lines(undefined), [
      'Home',
      '  ✓ folder                  /h is yours alone',
      'Secrets',
      '  ✗ /webhook/a-path-that-is-longer-than-most  SECRET is unset or empty: deliveries are answered 503',
      '                            → set SECRET in .env of the home folder',
      '  ! /short                  text from outside',
      '                            → mend it',
      'Not checked',
      '  - targets, tunnel         the daemon does not run',
    ])
    assert.equal(summaryLine(checks), '1 error, 1 warning, 1 ok, 2 not checked')
  })

  for (const columns of [40, 60, 80, 120])
    it(`keeps within ${columns} columns, with colour too`, () => {
      for (const line of lines(columns))
        assert.ok(measureWidth(line) <= columns || /^ *(. )?\S+$/.test(line), line)
      const bare = lines(columns, coloured).map((line) => line.replaceAll(/\u001b\[\d+m/g, ''))
      assert.deepEqual(bare, lines(columns))
    })

  it('says once what mends several', () => {
    const [check] = checks.slice(1)
    assert.ok(check)
    const text = checkLines([check, { ...check, name: '/b' }], {
      columns: undefined,
      paint: plain,
    })
    assert.equal(text.filter((line) => line.includes('set SECRET')).length, 1)
  })
})

describe('doctor: the document', () => {
  it('holds no mail address and none of the private texts', () => {
    const document = toDocument(
      [
        {
          group: 'home',
          name: '/open-7f3',
          status: 'error',
          detail: '/home/jane/.doorward of jane@example.com at https://t.example',
          hint: 'chmod 600 /home/jane/.doorward/.env',
        },
      ],
      { version: '1', node: 'v1', platform: 'x', checkedAt: '', online: false },
      [
        ['/home/jane', '~'],
        ['https://t.example', '<public url>'],
        ['/open-7f3', '<unsigned webhook>'],
      ],
    )
    assert.equal(document.ok, false)
    assert.deepEqual(document.checks[0], {
      group: 'home',
      name: '<unsigned webhook>',
      status: 'error',
      detail: '~/.doorward of <mail> at <public url>',
      hint: 'chmod 600 ~/.doorward/.env',
    })
  })
})

describe('doctor: the private texts', () => {
  it('are who is written to, where we are reached, and paths that nothing is signed at', () => {
    const config = checkConfig(
      readYaml('gateway.yaml', 'server: { public_url: "https://t.example" }'),
      readYaml('agents.yaml', 'agents: { echo: { kind: echo } }'),
      readYaml(
        'webhooks.yaml',
        `webhooks:
  - { path: /open-7f3, agent: echo, prompt_template: x, deliver_to: ["slack:#board", log] }
  - { path: /signed, agent: echo, prompt_template: x, secret_env: S, deliver_to: "file:a.md" }`,
      ),
      {},
    )
    assert.deepEqual(listPrivateTexts({ config, status: undefined }, '/home/jane'), [
      ['/home/jane', '~'],
      ['https://t.example', '<public url>'],
      ['slack:#board', 'slack:<target>'],
      ['/open-7f3', '<unsigned webhook>'],
    ])
  })
})

describe('wrapWords', () => {
  it('breaks between words, and no command', () => {
    assert.deepEqual(wrapWords('one two three', 8, { indent: 2 }), ['one two', '  three'])
    assert.deepEqual(wrapWords('one two three', 12, { used: 4, indent: 4 }), [
      'one two',
      '    three',
    ])
    assert.deepEqual(wrapWords('run doorward daemon start', 21), ['run', 'doorward daemon start'])
    assert.deepEqual(wrapWords('run doorward daemon start', 20), ['run', 'doorward daemon start'])
    assert.deepEqual(wrapWords('a https://example.com/long/path b', 12), [
      'a',
      'https://example.com/long/path',
      'b',
    ])
    assert.deepEqual(wrapWords('any text', undefined), ['any text'])
  })
})
