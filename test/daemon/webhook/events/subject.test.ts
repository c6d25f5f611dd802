import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { describeSubject } from '../../../../daemon/webhook/events/subject.ts'
import type { ReadDelivery } from '../../../../daemon/webhook/read-delivery.ts'
import type { Payload } from '../../../../daemon/webhook/body.ts'
import { presetScheme, presetSchemes } from '../../../../shared/signatures/presets.ts'
import { packageFolder } from '../../../../shared/version.ts'
import { parseTemplate } from '../../../../shared/templates.ts'
import { measureWidth } from '../../../../shared/text.ts'

type Given = Pick<ReadDelivery, 'headers' | 'payload' | 'scope' | 'signed' | 'source'> & {
  readonly webhook: Pick<ReadDelivery['webhook'], 'scheme'>
}

/** The subject of a payload, as a delivery of this sender brings it. */
const subjectOf = (
  name: Parameters<typeof presetScheme>[0],
  payload: Payload,
  {
    headers = {},
    title,
    signed = true,
    source,
  }: Partial<Pick<Given, 'headers' | 'signed' | 'source'>> & { readonly title?: string } = {},
) => {
  const scope = {
    event: payload,
    headers: {},
    webhook: { path: '/hook' },
    delivery: { id: undefined, received_at: '' },
  }
  const given: Given = {
    webhook: { scheme: presetScheme(name) },
    headers,
    payload,
    scope,
    signed,
    source,
  }
  return describeSubject(given, title === undefined ? undefined : { title: parseTemplate(title) })
}

const samples = new URL('assets/samples/', packageFolder)
const sample = (path: string): Payload =>
  JSON.parse(readFileSync(new URL(path, samples), 'utf8')) as Payload

const pull = (changed: object) => ({
  repository: { full_name: 'acme/shop' },
  pull_request: { number: 12, title: 'Add retries', html_url: 'https://github.com/x', ...changed },
})

