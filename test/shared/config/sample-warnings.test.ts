import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { readPrompt } from '../../../shared/recipes/presets.ts'
import { collectWarnings } from '../../../shared/config/warnings.ts'
import { formatBelow } from '../../../shared/paths.ts'
import { check } from '../../support/daemon/config-files.ts'

type Fields = Readonly<Record<string, unknown>>

/** The warnings of a rule about paths, each as its detail and its hint up to the question mark. */
const warningsOf = (fields: Fields, scheme = 'github'): string[] => {
  const entry = { path: '/a', agent: 'echo', signature_scheme: scheme, secret_env: 'A' }
  const webhooks = [{ ...entry, prompt_template: 'x', ...fields }]
  const env = { A: '0123456789abcdef'.repeat(2) }
  return collectWarnings(check({ webhooks: JSON.stringify({ webhooks }), env }), env).flatMap(
    ({ code, detail, hint }) =>
      code === 'path-unknown' ? [`${detail}: ${hint.replace(/\?.*/, '?')}`] : [],
  )
}

const about = (written: string, meant: string): string =>
  `webhook /a: ${written} is in no built-in sample of its events: did you mean "${meant}"?`

describe('warnings of paths that no payload of the sender has', () => {
  it('name the nearest path of a filter', () => {
    for (const [path, meant] of [
      ['pull_request.drafft', 'pull_request.draft'],
      ['pull_request.base.rfe', 'pull_request.base.ref'],
      ['pull_requst.draft', 'pull_request.draft'],
      ['pull_request.labels[*].nmae', 'pull_request.labels[*].name'],
      ['sender.logn', 'sender.login'],
    ] as const)
      for (const on of ['pull_request.opened', 'pull_request', ['push', 'pull_request.closed']]) {
        const expected = path.includes('labels') ? [] : [about(`${path} in filter`, meant)]
        // The sample has no labels.
        assert.deepEqual(warningsOf({ on, filter: { [path]: 'x' } }), expected, path)
        assert.deepEqual(warningsOf({ on, filter: { none: [{ [path]: 'x' }] } }), expected, path)
      }
    assert.deepEqual(warningsOf({ on: 'issues', filter: { 'issue.labels[*].nmae': 'bug' } }), [
      about('issue.labels[*].nmae in filter', 'issue.labels[*].name'),
    ])
  })

  it('name the nearest path of each template of a rule, once', () => {
    const wrong = '{{event.pull_request.haed.sha}}'
    const expected = [about(wrong, 'event.pull_request.head.sha')]
    const on = 'pull_request.opened'
    for (const fields of [
      { prompt_template: `Review ${wrong} or {{event.pull_request.head.sha}}` },
      { prompt_template: `{% if event.number %}${wrong}{% endif %}` },
      { workspace: { repo: 'a/b', ref: wrong }, prompt_template: wrong },
      { deliver_to: `file:answers/${wrong}.md` },
      { coalesce: { key: wrong } },
      { title: wrong },
    ])
      assert.deepEqual(warningsOf({ on, ...fields }), expected, JSON.stringify(fields))
    assert.deepEqual(
      warningsOf({
        on: 'push',
        prompt_template: '{% for one in event.commits %}{{one.mesage}}{% endfor %}',
      }),
      [about('{{event.commits[*].mesage}}', 'event.commits[*].message')],
    )
  })

  it('name those of Stripe and Slack, whose payloads name their event', () => {
    assert.deepEqual(
      warningsOf({ on: 'invoice.paid', filter: { 'data.object.amuont_paid': 1 } }, 'stripe'),
      [about('data.object.amuont_paid in filter', 'data.object.amount_paid')],
    )
    assert.deepEqual(warningsOf({ prompt_template: '{{event.event.txt}}' }, 'slack'), [
      about('{{event.event.txt}}', 'event.event.text'),
    ])
    // A click on a button comes as a form.
    assert.deepEqual(warningsOf({ prompt_template: '{{event.user.usrname}}' }, 'slack'), [
      about('{{event.user.usrname}}', 'event.user.username'),
    ])
  })

  it('say nothing where a payload may have it', () => {
    for (const [fields, scheme] of [
      // Nothing near.
      [{ on: 'pull_request', filter: { 'pull_request.brand_new': 'x' } }],
      // An event whose body has no such sample may have it.
      [{ filter: { 'pull_requst.draft': 'x' } }],
      // An event without a sample, and a sender without one.
      [{ on: 'check_run', filter: { 'pull_request.drafft': 'x' } }],
      [{ filter: { 'pull_request.drafft': 'x' } }, 'gitea'],
      // The milestone of the sample is null, and its labels are none.
      [{ on: 'pull_request', filter: { 'pull_request.milestone.titel': 'x' } }],
      [{ on: 'pull_request', filter: { 'pull_request.labels[0].nmae': 'x' } }],
      // One of the events has it.
      [{ on: ['push', 'issues'], filter: { 'issue.title': 'x', 'commits[12].id': 'x' } }],
      [{ prompt_template: '{{event}} {{event.commits.size}} {{headers.x-github-evnt}}' }],
      [{ enabled: false, filter: { 'pull_request.drafft': 'x' } }],
    ] as const)
      assert.deepEqual(warningsOf(fields, scheme), [], JSON.stringify(fields))
  })

  it('say nothing of the prompts that webhook add writes', () => {
    const workspace = { repo: 'acme/app', ref: 'main', base: 'next' }
    for (const name of ['github', 'github-review', 'slack', 'stripe']) {
      const isReview = name === 'github-review'
      const rule = {
        prompt_template: readPrompt(name),
        ...(isReview && { workspace, context: ['diff', 'reviews'] }),
      }
      assert.deepEqual(warningsOf(rule, name.split('-')[0]), [], name)
    }
  })

  it('say nothing of any field in the examples of GitHub for its events', () => {
    const examples = createRequire(import.meta.url)('@octokit/webhooks-examples') as readonly {
      readonly name: string
      readonly examples: readonly unknown[]
    }[]
    const faults: string[] = []
    let count = 0
    for (const { name, examples: payloads } of examples) {
      const paths = new Set(payloads.flatMap((payload) => pathsIn(payload)))
      count += paths.size
      const prompt = [...paths].map((path) => `{{${formatBelow('event', path.split('\n'))}}}`)
      for (const on of [undefined, name])
        faults.push(
          ...warningsOf({ ...(on !== undefined && { on }), prompt_template: prompt.join(' ') }),
        )
    }
    assert.deepEqual(faults, [])
    assert.ok(count > 5000, String(count))
  })
})

/** The path of each value of a payload, with the first item of each list; names are on lines of their own. */
const pathsIn = (value: unknown, above: readonly string[] = []): string[] => {
  if (typeof value !== 'object' || value === null) return [above.join('\n')]
  const entries = Array.isArray(value) ? [['0', value[0]] as const] : Object.entries(value)
  return entries.flatMap(([name, inside]) => pathsIn(inside, [...above, name]))
}
