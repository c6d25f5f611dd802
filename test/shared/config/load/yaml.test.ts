import assert from 'node:assert/strict'
import {
  check,
  linesOf,
  refuses,
  twoAgents,
  webhook,
} from '../../../support/daemon/config-files.ts'

describe('a configuration file that is not good YAML', () => {
  const bomb = [
    'a: &a [x,x,x,x,x,x,x,x,x]',
    ...'bcdefghi'
      .split('')
      .map(
        (name, at) => `${name}: &${name} [${`*${'abcdefgh'[at]},`.repeat(8)}*${'abcdefgh'[at]}]`,
      ),
  ].join('\n')

  refuses({
    'a tab as indentation': [
      { webhooks: 'webhooks:\n\t- path: /a\n' },
      'webhooks.yaml:2:1 a tab cannot indent, use spaces',
    ],
    'a quote that is never closed': [
      { webhooks: 'webhooks:\n  - path: "/a\n    agent: echo\n' },
      'webhooks.yaml:4:1 a text that begins with " is not closed',
    ],
    'a key that is defined twice': [
      { webhooks: webhook('    agent: echo\n') },
      'webhooks.yaml:5:5 the key agent is defined twice',
    ],
    'a key that begins further left than those beside it': [
      { webhooks: 'webhooks:\n  - path: /a\n  agent: echo\n  prompt_template: x\n' },
      'webhooks.yaml:3:1 this line is not indented like its siblings',
      'webhooks.yaml:4:1 this line is not indented like its siblings',
    ],
    'a key that is one space too far in': [
      { webhooks: 'webhooks:\n  - path: /a\n     agent: echo\n    prompt_template: x\n' },
      'webhooks.yaml:3:6 this line is indented further than its siblings, so it continues the value of the line before (a text with ": " in it needs quotes)',
    ],
    'a prompt that is not indented below its key': [
      { webhooks: webhook('    hi there\n', '/a', 'echo', '|') },
      'webhooks.yaml:5:5 not of the form "key: value" (put a space after the colon; indent a text of several lines below its key)',
    ],
    'a colon without a space': [
      { webhooks: 'webhooks:[]\n' },
      'webhooks.yaml:1:1 must be a map (the file begins with webhooks:)',
    ],
    'a colon in a text without quotes': [
      { webhooks: webhook('', '/a', 'echo', 'Summary: x') },
      'webhooks.yaml:4:22 a text with ": " in it needs quotes',
    ],
    'a text that begins with a character of YAML': [
      { webhooks: webhook('', '/a', 'echo', '@here look') },
      'webhooks.yaml:4:22 a text that begins with @ needs quotes',
    ],
    'a template without quotes': [
      { webhooks: webhook('', '/a', 'echo', '{{event.number}}') },
      'webhooks.yaml:4:23 a text that begins with {{ needs quotes',
    ],
    'a list that is not closed': [
      { webhooks: webhook('    deliver_to: [log, none\n    dedupe: off\n') },
      'webhooks.yaml:6:5 a ] is missing before this',
    ],
    'a quote inside of quotes': [
      { webhooks: webhook('', '/a', 'echo', "'it's new'") },
      'webhooks.yaml:4:26 the value before this has ended; is a quote misplaced?',
    ],
    'aliases that multiply (a billion laughs)': [
      { webhooks: bomb },
      'webhooks.yaml:1:1 aliases expand to more than 100 values, write the values out',
    ],
    'an alias of nothing': [
      { webhooks: 'webhooks: *nothing\n' },
      'webhooks.yaml:1:11 unknown anchor &nothing',
    ],
    'a tag of its own': [
      { webhooks: 'webhooks: !mine []\n' },
      'webhooks.yaml:1:11 unresolved tag: !mine',
    ],
    'a tag that would make a function': [
      { webhooks: webhook('', '!!js/function "x"') },
      'webhooks.yaml:2:11 unresolved tag: tag:yaml.org,2002:js/function',
    ],
    'several documents in one file': [
      { webhooks: 'webhooks: []\n---\nwebhooks: []\n' },
      'webhooks.yaml:2:1 a second document begins here, only one is allowed',
    ],
    'an alias as a key, which could stand for any name': [
      {
        agents: `${twoAgents}  &x b: { kind: echo }\n`,
        webhooks: webhook('    filter: { a: &p __proto__, *p : x }\n'),
      },
      'webhooks.yaml:5:32 a key must be plain text',
    ],
    'a list where the whole should be a map': [
      { webhooks: '- path: /a\n', agents: 'hello\n', gateway: '3\n' },
      'gateway.yaml:1:1 must be a map (known: server, oauth, tokens, queue, events, sessions, budget, approve, allowed_links, workspaces, providers, targets)',
      'agents.yaml:1:1 must be a map (the file begins with agents:)',
      'webhooks.yaml:1:1 must be a map (the file begins with webhooks:)',
    ],
  })

  it('is never a crash, however deep it is nested', () => {
    for (const depth of [100, 500, 700, 800, 2000, 20_000]) {
      const lines = linesOf({ webhooks: `webhooks: ${'['.repeat(depth)}${']'.repeat(depth)}\n` })
      assert.match(
        lines[0] ?? '',
        /^webhooks\.yaml:1:\d+ (webhooks\[0\]: must be a map|nested too deeply)$/,
      )
    }
  })

  for (const [where, files] of Object.entries({
    'top of gateway.yaml': { gateway: '__proto__: {}\n' },
    'name of a provider': { gateway: 'providers:\n  __proto__: { client_id: x }\n' },
    'name of an agent': { agents: `${twoAgents}  __proto__: { kind: echo }\n` },
    'variable of an agent': {
      agents: `${twoAgents}  c: { kind: command, command: [x], env: { __proto__: x } }\n`,
    },
    'key of a webhook': { webhooks: webhook('    "__proto__": x\n') },
    'condition of a filter': { webhooks: webhook("    filter: { '__proto__': x }\n") },
    'explicit key': { webhooks: webhook('    ? __proto__\n    : x\n') },
    'key with a tag': { webhooks: webhook('    !!str __proto__ : x\n') },
    'key deep inside': { webhooks: webhook('    filter: { a: [{ __proto__: x }] }\n') },
  }))
    it(`refuses __proto__ as a ${where}`, () => {
      const lines = linesOf(files)
      assert.equal(lines.length, 1)
      assert.match(lines[0] ?? '', /^\w+\.yaml:\d+:\d+ __proto__: this name is not allowed$/)
    })

  it('may be empty or hold comments alone: then it has no entries and every default', () => {
    for (const text of ['', '# nothing yet\n', '---\n', '\uFEFF', '\n\n']) {
      const config = check({ gateway: text, agents: text, webhooks: text })
      assert.deepEqual([config.webhooks, config.agents.size], [[], 0])
      assert.equal(config.gateway.server.port, 18_789)
    }
  })

  it('takes durations of each unit, up to a year', () => {
    const { agents, gateway } = check({
      agents: `${twoAgents}  c: { kind: echo, timeout: 365d }\n`,
      gateway: 'queue: { drain_timeout: 500ms, lost_after: 2h }\n',
    })
    const { queue } = gateway
    assert.deepEqual(
      [agents.get('c')?.timeout, queue.lost_after, queue.drain_timeout],
      [31_536_000_000, 7_200_000, 500],
    )
  })

  it('may use an alias for a value', () => {
    const text = `${webhook('', '/a', '&agent echo')}  - path: /b\n    agent: *agent\n    prompt_template: y\n`
    assert.deepEqual(
      check({ webhooks: text }).webhooks.map(({ rules: [rule] }) => rule?.agentName),
      ['echo', 'echo'],
    )
  })
})