describe('what an event is about', () => {
  it('is the pull request, issue, push, release or run of a sample of GitHub', () => {
    const found = readdirSync(new URL('github/', samples)).map((file) => {
      const { kind, title, url } = subjectOf('github', sample(`github/${file}`)) ?? {}
      return [file.replace('.json', ''), kind, title, url]
    })
    const hello = 'Codertocat/Hello-World'
    const issue = [
      'issue',
      `${hello}#1 Spelling error in the README file`,
      `https://github.com/${hello}/issues/1`,
    ]
    assert.deepEqual(found, [
      ['issue_comment.created', ...issue],
      ['issues.opened', ...issue],
      ['ping', 'repository', 'Octocoders/Hello-World', 'https://github.com/Octocoders/Hello-World'],
      [
        'pull_request.opened',
        'pull request',
        `${hello}#2 Update the README with new information.`,
        `https://github.com/${hello}/pull/2`,
      ],
      [
        'push',
        'push',
        `${hello}@6113728 Initial commit`,
        `https://github.com/${hello}/commit/6113728f27ae82c7b1a177c8d03f9e96e0adf246`,
      ],
      [
        'release.published',
        'release',
        `${hello} 0.0.1`,
        `https://github.com/${hello}/releases/tag/0.0.1`,
      ],
      [
        'workflow_run.completed',
        'run',
        'octo-org/octo-repo@3484a3f',
        'https://github.com/octo-org/octo-repo/actions/runs/289782451',
      ],
    ])
  })

  it('is the object of Stripe, and the message of Slack', () => {
    const invoice = subjectOf('stripe', sample('stripe/invoice.paid.json'))
    assert.match(invoice?.title ?? '', /^in_\w+ invoice\.paid$/)
    assert.equal(invoice?.kind, 'invoice')
    const message = subjectOf('slack', sample('slack/app_mention.json'))
    assert.equal(message?.kind, 'message')
    assert.match(message?.key ?? '', /^C\w+\/\d+\.\d+$/)
  })

  it('tells a merge request, an issue and a pipeline of GitLab apart', () => {
    const project = { path_with_namespace: 'acme/shop', web_url: 'https://gitlab.com/acme/shop' }
    const attributes = {
      iid: 3,
      title: 'A',
      url: 'https://gitlab.com/a',
      sha: '3f2c1aa9',
      status: 'failed',
    }
    const of = (kind: string, more: object = {}) =>
      subjectOf('gitlab', { object_kind: kind, project, object_attributes: attributes, ...more })
    assert.equal(of('merge_request')?.key, 'acme/shop!3')
    assert.equal(of('issue')?.key, 'acme/shop#3')
    assert.equal(of('pipeline')?.title, 'acme/shop@3f2c1aa failed')
    assert.equal(
      of('note', { merge_request: { iid: 4, title: 'B', url: 'https://x.example' } })?.key,
      'acme/shop!4',
    )
  })

  it('has the title that the rule gives it', () => {
    const payload = pull({ user: { login: 'ann' } })
    const title = '{{event.pull_request.user.login}}: {{event.pull_request.title}}'
    const { key, title: shown } = subjectOf('github', payload, { title }) ?? {}
    assert.deepEqual([key, shown], ['acme/shop#12', 'ann: Add retries'])
    assert.equal(
      subjectOf('github', payload, { title: '{{event.nothing}}' })?.title,
      'acme/shop#12 Add retries',
    )
    assert.equal(subjectOf('github', { a: 'x' }, { title: 'the {{event.a}}' })?.key, 'the x')
  })

  it('is named by the event where the payload names nothing, or not at all', () => {
    const headers = { 'x-github-event': ['meta'] }
    assert.equal(subjectOf('github', { hook_id: 1 }, { headers })?.title, 'meta')
    assert.equal(subjectOf('github', {}), undefined)
    for (const payload of [
      null,
      7,
      'text',
      [],
      { pull_request: 'x' },
      { pull_request: { number: {} } },
    ])
      assert.equal(subjectOf('github', payload), undefined)
  })

  it('is one line that a person can read, however long or strange the text is', () => {
    for (const [title, shown] of [
      ['x'.repeat(10_000), `acme/shop#12 ${'x'.repeat(106)}…`],
      ['日本'.repeat(100), `acme/shop#12 ${'日本'.repeat(26)}日…`],
      ['one\ntwo', 'acme/shop#12 one'],
      ['\u001b[31mred\u001b[0m\u0007', 'acme/shop#12 red'],
      ['a\u202ecod.exe\u200b\u{e0041}b', 'acme/shop#12 acod.exeb'],
      ['', 'acme/shop#12'],
      ['\u200b\u2060', 'acme/shop#12'],
    ]) {
      const subject = subjectOf('github', pull({ title }))
      assert.equal(subject?.title, shown)
      assert.ok(measureWidth(subject?.title ?? '') <= 120)
    }
    const long = subjectOf('github', {
      ...pull({}),
      repository: { full_name: 'a'.repeat(5000) },
    })
    assert.ok(measureWidth(long?.key ?? '') <= 80 && measureWidth(long?.title ?? '') <= 120)
  })

  it('links to a page by https only, without a password, and not at all for anything else', () => {
    assert.equal(subjectOf('github', pull({}))?.url, 'https://github.com/x')
    for (const url of [
      'http://github.com/x',
      'javascript:alert(1)',
      'https://user:pass@github.com/',
      'https://user@github.com/',
      'file:///etc/passwd',
      ' https://github.com/x',
      'https://',
      `https://github.com/${'x'.repeat(3000)}`,
      7,
      null,
      { href: 'https://github.com/x' },
    ])
      assert.equal(subjectOf('github', pull({ html_url: url }))?.url, undefined, String(url))
    assert.equal(
      subjectOf('github', pull({ html_url: 'https://github.com/a b\u202e"><script>' }))?.url,
      'https://github.com/a%20b%E2%80%AE%22%3E%3Cscript%3E',
    )
  })

  it('links to nothing that a stranger could choose, as in a delivery without a signature', () => {
    const evil = pull({ html_url: 'https://evil.example/login' })
    assert.equal(subjectOf('github', evil, { signed: false })?.url, undefined)
    assert.equal(subjectOf('github', evil, { signed: false, title: 'a' })?.url, undefined)
    assert.ok(subjectOf('github', pull({}), { signed: false, source: 'api' })?.url)
  })

  it('is nothing in the payload of another sender, and what there is in that of another event', () => {
    assert.equal(subjectOf('gitlab', pull({})), undefined)
    assert.equal(subjectOf('stripe', pull({}))?.key, undefined)
    const headers = { 'x-github-event': ['push'] }
    assert.equal(subjectOf('github', pull({}), { headers })?.key, 'acme/shop#12')
    const partial = { repository: { full_name: 'acme/shop' }, pull_request: { title: 'A' } }
    assert.equal(subjectOf('github', partial)?.key, 'acme/shop')
  })

  it('is written for senders that exist, each with the parts of an entry', () => {
    const text = readFileSync(new URL('assets/subjects.json', packageFolder), 'utf8')
    const table = JSON.parse(text) as Readonly<Record<string, readonly Record<string, string>[]>>
    const names: readonly string[] = presetSchemes.map(({ name }) => name)
    for (const [name, entries] of Object.entries(table)) {
      assert.ok(names.includes(name), name)
      for (const entry of entries) {
        assert.match(entry['key'] ?? '', /\{[\w.-]+(:\d+)?\}/)
        for (const [field, value] of Object.entries(entry))
          assert.match(
            value,
            field === 'when' ? /^[\w.]+(=\w+)?$/ : /^([^{}]|\{[\w.-]+(:\d+)?\})+$/,
          )
      }
    }
  })
})
