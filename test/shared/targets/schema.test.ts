import assert from 'node:assert/strict'
import { parseBodyTemplate } from '../../../shared/targets/http-templates.ts'
import { targetsSchema } from '../../../shared/targets/schema.ts'
import { DoorwardError } from '../../../shared/errors.ts'

const faults = (entry: object): string[] => {
  const { error } = targetsSchema.safeParse({ http: { chat: entry } })
  return (error?.issues ?? []).map(({ path, message }) => `${path.slice(2).join('.')}: ${message}`)
}

describe('the template of a body', () => {
  const refused: readonly [template: string, message: RegExp][] = [
    ['hello', /^it does not make JSON/],
    ['', /^it does not make JSON/],
    ['{"text": {{ result }}}', /^it does not make JSON/],
    ['{"text": "{{ result }}"}', /write {{ result \| json }}, without quotes around it$/],
    ['{"text": {{ results | json }}}', /results: only result, event_id, webhook.path, delivery/],
    ['{"text": {{ event | json }}}', /event: only result/],
    ['{"text": {{ headers.x | json }}}', /headers.x: only result/],
    ['{"key": "{{ event.issue.key }}"}', /write {{ result \| json }}, without quotes around it$/],
    ['{"number": {{ event.number }}}', /^it does not make JSON/],
    ['{\n"text": {{ result | jsonn }}}', /^line 2 of the template: there is no filter jsonn$/],
    ['{% include "x" %}', /there is no tag/],
    ['{% for i in (1..10000000) %}{{ i }}{% endfor %}', /cannot be filled/],
  ]
  for (const [template, message] of refused)
    it(`is refused with the way out: ${template}`, () =>
      assert.throws(
        () => parseBodyTemplate(template),
        (error) => error instanceof DoorwardError && message.test(error.message),
      ))
})

describe('the URL of a receiver of requests', () => {
  const refused = [
    'https://{{event.host}}/x',
    'https://example.com{{event.path}}',
    'https://example.com/issue-{{event.key}}',
    'https://example.com/{{event.key}}.json',
    'https://example.com/{{event.a}}{{event.b}}',
    'https://example.com/x?key={{event.key}}',
    'https://example.com\\\\{{event.key}}',
    'https://user@example.com/{{event.key}}',
    'https://example.com/{{headers.x-key}}',
    'https://example.com/{{event}}',
    'https://example.com/{{event.labels[*].name}}',
    'https://example.com/{{event.key',
    'ftp://example.com/{{event.key}}',
  ]
  for (const url of refused)
    it(`is refused: ${url}`, () => assert.equal(faults({ url, sign: false }).length, 1))

  it('has values of an event as whole segments of its path', () => {
    const url = 'https://example.com/{{event.a}}/x/{{ event.issue["a/b"] }}?y=1'
    assert.deepEqual(faults({ url, sign: false }), [])
  })
})

describe('a receiver of requests', () => {
  const body_template = '{"text": {{ result | json }}}'

  it('has a URL, and a secret unless it is not signed', () => {
    const url = 'https://example.com/x'
    assert.deepEqual(faults({ url, secret_env: 'A_SECRET' }), [])
    assert.deepEqual(faults({ url, secret_env: 'A_SECRET', body_template }), [])
    assert.deepEqual(faults({ url_env: 'CHAT_URL', sign: false, body_template }), [])
    assert.deepEqual(faults({ sign: false }), [
      'url: missing: write url, or url_env where the URL is a secret',
    ])
    assert.deepEqual(faults({ url, url_env: 'CHAT_URL', sign: false }), [
      'url_env: not used beside url: remove one of them',
    ])
    assert.deepEqual(faults({ url }), [
      'secret_env: missing: requests are signed with it, unless sign is false',
    ])
    assert.deepEqual(faults({ url, sign: false, secret_env: 'A_SECRET' }), [
      'secret_env: not used with sign: false',
    ])
    assert.deepEqual(faults({ url, sign: false, body_template: '{"a": {{ result | jsn }}}' }), [
      'body_template: line 1 of the template: there is no filter jsn (did you mean "json"?)',
    ])
  })
})
