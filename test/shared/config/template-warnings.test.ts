import assert from 'node:assert/strict'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { check, webhook } from '../../support/daemon/config-files.ts'

describe('warnings of templates', () => {
  const of = (source: string) => {
    const webhooks = webhook('', '/x', 'echo', JSON.stringify(source))
    return collectWarnings(check({ webhooks }), {}).filter(
      ({ code }) => code !== 'webhook-unsigned',
    )
  }

  for (const source of [
    'Number {{event.number',
    'Number {{event.number} is open',
    'Number {{ event.number }, {{event.title}}',
    'Number {event.number}',
    'All of it: {{event',
  ])
    it(`name a placeholder that is none: ${source}`, () => {
      const [warning, ...more] = of(source)
      assert.equal(warning?.code, 'placeholder-unfinished')
      assert.match(
        warning.detail,
        /^webhook \/x: \{+ ?event.* in prompt_template is not a placeholder/,
      )
      assert.deepEqual(more, [])
    })

  for (const source of [
    '{{event}} and {{ event.a.b }}',
    'Answer as {"event": "name"} or { event: 1 }, in {braces} or {{',
    'events of {{event.day}}',
    'on {event}',
  ])
    it(`say nothing of ${source}`, () => {
      assert.deepEqual(of(source), [])
    })
})
