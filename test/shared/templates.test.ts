import assert from 'node:assert/strict'
import { parseTemplate } from '../../shared/templates.ts'
import { DoorwardError } from '../../shared/errors.ts'
import { parseTarget } from '../../shared/targets/targets.ts'

const refused = (read: () => unknown, message: RegExp) =>
  assert.throws(read, (error: unknown) => {
    assert.ok(error instanceof DoorwardError)
    assert.equal(error.code, 'config-invalid')
    assert.match(error.message, message)
    return true
  })

describe('a template', () => {
  const partsOf = (text: string) => parseTemplate(text).parts

  it('is taken apart into text and paths, in their order', () => {
    assert.deepEqual(partsOf('a {{event.b.c}}{{event}} d'), [
      'a ',
      ['event', 'b', 'c'],
      ['event'],
      ' d',
    ])
    assert.deepEqual(partsOf('{{ event.a }}'), [['event', 'a']])
    assert.deepEqual(partsOf('{{event["a.b"]}}{{event[0].c}}'), [
      ['event', 'a.b'],
      ['event', '0', 'c'],
    ])
    assert.deepEqual(partsOf('nothing in it'), ['nothing in it'])
    assert.deepEqual(partsOf(''), [])
    assert.equal(parseTemplate('x {{event.a}}').source, 'x {{event.a}}')
  })

  it('leaves single, lone and open braces as they are', () => {
    for (const text of ['{event.a}', '{{event.a', 'event.a}}', '{ {event.a} }', '{{a{b}}', '}}{{'])
      assert.deepEqual(partsOf(text), [text])
    assert.deepEqual(partsOf('{{{event.a}}}'), ['{', ['event', 'a'], '}'])
  })

  it('is refused with every name that it does not know', () => {
    for (const name of ['evnt', 'evnt.x', 'Event', 'event(0)', 'events.a', '', ' ', '#if event.a'])
      refused(
        () => partsOf(`a {{${name}}} b`),
        /^{{.*}}: only event, event.<path>, headers.<name>, webhook.path, delivery.id, delivery.received_at can be used$/,
      )
    refused(
      () => partsOf('{{a}} {{event.}} {{b}} {{a}} {{event.a..b}}'),
      /^{{a}}: only[^;]*; {{event.}}: [^;]* cannot be read[^;]*; {{b}}: only[^;]*; {{event.a..b}}: [^;]*$/,
    )
  })

  it('reads a header by its name in any case, and what else is known of a delivery', () => {
    assert.deepEqual(partsOf('{{headers.X-GitHub-Event}}{{headers["x-a.b"]}}'), [
      ['headers', 'x-github-event'],
      ['headers', 'x-a.b'],
    ])
    for (const path of ['webhook.path', 'delivery.id', 'delivery.received_at'])
      assert.deepEqual(partsOf(`{{${path}}}`), [path.split('.')])
    for (const path of ['webhook', 'webhook.secret', 'delivery', 'delivery.id.x'])
      refused(() => partsOf(`{{${path}}}`), /: only event/)
    for (const path of ['headers', 'headers.a.b', 'headers[*]', 'headers["a b"]'])
      refused(() => partsOf(`{{${path}}}`), /: write headers.<name>, the name of one header$/)
  })

  it('reads no header that holds a secret or a signature', () => {
    for (const name of ['Authorization', 'cookie', 'X-Hub-Signature-256', 'x-gitlab-token'])
      refused(() => partsOf(`{{headers.${name}}}`), /: this header holds a secret or a signature$/)
  })

  it('is read in a time that grows with its length alone', () => {
    const started = process.hrtime.bigint()
    assert.equal(partsOf('{{'.repeat(200_000)).length, 1)
    assert.ok(process.hrtime.bigint() - started < 2_000_000_000n)
  })
})

describe('a target', () => {
  it('is read by its kind', () => {
    for (const [text, kind] of [
      ['none', 'none'],
      ['log', 'log'],
      ['notify:desktop', 'notify'],
      ['file:a/b.md', 'file'],
    ] as const) {
      const target = parseTarget(text)
      assert.deepEqual([target.kind, target.text], [kind, text])
    }
    const file = parseTarget('file: answers/{{event.number}}.md ')
    assert.ok(file.kind === 'file')
    assert.deepEqual(file.path.parts, ['answers/', ['event', 'number'], '.md'])
  })

  it('is refused when it names no file', () => {
    for (const text of ['file:', 'file:  ', 'file:a/', 'file:/'])
      refused(() => parseTarget(text), /names no file$/)
    refused(() => parseTarget('file:a\0b'), /NUL character/)
    refused(() => parseTarget('file:{{evnt}}'), /^{{evnt}}: only/)
  })
})
