import assert from 'node:assert/strict'
import { contextsIn, parsePrompt, pathsIn } from '../../shared/templates.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { formatPath } from '../../shared/paths.ts'

const fault = (template: string): { message: string; hint: string | undefined } => {
  try {
    parsePrompt(template)
  } catch (error) {
    assert.ok(error instanceof DoorwardError)
    assert.equal(error.code, 'config-invalid')
    return { message: error.message, hint: error.hint }
  }
  throw new Error(`${template} was taken`)
}

describe('the template of a prompt', () => {
  it('is Liquid with a tag or a filter, and else what it was before', () => {
    for (const text of [
      '{{event.a | upcase}}',
      '{% if event.a %}x{% endif %}',
      '{{- event.a | size}}',
    ])
      assert.ok('render' in parsePrompt(text), text)
    for (const text of [
      'a | b {{event.a}} | c',
      '{{event["a|b"]}}',
      '{{event.number | {{event.a}}',
      'a {% raw %}${{ secrets.X | y }} {% if %}{% endraw %} b',
    ])
      assert.ok('parts' in parsePrompt(text), text)
  })

  it('names the values that it reads, also in loops and conditions', () => {
    const paths = pathsIn(
      parsePrompt(
        '{% for c in event.commits %}{{c.id}} {{forloop.index}}{% if headers.X-Kind == "a" %}{{delivery.id}}{% endif %}{% endfor %}{% assign x = event.y %}{{x.z | upcase}}{{event.list[event.n].name | default: event["a.b"]}}',
      ),
    )
    assert.deepEqual(paths.map(formatPath).toSorted(), [
      'delivery.id',
      'event.commits',
      'event.commits[*].id',
      'event.list',
      'event.n',
      'event.y',
      'event.y.z',
      'event["a.b"]',
      'headers.X-Kind',
    ])
  })

  it('writes literal braces between raw and endraw', () => {
    assert.deepEqual(
      parsePrompt('Never log {% raw %}${{ secrets.TOKEN }}{% endraw %}. {{event.title}}'),
      {
        source: 'Never log {% raw %}${{ secrets.TOKEN }}{% endraw %}. {{event.title}}',
        parts: ['Never log ', '${{ secrets.TOKEN }}', '. ', ['event', 'title']],
      },
    )
    assert.deepEqual(fault('Never log ${{ secrets.TOKEN }}. {{event.title}}'), {
      message:
        '{{secrets.TOKEN}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used',
      hint: 'for braces that stay as they are write {% raw %}${{ secrets.TOKEN }}{% endraw %}',
    })
    assert.match(
      fault('${{ secrets.TOKEN }} {{ event.title | upcase }}').hint ?? '',
      /\{% raw %\}\{\{secrets\.TOKEN\}\}\{% endraw %\}/,
    )
    assert.equal(fault('{{evnt.title}}').hint, 'did you mean "event"?')
  })

  it('has the place of a context, which is no value yet', () => {
    const template = parsePrompt(
      '{% capture a %}x{% endcapture %}{% for c in event.a %}{{- context.diff -}} + {{ c }}{% endfor %}',
    )
    assert.deepEqual(contextsIn(template), ['diff'])
    assert.ok('render' in template)
    assert.deepEqual(template.render({ event: { a: [1] } }, String), [
      { text: '', context: 'diff' },
      { text: '+ ' },
      { text: '1', from: 'c' },
    ])
  })

  const faults: readonly [template: string, message: RegExp, hint?: RegExp][] = [
    ['a\nb {{ event.a | foo }}', /^line 2 of the template: there is no filter foo$/],
    ['{{ event.a | upcas }}', /no filter upcas$/, /did you mean "upcase"/],
    ['{{ event.a | raw }}', /no filter raw$/],
    ['{{ event.a || event.b }}', /line 1 .*: expected filter name$/],
    ['{{ event.a | truncate 5 }}', /expected ":" after filter name/],
    ['{{ event.a, event.b | upcase }}', /expected "\|" before filter/],
    ['x\n{% if event.a = "b" %}{% endif %}', /^line 2 .*: \{% if event.a = "b" %\}/, /has ==/],
    ['{% if event.a && event.b %}{% endif %}', /expected/, /and, or/],
    ['\n\n{% if event.a %}', /^line 3 .*: tag \{% if event.a %\} not closed$/],
    ['{% for c in event.a %}\n{% for %}{% endfor %}{% endfor %}', /^line 2 .*illegal tag/],
    ['{% endif %}', /\{% endif %\} has no tag that it belongs to$/],
    ['{% iff event.a %}{% endiff %}', /there is no tag \{% iff %\}: did you mean "if"\?$/],
    ['{% for c in event.a | where: "b", 1 %}{% endfor %}', /put it into \{% assign/],
    [
      '{% if event.a %}{{ event.labels[*].name }}{% endif %}',
      /write event.labels \| map: "name" \| join: ", " for event.labels\[\*\].name$/,
    ],
    ['{{ event.a | upcase }}\n{{ evnt.b }}', /^line 2 .*: evnt.b: only event,/, /"event"/],
    ['{% if event.a == opened %}{% endif %}', /opened: only event,/, /needs quotes: "opened"/],
    ['{{ event.a | default: none }}', /none: only event,/, /needs quotes: "none"/],
    ['{{ headers[event.a] | upcase }}', /headers: write headers.<name>/],
    ['{{ headers.Authorization | upcase }}', /this header holds a secret/],
    ['{{ webhook.secret | upcase }}', /webhook.secret: only/],
    ['{{ context.diff | truncate: 9 }}', /can only stand in prompt_template, as \{\{context.diff/],
    ['{% if context.diff %}{% endif %}', /no filter, condition or variable can read it$/],
    ['{% assign a = context.diff %}{{ a }}', /context.diff: it can only stand/],
    ['{% capture a %}{{context.diff}}{% endcapture %}{{ a }}', /context.diff: it can only stand/],
    ['{% if true %}{{context.dif}}{% endif %}', /there is no such context/, /"diff"/],
    ['{{ constructor | json }}', /constructor: only/],
    ['{{ forloop | json }}', /forloop: only/],
    ['{% if event.a %}\n{{ event.a | upcase', /^line 2 .*not closed/],
  ]
  for (const [template, message, hint = /|/] of faults)
    it(`refuses ${JSON.stringify(template)} with its line and the way out`, () => {
      const found = fault(template)
      assert.match(found.message, message)
      assert.match(found.hint ?? '', hint)
    })

  it('has no tag that reads a file or writes a value by itself', () => {
    for (const tag of [
      'include "a"',
      'render "a"',
      'layout "a"',
      'block a',
      'echo event.a',
      'liquid echo event.a',
      'cycle event.a',
      'increment x',
      'decrement x',
      'tablerow a in b',
    ])
      assert.match(fault(`x {% ${tag} %}`).message, /there is no tag /)
  })
})
