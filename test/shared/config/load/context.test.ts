import assert from 'node:assert/strict'
import { collectWarnings } from '../../../../shared/config/warnings.ts'
import { check, refuses } from '../../../support/daemon/config-files.ts'

const workspace = '    workspace: { repo: a/b, ref: main, base: dev }\n'

/** An entry with this prompt. */
const withPrompt = (prompt: string, more: string) =>
  `webhooks:\n  - path: /a\n    agent: echo\n    prompt_template: '${prompt}'\n${more}`

describe('the context of a rule', () => {
  refuses({
    'a context in the prompt that the rule does not name': [
      { webhooks: withPrompt('{{context.diff}} {{context.files}}', workspace) },
      'webhooks.yaml:2:5 webhooks[0].context: prompt_template has {{context.diff}}, {{context.files}}, which this does not name (write context: [diff, files])',
    ],
    'one of several, in a template with tags': [
      {
        webhooks: withPrompt(
          '{% if event.a %}{{ context.diff }}{{ context.files }}{% endif %}',
          `${workspace}    context: [files]\n`,
        ),
      },
      'webhooks.yaml:6:5 webhooks[0].context: prompt_template has {{context.diff}}, which this does not name (write context: [files, diff])',
    ],
    'a context without code': [
      { webhooks: withPrompt('{{context.diff}}', '    context: [diff]\n') },
      'webhooks.yaml:5:5 webhooks[0].context: it needs a workspace (say which code it is of: doorward help workspaces)',
    ],
    'a context of code that is compared with nothing': [
      {
        webhooks: withPrompt(
          '{{context.diff}}',
          '    workspace: { repo: a/b, ref: main }\n    context: [diff]\n',
        ),
      },
      'webhooks.yaml:5:5 webhooks[0].workspace: diff needs a base (write into workspace what its ref is compared with)',
    ],
    'a rule whose prompt is that of its webhook': [
      {
        webhooks: withPrompt(
          '{{context.diff}}',
          `${workspace}    rules:\n      - { name: a, context: [diff] }\n      - { name: b }\n`,
        ),
      },
      'webhooks.yaml:8:9 webhooks[0].rules[1].context: prompt_template has {{context.diff}}, which this does not name (write context: [diff])',
    ],
    'a context that there is not': [
      { webhooks: withPrompt('{{context.dif}}', workspace) },
      'webhooks.yaml:4:5 webhooks[0].prompt_template: {{context.dif}}: there is no such context: diff, files, commits, failed-logs, comments, reviews can be used (did you mean "diff"?)',
    ],
    'a context of a list that there is not': [
      { webhooks: withPrompt('x', `${workspace}    context: [dif]\n`) },
      'webhooks.yaml:6:15 webhooks[0].context[0]: must be diff, files, commits, failed-logs, comments or reviews (did you mean "diff"?)',
    ],
    'a context elsewhere than in a prompt': [
      {
        webhooks: withPrompt('x', `    coalesce: { key: '{{context.diff}}' }\n`),
      },
      'webhooks.yaml:5:17 webhooks[0].coalesce.key: {{context.diff}}: it can only stand in prompt_template, as {{context.diff}}: no filter, condition or variable can read it',
    ],
    'a limit that is too small': [
      { webhooks: withPrompt('x', '    context_limit: 1b\n') },
      'webhooks.yaml:5:5 webhooks[0].context_limit: must be between 1kb and 2mb',
    ],
  })

  it('is warned about where the prompt has no place for it', () => {
    const webhooks = withPrompt('{{context.diff}}', `${workspace}    context: [diff, commits]\n`)
    const warnings = collectWarnings(check({ webhooks }), {})
    assert.deepEqual(
      warnings.filter(({ code }) => code === 'context-unused').map(({ detail }) => detail),
      ['webhook /a: context has commits, and the prompt has no {{context.commits}}'],
    )
  })
})
