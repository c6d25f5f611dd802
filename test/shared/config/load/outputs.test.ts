import assert from 'node:assert/strict'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import { check, refuses } from '../../../support/daemon/config-files.ts'

/** An entry of this sender with these outputs. */
const withOutputs = (outputs: string, sender = 'github', more = '') =>
  `webhooks:\n  - path: /a\n    agent: echo\n    prompt_template: x\n    signature_scheme: ${sender}\n    outputs: ${outputs}\n${more}`

describe('the outputs of a rule', () => {
  refuses({
    'a sender without a place for them': [
      { webhooks: withOutputs('{ labels: {} }', 'slack', '    secret_env: S\n') },
      'webhooks.yaml:6:5 webhooks[0].outputs: only events of GitHub and GitLab have a place for it, and signature_scheme is slack (write signature_scheme: github or gitlab, or use deliver_to)',
    ],
    'outputs that allow nothing': [
      { webhooks: withOutputs('{ review: false }') },
      'webhooks.yaml:6:5 webhooks[0].outputs: allows nothing: write what an answer may request, as labels or comment',
    ],
    'a pull request without a workspace': [
      { webhooks: withOutputs('{ pull-request: true }') },
      'webhooks.yaml:6:5 webhooks[0].outputs: pull-request: needs a workspace that the agent may change (write workspace: { repo: …, ref: …, access: write })',
    ],
    'a check at GitLab': [
      { webhooks: withOutputs('{ check: true }', 'gitlab') },
      'webhooks.yaml:6:5 webhooks[0].outputs: check is for GitHub alone (remove it)',
    ],
    'people without a list': [
      { webhooks: withOutputs('{ assign: {} }') },
      'webhooks.yaml:6:16 webhooks[0].outputs.assign.allowed: missing',
    ],
    'a count that is too large': [
      { webhooks: withOutputs('{ labels: { max: 100 } }') },
      'webhooks.yaml:6:26 webhooks[0].outputs.labels.max: must be at most 20',
    ],
    'a kind that there is not': [
      { webhooks: withOutputs('{ label: {} }') },
      'webhooks.yaml:6:16 webhooks[0].outputs.label: unknown key (did you mean "labels"?)',
    ],
    'a target of them in deliver_to': [
      {
        webhooks:
          'webhooks:\n  - path: /a\n    agent: echo\n    prompt_template: x\n    deliver_to: github-outputs:a/b#1\n',
      },
      'webhooks.yaml:5:5 webhooks[0].deliver_to: target "github-outputs:a/b#1" is not for deliver_to (write outputs: on the rule, whose address is that of its event)',
    ],
  })

  it('add their targets to those of deliver_to, in each rule', () => {
    const rules =
      '    deliver_to: log\n    rules: [{ name: a }, { name: b, outputs: { issue: {} } }]\n'
    const { webhooks } = check({
      webhooks: withOutputs('{ labels: {}, check: true }', 'github', rules),
    })
    assert.deepEqual(
      webhooks[0]?.rules.map(({ targets }) => targets.map(({ text }) => text)),
      [
        ['log', 'outputs', 'outputs: github-check'],
        ['log', 'outputs'],
      ],
    )
    assert.deepEqual(webhooks[0]?.rules[1]?.outputs, { issue: { max: 1 } })
  })

  it('are warned about where anyone could choose their place, or any label is allowed', () => {
    const codesOf = (webhooks: string) =>
      collectWarnings(check({ webhooks }), { S: 'x'.repeat(40) })
        .map(({ code }) => code)
        .filter((code) => code.startsWith('outputs-'))
    assert.deepEqual(codesOf(withOutputs('{ labels: {} }')), [
      'outputs-unsigned',
      'outputs-any-label',
    ])
    const allowed = '{ labels: { allowed: [bug] } }'
    assert.deepEqual(codesOf(withOutputs(allowed, 'github', '    secret_env: S\n')), [])
  })
})
