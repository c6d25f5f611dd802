import assert from 'node:assert/strict'
import { expand } from '../../../daemon/webhook/expand.ts'
import { DoorwardError } from '../../../shared/errors.ts'
import { parseTemplate } from '../../../shared/template.ts'

const payload: unknown = JSON.parse(`{
  "text": "a  b\\n", "number": -1.5, "big": 1e21, "zero": 0, "yes": true, "no": false,
  "nothing": null, "empty": "", "list": [1, "two", null], "object": {"b": 1, "a": {"c": []}},
  "braces": "{{event.secret}} {{event}}", "secret": "hidden", "dollar": "$& $1 $\`", "euro": "€😀"
}`)
const expanded = (template: string, value: unknown = payload) =>
  expand(parseTemplate(template), value)

describe('expand', () => {
  const table: readonly [string, string][] = [
    ['no placeholder', 'no placeholder'],
    ['{{event.text}}', 'a  b\n'],
    ['<{{event.number}}|{{event.big}}|{{event.zero}}>', '<-1.5|1e+21|0>'],
    ['{{event.yes}} {{event.no}}', 'true false'],
    ['<{{event.nothing}}{{event.missing}}{{event.missing.deeper}}{{event.empty}}>', '<>'],
    ['{{event.list}}', '[1,"two",null]'],
    ['{{event.list.1}}', 'two'],
    ['<{{event.list.3}}{{event.list.-1}}{{event.list.01}}{{event.list.length}}>', '<>'],
    ['<{{event.text.0}}{{event.text.length}}>', '<>'],
    ['<{{event.toString}}{{event.object.hasOwnProperty}}>', '<>'],
    ['{{event.object}}', '{"b":1,"a":{"c":[]}}'],
    ['{{ event.euro }}', '€😀'],
    ['{{event.dollar}}', '$& $1 $`'],
    ['{{event.secret}}{{event.secret}}', 'hiddenhidden'],
    ['{ {event.secret} } {event.secret}', '{ {event.secret} } {event.secret}'],
  ]
  for (const [template, text] of table)
    it(`makes ${JSON.stringify(text)} of ${template}`, () => assert.equal(expanded(template), text))

  it('never expands again what a value contains', () => {
    assert.equal(expanded('{{event.braces}}'), '{{event.secret}} {{event}}')
    const halves = { a: '{{event.', b: 'secret}}', secret: 'hidden' }
    assert.equal(expanded('{{event.a}}{{event.b}}', halves), '{{event.secret}}')
  })

  it('writes the whole payload for {{event}}', () => {
    assert.equal(expanded('{{event}}', { a: [1] }), '{"a":[1]}')
    assert.equal(expanded('{{event}}', 'text'), 'text')
    assert.equal(expanded('<{{event}}>', null), '<>')
    assert.equal(expanded('{{event}}', JSON.parse('{"__proto__":1}')), '{"__proto__":1}')
  })

  it('refuses what is nested too deeply to be written, and does not crash', () => {
    const depth = 100_000
    const deep: unknown = JSON.parse('['.repeat(depth) + ']'.repeat(depth))
    assert.throws(() => expanded('{{event}}', deep), { code: 'payload-not-json' })
    assert.throws(() => expanded('{{event.a}}', { a: deep }), { code: 'payload-not-json' })
    assert.equal(expanded('{{event.b}}', { a: deep, b: 'shallow' }), 'shallow')
  })

  it('lets the caller decide how a value is written', () => {
    const upper = (value: unknown) => String(value).toUpperCase()
    assert.equal(expand(parseTemplate('a {{event.secret}}'), payload, upper), 'a HIDDEN')
  })
})

describe('parseTemplate', () => {
  for (const template of [
    '{{evnt.a}}',
    '{{}}',
    '{{event.}}',
    '{{event..a}}',
    '{{event.a.}}',
    '{{events}}',
    '{{event[0]}}',
    '{{event.__proto__}}',
    '{{event.a.constructor.name}}',
    '{{event.prototype}}',
  ])
    it(`refuses ${template}`, () =>
      assert.throws(
        () => parseTemplate(template),
        (error) => error instanceof DoorwardError && error.code === 'config-invalid',
      ))
})
