import assert from 'node:assert/strict'
import { check, linesOf, refuses, webhook } from '../../../support/daemon/config-files.ts'

describe('the path of a webhook', () => {
  const served = (path: string) => linesOf({ webhooks: webhook('', JSON.stringify(path)) })

  const has = (what: string) =>
    `it has ${what} in it; only letters from a to z, digits and - . _ ~ ! $ & ' ( ) * + , ; = : @ are allowed`
  const dot = 'a part of it starts with a dot'
  const empty = 'a part of it is empty'
  for (const [path, fault] of [
    ['/a b', has('a space')],
    ['/a?x', has('"?"')],
    ['/a#x', has('"#"')],
    ['/a%20b', has('"%"')],
    ['/a/../b', dot],
    ['/..', dot],
    ['/a/./b', dot],
    ['/.env', dot],
    ['//a', empty],
    ['/a//b', empty],
    ['/', empty],
    ['a', 'it does not start with /'],
    ['', 'it does not start with /'],
    ['/é', has('"é"')],
    ['/cafe\u0301', has('the character U+0301')],
    ['/a\u200bb', has('the character U+200B')],
    ['/😀', has('"😀"')],
    ['/a\\b', has('"\\"')],
    ['/a\n', has('the character U+000A')],
  ] as const)
    it(`is refused as ${JSON.stringify(path)}, with what is wrong`, () =>
      assert.deepEqual(served(path), [
        `webhooks.yaml:2:5 webhooks[0].path: not a URL path: ${fault}`,
      ]))

  for (const name of ['oauth', 'events', 'webhooks', 'status', 'metrics', 'health', 'daemon'])
    it(`is refused where /${name} belongs to the daemon`, () => {
      for (const path of [`/${name}`, `/${name}/`, `/${name}/more`])
        assert.deepEqual(served(path), [
          `webhooks.yaml:2:5 webhooks[0].path: /${name} is reserved (use /webhook${path})`,
        ])
      assert.deepEqual(served(`/webhook/${name}`), [])
      assert.deepEqual(served(`/${name}-mine`), [])
    })

  it('is refused when another definition is served there, under either address', () => {
    const webhooks = ['/a', '/a', '/webhook/a', '/webhook/b', '/b', '/a/', '/A']
      .map((path) => `  - { path: ${path}, agent: echo, prompt_template: x }\n`)
      .join('')
    assert.deepEqual(linesOf({ webhooks: `webhooks:\n${webhooks}` }), [
      'webhooks.yaml:3:7 webhooks[1].path: path /a is defined twice (first in line 2)',
      'webhooks.yaml:4:7 webhooks[2].path: two definitions would be served at /webhook/a (the other is path /a in line 2)',
      'webhooks.yaml:6:7 webhooks[4].path: two definitions would be served at /webhook/b (the other is path /webhook/b in line 5)',
    ])
  })

  it('is served under /webhook too, unless it begins so', () => {
    const webhooks = `${webhook('', '/a/b/')}  - { path: /webhook/c, agent: echo, prompt_template: x }\n`
    assert.deepEqual(
      check({ webhooks }).webhooks.map(({ urlPaths }) => urlPaths),
      [['/a/b/', '/webhook/a/b/'], ['/webhook/c']],
    )
  })
})

describe('a name in a webhook definition', () => {
  refuses({
    'an agent that is not there, with the nearest': [
      { webhooks: webhook('', '/a', 'eco') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "eco" (did you mean "echo"?)',
    ],
    'an agent that is near none, with all there are': [
      { webhooks: webhook('', '/a', 'toString') },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "toString" (known: echo, reviewer)',
    ],
    'an agent where there are none': [
      { agents: 'agents: {}\n', webhooks: webhook() },
      'webhooks.yaml:3:5 webhooks[0].agent: unknown agent "echo" (known: none)',
    ],
    'no agent of a file that cannot be read': [
      { agents: 'agents:\n\t- x\n', webhooks: webhook() },
      'agents.yaml:2:1 a tab cannot indent, use spaces',
    ],
    'no agent that is there but wrong in itself': [
      { agents: 'agents:\n  echo: { kind: eco }\n', webhooks: webhook() },
      'agents.yaml:2:11 agents.echo.kind: unknown kind "eco" (did you mean "echo"?)',
    ],
    'a target that is not there, with all there are': [
      {
        webhooks: webhook(
          '    deliver_to: [log, notify, "file:a/", "file:{{evnt.x}}", "file:a\\0b"]\n',
        ),
      },
      'webhooks.yaml:5:23 webhooks[0].deliver_to[1]: unknown target "notify" (one of none, log, notify:desktop, file:<path>, slack:…, telegram:…, discord:…, email:…, github:…, http:…)',
      'webhooks.yaml:5:31 webhooks[0].deliver_to[2]: target "file:a/" names no file',
      'webhooks.yaml:5:42 webhooks[0].deliver_to[3]: {{evnt.x}}: only {{event}} and {{event.<path>}} can be used',
      'webhooks.yaml:5:61 webhooks[0].deliver_to[4]: the path of the file contains a NUL character',
    ],
    'a target alone': [
      { webhooks: webhook('    deliver_to: notfy:desktop\n') },
      'webhooks.yaml:5:5 webhooks[0].deliver_to: unknown target "notfy:desktop" (did you mean "notify:desktop"?)',
    ],
    'every unknown name of a template': [
      {
        webhooks: webhook(
          '',
          '/a',
          'echo',
          '"{{event.a}} {{evnt.x}} {{event..y}} {{evnt.x}} {{event.a.__proto__}} {{event.constructor}}"',
        ),
      },
      'webhooks.yaml:4:5 webhooks[0].prompt_template: {{evnt.x}}: only {{event}} and {{event.<path>}} can be used; {{event..y}}: path ".y" has an empty name between its dots',
    ],
    'conditions that lead nowhere': [
      {
        webhooks: webhook('    filter: { a..b: x, .a: x, "a.": x, "": x }\n'),
      },
      'webhooks.yaml:5:15 webhooks[0].filter["a..b"]: path "a..b" has an empty name between its dots',
      'webhooks.yaml:5:24 webhooks[0].filter[".a"]: path ".a" has an empty name between its dots',
      'webhooks.yaml:5:31 webhooks[0].filter["a."]: path "a." has an empty name between its dots',
      'webhooks.yaml:5:40 webhooks[0].filter[""]: the path is empty',
    ],
  })
})
