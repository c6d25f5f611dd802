import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { payloadDescriptionSchema } from '../../../shared/api/explain.ts'
import { parseTemplate } from '../../../shared/templates.ts'
import { packageFolder } from '../../../shared/version.ts'
import { describePayload } from '../../../daemon/webhook/payload-shape.ts'

describe('what a payload teaches', () => {
  it('is its paths with their types, and no value', () => {
    const payload = {
      action: 'canary',
      list: [{ id: 7, done: true }, { id: 8 }],
      nothing: null,
      empty: {},
      none: [],
    }
    const lesson = describePayload('/a', payload)
    assert.deepEqual(lesson.paths, [
      { path: 'action', type: 'text' },
      { path: 'list', type: 'list' },
      { path: 'list.0.id', type: 'number' },
      { path: 'list.0.done', type: 'boolean' },
      { path: 'nothing', type: 'null' },
      { path: 'empty', type: 'object' },
      { path: 'none', type: 'list' },
    ])
    assert.deepEqual([lesson.cut, lesson.filter], [false, ['action']])
    assert.doesNotMatch(JSON.stringify(lesson), /canary/)
  })

  it('quotes names with dots, and leaves out those that no placeholder can have', () => {
    const payload = JSON.parse(
      '{"a.b":{"c d":1},"":1,"{{x}}":1,"__proto__":{"x":1},"c":1,"constructor":1}',
    )
    assert.deepEqual(describePayload('/a', payload).paths, [
      { path: '["a.b"]["c d"]', type: 'number' },
      { path: '__proto__.x', type: 'number' },
      { path: 'c', type: 'number' },
      { path: 'constructor', type: 'number' },
    ])
  })

  it('is bounded for a payload of any size and depth', () => {
    const wide = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`n${index}`, 1]))
    const { paths, cut } = describePayload('/a', wide)
    assert.deepEqual([paths.length, cut], [500, true])
    let deep: unknown = 1
    for (let level = 0; level < 20_000; level += 1) deep = { a: deep }
    assert.equal(describePayload('/a', deep).cut, true)
  })

  it('proposes a template that can be used, for any JSON', async () => {
    const sample = new URL('assets/samples/github/pull_request.opened.json', packageFolder)
    const payloads = [JSON.parse(await readFile(sample, 'utf8')), null, 3, 'x', [], {}, [{ a: 1 }]]
    for (const payload of payloads) {
      const lesson = payloadDescriptionSchema.parse(describePayload('/a', payload))
      assert.ok(parseTemplate(lesson.promptTemplate).parts.some((part) => typeof part !== 'string'))
    }
    const { promptTemplate } = describePayload('/a', payloads[0])
    assert.match(promptTemplate, /^action: \{\{event\.action\}\}$/m)
    assert.match(promptTemplate, /\{\{event\.pull_request\.title\}\}/)
  })

  it('finds what tells events apart inside of what carries them, and not in a user', () => {
    const filterOf = (payload: Parameters<typeof describePayload>[1]) =>
      describePayload('/a', payload).filter
    assert.deepEqual(
      filterOf({ event: { user: { type: 'x' }, type: 'x', subtype: 'y' }, type: 'event_callback' }),
      ['type', 'event.type', 'event.subtype'],
    )
    assert.deepEqual(filterOf({ object_kind: 'x', object_attributes: { state: 'opened' } }), [
      'object_kind',
      'object_attributes.state',
    ])
    assert.deepEqual(filterOf({ sender: { type: 'User' }, items: [{ type: 'x' }] }), [])
  })
})
